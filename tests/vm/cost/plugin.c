/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plugin: gives the guest a clock that counts what its CPUs execute, and what their memory costs.
 *
 * Translated code subtracts its instructions from the rest of the CPU's slice (clock.h). It calls back on
 * every load and store, whose price is subtracted as well. The host's time is not used, so a guest runs the
 * same whatever else the host does, and any number of CPUs can run on one of the host.
 *
 * A guest boots at full speed: memory has no price until the guest asks for it. It does so with a "nopl"
 * whose displacement has a magic upper half (tests/workloads/window.h), which is recognized at translation.
 * When prices are switched on for the first time, all translated code is discarded, so that all code
 * translated afterwards has the callbacks. They stay when prices are switched off. */

#include "address.h"
#include "clock.h"
#include "config.h"
#include "emulator.h"
#include "model.h"
#include "qemu-plugin-api.h"
#include "report.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "nopl disp32(%rax)"; window.h has the same numbers. */
#define MARK_BYTES  7U
#define MARK_MAGIC  0x4e50U
#define MARK_OFF    0xf000U
#define MARK_ON     0xf001U
#define PAUSE_BYTES 2U

/* Lines that cost a CPU nothing until its turn ends, since no other CPU runs: a table by the lower bits of
 * the line. */
#define FREE_LINES 64U

typedef struct FreeLine {
    uint64_t line; /* virtual */
    uint32_t turn; /* turn for which that holds */
} FreeLine;

typedef struct Vcpu {
    ClockCpu clock;
    FreeLine free[FREE_LINES][2]; /* for loads, for stores */
} Vcpu;

/* The clock passes pointers to its part of a vCPU; the whole begins at the same address. */
static_assert(offsetof(Vcpu, clock) == 0 && offsetof(ClockCpu, left_psec) == 0,
              "translated code finds it by offset 0");

typedef struct Plugin {
    qemu_plugin_id_t id;
    Config config;
    AddressMap map;
    Model *model;
    struct qemu_plugin_scoreboard *score;
    qemu_plugin_u64 left;
    Vcpu *vcpus[COST_CPUS_MAX];
    ClockCpu *clocks[COST_CPUS_MAX];
    int64_t insn_psec;
    int64_t pause_psec;
    bool started;
    bool instrument; /* never reset */
    bool charging;
    FILE *out;
} Plugin;

/* QEMU passes no user pointer to most callbacks. All are called in the CPUs' thread. */
static Plugin plugin;

int qemu_plugin_version = 4;

static void report(const char *event, unsigned number, int cpu)
{
    int r;

    if (!plugin.out)
        return;
    r = report_counters(plugin.out, &plugin.config, plugin.model, event, number, cpu,
                        (uint64_t)clock_now_psec() / 1000);
    if (r < 0) {
        fprintf(stderr, "numacost: %s: %s, no more reports\n", plugin.config.out, strerror(-r));
        (void)fclose(plugin.out);
        plugin.out = NULL;
    }
}

/*
 * Charging
 */

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *user)
{
    const struct qemu_plugin_hwaddr *address;
    ModelAccess a = {.virtual_address = vaddr, .user = user != NULL};
    Vcpu *v = plugin.vcpus[cpu];
    FreeLine *free_line;
    uint64_t line = vaddr >> ADDRESS_LINE_SHIFT, psec;

    if (!plugin.charging || !plugin.started)
        return;
    a.store = qemu_plugin_mem_is_store(info);
    free_line = &v->free[line % FREE_LINES][a.store];
    if (free_line->line == line && free_line->turn == v->clock.turns)
        return;
    address = qemu_plugin_get_hwaddr(info, vaddr);
    if (!address || qemu_plugin_hwaddr_is_io(address))
        return;
    a.physical_address = qemu_plugin_hwaddr_phys_addr(address);
    if (!address_map_line(&plugin.map, a.physical_address, &a.line))
        return;
    psec = model_access(plugin.model, cpu, &a, (uint64_t)clock_cpu_psec(&v->clock));
    *free_line = (FreeLine){line, v->clock.turns};
    if (psec > 0)
        clock_take(&v->clock, (int64_t)psec);
}

static void on_pause(unsigned cpu, void *userdata)
{
    if (plugin.started)
        clock_take(&plugin.vcpus[cpu]->clock, plugin.pause_psec);
}

static void on_slice_over(unsigned cpu, void *userdata)
{
    if (plugin.started)
        clock_take(&plugin.vcpus[cpu]->clock, 0);
}

/*
 * Marks and translation
 */

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void on_end(qemu_plugin_id_t id, void *userdata)
{
    report("exit", 0, -1);
    if (plugin.out)
        (void)fclose(plugin.out);
    plugin.out = NULL;
}

static void register_callbacks(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
}

