/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plugin: hands each memory access of the guest to the model, and makes CPUs wait for what it costs.
 *
 * Translated code calls back on every load and store. What the model charges is owed by the CPU; when it owes more than
 * a quantum, its thread sleeps (or spins) that long (account.h). Sleeping takes no time of the host, so a guest with
 * more CPUs than the host still runs at the speed its memory allows.
 *
 * A guest boots at full speed: nothing is instrumented until it asks. It does so with a "nopl" whose displacement has a
 * magic upper half (tests/workloads/window.h), which is found when it is translated. The first time prices are switched
 * on, all translations are thrown away, so that from then on the callbacks are in all code. They stay when prices are
 * switched off: QEMU 7.2 keeps pointers to callbacks longer than the code they belong to (mended in 8.0), and dies over
 * them when newer code is without.
 *
 * One file serves several versions of QEMU. Version 1 of the interface and later ones have no version that both accept,
 * so a constructor chooses it by what the program that loads the plugin has to offer. */

#include "account.h"
#include "address.h"
#include "config.h"
#include "model.h"
#include "qemu-plugin-api.h"
#include "report.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* "nopl disp32(%rax)"; window.h has the same numbers. */
#define MARK_BYTES 7U
#define MARK_MAGIC 0x4e50U
#define MARK_OFF   0xf000U
#define MARK_ON    0xf001U

typedef struct Plugin {
    qemu_plugin_id_t id;
    int api_version;
    void *insn_data; /* qemu_plugin_insn_data(), whose type depends on the version */
    Config config;
    AddressMap map;
    Model *model;
    Account accounts[COST_CPUS_MAX];
    uint64_t overlap_nsec;
    atomic_bool instrument; /* never taken back */
    atomic_bool charging;
    pthread_mutex_t lock; /* of the fields below */
    FILE *out;
    bool broken; /* writing failed, and was said */
    uint64_t begin_nsec;
} Plugin;

/* QEMU passes no pointer of ours to most callbacks. */
static Plugin plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

int qemu_plugin_version;

/* 1 is refused from QEMU 9.0 on, which made 2 the oldest; before, 1 was the newest. */
__attribute__((constructor)) static void choose_version(void)
{
    qemu_plugin_version = dlsym(RTLD_DEFAULT, "qemu_plugin_num_vcpus") ? 2 : 1;
}

static uint64_t now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void report(const char *event, unsigned number, int cpu)
{
    int r;

    (void)pthread_mutex_lock(&plugin.lock);
    if (plugin.out && !plugin.broken) {
        r = report_counters(plugin.out, &plugin.config, plugin.model, event, number, cpu,
                            now_nsec() - plugin.begin_nsec);
        if (r < 0) {
            fprintf(stderr, "numacost: %s: %s, no more reports\n", plugin.config.out, strerror(-r));
            plugin.broken = true;
        }
    }
    (void)pthread_mutex_unlock(&plugin.lock);
}

/*
 * Charging
 */

