/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few declarations of QEMU's public plugin interface that are needed here.
 *
 * Debian's QEMU packages ship no header for plugins, so these follow QEMU's manual ("QEMU TCG Plugins",
 * chapter API). They hold for API version 4 (QEMU 10.0). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Symbols that QEMU looks up in a plugin must be visible. All others of this project are hidden. */
#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

typedef struct qemu_info_t {
    const char *target_name;
    struct {
        int min; /* oldest interface that this QEMU still loads */
        int cur; /* its current interface */
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus;
            int max_vcpus;
        } system;
    };
} qemu_info_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_scoreboard;

/* A word in the element that a scoreboard has for each vCPU. */
typedef struct qemu_plugin_u64 {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

/* Callbacks read no guest registers. */
#define QEMU_PLUGIN_CB_NO_REGS 0
/* Loads and stores. */
#define QEMU_PLUGIN_MEM_RW         3
#define QEMU_PLUGIN_INLINE_ADD_U64 0
/* Greater than, unsigned. */
#define QEMU_PLUGIN_COND_GT 6

typedef void (*qemu_plugin_simple_cb_t)(qemu_plugin_id_t id);
typedef void (*qemu_plugin_vcpu_simple_cb_t)(qemu_plugin_id_t id, unsigned vcpu);
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t id, void *userdata);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned vcpu, void *userdata);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                          void *userdata);

/* Calls back when a vCPU is created. */
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t callback);

/* Calls back when code is translated. The handles are valid only in the callback. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* Copies at most `length` of the instruction's bytes. Returns the number copied. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);

/* Calls back each time the instruction is executed, or accesses memory. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            qemu_plugin_vcpu_udata_cb_t callback, int flags, void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t callback,
                                      int flags, int access, void *userdata);

/* Each time the block is executed: adds to the vCPU's word without a call, or calls back when the word
 * compares with `than` as `condition` says. */
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
                                                       qemu_plugin_u64 word, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb,
                                               qemu_plugin_vcpu_udata_cb_t callback, int flags, int condition,
                                               qemu_plugin_u64 word, uint64_t than, void *userdata);

/* Elements are zeroed. They may move until all vCPUs are created. */
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned vcpu);

/* For memory callbacks. The handle is NULL when QEMU does not know the address. */
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

/* Discards all translated code and all callbacks, then calls back so that they can be registered anew. */
void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple_cb_t callback);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t callback, void *userdata);

/* What a plugin must define. `arguments` are the "key=value" words of -plugin after the file. A result other
 * than 0 ends QEMU. */
extern QEMU_PLUGIN_EXPORT int qemu_plugin_version;
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                           char **arguments);
