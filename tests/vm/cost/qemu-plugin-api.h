/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few declarations of QEMU's public plugin interface that are needed here.
 *
 * Debian's QEMU packages ship no header for plugins, so these are written after QEMU's manual ("QEMU TCG Plugins",
 * chapter API). They hold for API versions 1 (QEMU 7.2) to 4 (10.0) with one exception, qemu_plugin_insn_data(), which
 * is therefore declared twice as a type and looked up by name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What QEMU looks up in a plugin must be visible; all else of this project is hidden. */
#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

typedef struct qemu_info_t {
    const char *target_name;
    struct {
        int min; /* the oldest interface this QEMU still loads */
        int cur; /* the one it has */
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

/* No guest registers are read in callbacks. */
#define QEMU_PLUGIN_CB_NO_REGS 0
/* Loads and stores. */
#define QEMU_PLUGIN_MEM_RW 3

typedef void (*qemu_plugin_simple_cb_t)(qemu_plugin_id_t id);
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t id, void *userdata);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned vcpu, void *userdata);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr,
                                          void *userdata);

/* Versions 1 and 2 return the bytes of the instruction; later ones copy at most `length` of them. */
typedef const void *(*qemu_plugin_insn_data_get_t)(const struct qemu_plugin_insn *insn);
typedef size_t (*qemu_plugin_insn_data_copy_t)(const struct qemu_plugin_insn *insn, void *to, size_t length);

/* Called when code is translated; the handles are valid in the callback only. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

/* Called each time the instruction is executed, or accesses memory. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            qemu_plugin_vcpu_udata_cb_t callback, int flags, void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_mem_cb_t callback,
                                      int flags, int access, void *userdata);

/* What a memory callback may ask. The handle is NULL when QEMU does not know the address. */
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

/* Forgets all translated code and all callbacks, then calls back so that they can be registered anew. */
void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple_cb_t callback);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t callback, void *userdata);

/* What a plugin must define. `arguments` are the words of -plugin after the file, "key=value". Not 0 ends QEMU. */
extern QEMU_PLUGIN_EXPORT int qemu_plugin_version;
QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                           char **arguments);