static void sleep_nsec(int64_t nsec)
{
    static _Thread_local bool prepared = false;
    struct timespec ts = {.tv_sec = nsec / 1000000000, .tv_nsec = nsec % 1000000000};

    /* The default slack of 50 us is as long as a quantum. */
    if (!prepared) {
        (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        prepared = true;
    }
    /* Signals tell QEMU's threads to look up; the rest of the debt is then paid with the next quantum. */
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void pay(unsigned cpu)
{
    Account *a = &plugin.accounts[cpu];
    uint64_t begin = now_nsec(), end;
    int64_t due = account_due(a, begin);

    if (due <= 0)
        return;
    if (!plugin.config.spin)
        sleep_nsec(due);
    do
        end = now_nsec();
    while (plugin.config.spin && (int64_t)(end - begin) < due);
    account_paid(a, begin, end);
    model_counters(plugin.model, cpu)->waited_nsec += end - begin;
}

static void charge(unsigned cpu, uint64_t line, bool store, bool user)
{
    Account *a = &plugin.accounts[cpu];
    int node;
    uint64_t nsec = model_access(plugin.model, cpu, line, store, user, &node);

    if (nsec == 0)
        return;
    account_charge(a, nsec, plugin.overlap_nsec);
    /* What is owed has passed already as far as the guest is concerned. */
    if (node >= 0 && plugin.config.bandwidth_mbs > 0)
        a->debt_nsec += (int64_t)model_queue(plugin.model, cpu, (unsigned)node,
                                             (uint64_t)((int64_t)now_nsec() + a->debt_nsec));
    if (a->debt_nsec > (int64_t)plugin.config.quantum_usec * 1000)
        pay(cpu);
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *user)
{
    const struct qemu_plugin_hwaddr *address;
    uint64_t line;

    if (!atomic_load_explicit(&plugin.charging, memory_order_relaxed))
        return;
    address = qemu_plugin_get_hwaddr(info, vaddr);
    if (!address || qemu_plugin_hwaddr_is_io(address) ||
        !address_map_line(&plugin.map, qemu_plugin_hwaddr_phys_addr(address), &line))
        return;
    charge(cpu, line, qemu_plugin_mem_is_store(info), user != NULL);
}

/*
 * Marks and translation
 */

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

static void on_exit(qemu_plugin_id_t id, void *userdata)
{
    report("exit", 0, -1);
    (void)pthread_mutex_lock(&plugin.lock);
    if (plugin.out)
        (void)fclose(plugin.out);
    plugin.out = NULL;
    (void)pthread_mutex_unlock(&plugin.lock);
}

static void register_callbacks(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
}

static void on_mark(unsigned cpu, void *userdata)
{
    unsigned number = (unsigned)(uintptr_t)userdata;
    bool on = number == MARK_ON;

    if (!on && number != MARK_OFF) {
        report("mark", number, (int)cpu);
        return;
    }
    atomic_store(&plugin.charging, on);
    if (on && !atomic_exchange(&plugin.instrument, true))
        qemu_plugin_reset(plugin.id, register_callbacks);
    report(on ? "on" : "off", 0, (int)cpu);
}

/* The first bytes of an instruction of MARK_BYTES. */
static void read_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes)
{
    qemu_plugin_insn_data_get_t get;
    qemu_plugin_insn_data_copy_t copy;

    memset(bytes, 0, MARK_BYTES);
    if (plugin.api_version < 3) {
        memcpy(&get, &plugin.insn_data, sizeof(get));
        memcpy(bytes, get(insn), MARK_BYTES);
    } else {
        memcpy(&copy, &plugin.insn_data, sizeof(copy));
        (void)copy(insn, bytes, MARK_BYTES);
    }
}

static void look_for_mark(struct qemu_plugin_insn *insn)
{
    uint8_t b[MARK_BYTES];
    uint32_t displacement;

    if (qemu_plugin_insn_size(insn) != MARK_BYTES)
        return;
    read_bytes(insn, b);
    displacement = b[3] | (uint32_t)b[4] << 8 | (uint32_t)b[5] << 16 | (uint32_t)b[6] << 24;
    if (b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x80 && displacement >> 16 == MARK_MAGIC)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                                               (void *)(uintptr_t)(displacement & 0xffff));
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    bool instrument = atomic_load(&plugin.instrument);
    size_t n = qemu_plugin_tb_n_insns(tb);

    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        /* The kernel's code is in the upper half. The mmu index says it too, but its numbers change. */
        bool user = qemu_plugin_insn_vaddr(insn) >> 63 == 0;

        look_for_mark(insn);
        if (instrument)
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                             user ? &plugin : NULL);
    }
}

/*
 * Start
 */

static void *tick(void *userdata)
{
    struct timespec ts = {
        .tv_sec = plugin.config.tick_msec / 1000,
        .tv_nsec = (long)(plugin.config.tick_msec % 1000) * 1000000,
    };

    for (unsigned i = 1;; i++) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
        if (atomic_load(&plugin.charging))
            report("tick", i, -1);
    }
    return NULL;
}

static int start_ticks(void)
{
    sigset_t all, before;
    pthread_t thread;
    int r;

    /* QEMU expects its signals in its own threads. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, NULL, tick, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        (void)pthread_detach(thread);
    return -r;
}

static int refuse(const char *text)
{
    fprintf(stderr, "numacost: %s\n", text);
    return -1;
}

static int open_report(void)
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
    return report_config(plugin.out, &plugin.config, plugin.api_version);
}

/* By version: 8.1 and 8.2 still call themselves 1, but tell guest-physical addresses; they need address=guest. */
static bool tells_guest_addresses(void)
{
    if (plugin.config.address == CONFIG_ADDRESS_AUTO)
        return plugin.api_version >= 2;
    return plugin.config.address == CONFIG_ADDRESS_GUEST;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments)
{
    char error[256];
    int r;

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
    plugin.api_version = info->version.cur;
    plugin.insn_data = dlsym(RTLD_DEFAULT, "qemu_plugin_insn_data");
    if (!plugin.insn_data)
        return refuse("this QEMU has no qemu_plugin_insn_data()");
    plugin.begin_nsec = now_nsec();
    address_map_init(&plugin.map, &plugin.config, tells_guest_addresses());
    r = model_new(&plugin.config, &plugin.map, &plugin.model);
    if (r < 0)
        return refuse(strerror(-r));
    r = open_report();
    if (r < 0) {
        (void)snprintf(error, sizeof(error), "out=%s: %s", plugin.config.out, strerror(-r));
        return refuse(error);
    }
    plugin.overlap_nsec = (uint64_t)plugin.config.overlap_nsec * plugin.config.scale_permille / 1000;
    atomic_store(&plugin.instrument, plugin.config.start);
    atomic_store(&plugin.charging, plugin.config.start);
    if (plugin.config.tick_msec > 0 && start_ticks() < 0)
        return refuse("no thread for tick=");
    register_callbacks(id);
    return 0;
}