static void on_mark(unsigned cpu, void *userdata)
{
    unsigned number = (unsigned)(uintptr_t)userdata;
    bool on = number == MARK_ON;

    if (!on && number != MARK_OFF) {
        report("mark", number, (int)cpu);
        return;
    }
    plugin.charging = on;
    if (on && !plugin.instrument) {
        plugin.instrument = true;
        qemu_plugin_reset(plugin.id, register_callbacks);
    }
    report(on ? "on" : "off", 0, (int)cpu);
}

/* Registers what to call when the instruction is executed, if it is a mark or a pause. */
static void look_at(struct qemu_plugin_insn *insn)
{
    size_t size = qemu_plugin_insn_size(insn);
    uint8_t b[MARK_BYTES] = {0};
    uint32_t displacement;

    if (size != MARK_BYTES && size != PAUSE_BYTES)
        return;
    (void)qemu_plugin_insn_data(insn, b, sizeof(b));
    if (size == PAUSE_BYTES && b[0] == 0xf3 && b[1] == 0x90 && plugin.pause_psec > 0)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_pause, QEMU_PLUGIN_CB_NO_REGS, NULL);
    displacement = b[3] | (uint32_t)b[4] << 8 | (uint32_t)b[5] << 16 | (uint32_t)b[6] << 24;
    if (size == MARK_BYTES && b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x80 &&
        displacement >> 16 == MARK_MAGIC)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                                               (void *)(uintptr_t)(displacement & 0xffff));
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    int64_t psec = (int64_t)n * plugin.insn_psec;

    /* A value below 0, read as unsigned, is greater than the largest signed one. */
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, plugin.left,
                                                      (uint64_t)-psec);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_slice_over, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_COND_GT,
                                              plugin.left, INT64_MAX, NULL);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        /* The kernel's code is in the upper half. The mmu index shows it too, but its numbers change. */
        bool user = qemu_plugin_insn_vaddr(insn) >> 63 == 0;

        look_at(insn);
        if (plugin.instrument)
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             user ? &plugin : NULL);
    }
}

/*
 * Start
 */

static int refuse(const char *text)
{
    fprintf(stderr, "numacost: %s\n", text);
    return -1;
}

static void on_vcpu(qemu_plugin_id_t id, unsigned index)
{
    const char *refusal;

    emulator_share_code(emulator_cpu(index));
    /* This is the last vCPU: all exist now. */
    if (plugin.started || index + 1 != plugin.config.n_cpus)
        return;
    for (unsigned i = 0; i < plugin.config.n_cpus; i++) {
        plugin.vcpus[i] = qemu_plugin_scoreboard_find(plugin.score, i);
        plugin.clocks[i] = &plugin.vcpus[i]->clock;
        plugin.clocks[i]->cpu = emulator_cpu(i);
    }
    refusal = clock_start(plugin.clocks, plugin.config.n_cpus, plugin.config.slice_nsec * 1000LL,
                          config_scaled_psec(&plugin.config, plugin.config.wake_nsec));
    if (refusal)
        exit(-refuse(refusal));
    plugin.started = true;
}

static int open_report(int api_version)
{
    char *copy;

    if (!plugin.config.out)
        return 0;
    /* The arguments are QEMU's, which may free them once plugins are loaded. */
    copy = strdup(plugin.config.out);
    if (!copy)
        return -ENOMEM;
    plugin.config.out = copy;
    plugin.out = fopen(plugin.config.out, "we");
    if (!plugin.out)
        return -errno;
    return report_config(plugin.out, &plugin.config, api_version);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments)
{
    const char *refusal = emulator_refusal();
    char error[256];
    int r;

    if (refusal)
        return refuse(refusal);
    if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0)
        return refuse("only qemu-system-x86_64 is served");
    if (config_parse(count, arguments, &plugin.config, error, sizeof(error)) < 0)
        return refuse(error);
    if (info->system.max_vcpus != (int)plugin.config.n_cpus) {
        (void)snprintf(error, sizeof(error), "cpus= names %u CPUs, the guest has %d", plugin.config.n_cpus,
                       info->system.max_vcpus);
        return refuse(error);
    }
    plugin.id = id;
    plugin.insn_psec = (int64_t)plugin.config.insn_psec * plugin.config.scale_permille / 1000;
    plugin.pause_psec = config_scaled_psec(&plugin.config, plugin.config.pause_nsec);
    address_map_init(&plugin.map, &plugin.config);
    r = model_new(&plugin.config, &plugin.map, &plugin.model);
    if (r < 0)
        return refuse(strerror(-r));
    r = open_report(info->version.cur);
    if (r < 0) {
        (void)snprintf(error, sizeof(error), "out=%s: %s", plugin.config.out, strerror(-r));
        return refuse(error);
    }
    plugin.score = qemu_plugin_scoreboard_new(sizeof(Vcpu));
    plugin.left = (qemu_plugin_u64){plugin.score, 0};
    plugin.instrument = plugin.charging = plugin.config.start;
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
    register_callbacks(id);
    return 0;
}
