/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The constants of the model, and the destructors of a scenario. The constants are facts about hardware and
 * kernels. They are set here only, because a scenario that chose them could print any number. They describe
 * the two-socket Xeon servers of most measurements in the texts. Where sources disagree, the middle is taken. */

#include "sim/scenario/spec.h"

#include "base/time.h"

const SimModel sim_model_default = {
    /* Intel Memory Latency Checker on Skylake and Cascade Lake servers: 80 to 90 ns local; about 140 ns to
     * the other socket, which is at distance 21. */
    .local_latency_nsec = 80,
    .remote_latency_nsec = 135,
    /* STREAM reaches about 105 GB/s with six channels of DDR4-2933, whose peak is 141. */
    .node_bandwidth = 100ULL << 30,
    /* Intel on hyper-threading: a core does 15 to 30 % more with both threads busy. */
    .smt_permille = 610,
    .counters = true,

    /* Two-socket servers run at 2.5 to 3.5 GHz with all cores busy. Two instructions per cycle are half of what such
     * cores can retire. All that matters is that this is far above what plan/scan/stall.h considers slow. */
    .cycles_per_usec = 3000,
    .ipc_permille = 2000,

    /* lmbench, lat_ctx: 1 to 2 us. */
    .switch_nsec = 1500,
    /* An interprocessor interrupt, 1 us, and the exit from C1, 2 us in the kernel's intel_idle table. */
    .wake_remote_nsec = 3000,
    /* A message on a Unix socket: 4 lines of the sk_buff, 2 of data and 1 after them, 3 of the sockets
     * (queue, memory accounting, wait queue). */
    .message_lines = 10,
    /* 256 KiB at 20 GB/s from the last-level cache. */
    .refill_llc_nsec = 13000,
    /* A core's 1.4 MiB of the last-level cache at the 10 GB/s one core gets from memory. */
    .refill_nsec = 140000,
    /* sched_min_granularity, and since 6.6 base_slice, on a machine with eight CPUs or more. */
    .slice_usec = 3 * USEC_PER_MSEC,
    /* sysctl_sched_migration_cost. */
    .balance_nsec = 500000,
    /* Measured for this project: 15 to 19 us for a running thread that must move, 1.5 us for a sleeping one. */
    .action_nsec = 20000,
    /* 1.3 GB/s, the rate that balancenuma found worth limiting to (128 MB in 100 ms). */
    .page_move_nsec = 3200,
    /* A minor fault and the bookkeeping of do_numa_page(). */
    .hint_fault_nsec = 1000,
    /* The defaults of numaplaced.conf. */
    .fast_tick_usec = 100 * USEC_PER_MSEC,
    .slow_tick_usec = USEC_PER_SEC,
    /* Times in schedstat are exact, but a tick of 100 ms may come 1 ms late. */
    .noise_permille = 10,
};

void sim_workload_done(SimWorkload *w)
{
    free(w->name);
    free(w->comm);
    free(w->cgroup);
    hwloc_bitmap_free(w->cpuset);
    hwloc_bitmap_free(w->affinity);
    hwloc_bitmap_free(w->start_cpus);
}

static void variant_done(SimVariant *v)
{
    free(v->name);
    free(v->workloads);
    (void)policy_set_free(v->policies);
}

SimSpec *sim_spec_free(SimSpec *spec)
{
    if (!spec)
        return NULL;
    for (size_t i = 0; i < spec->n_workloads; i++)
        sim_workload_done(&spec->workloads[i]);
    for (size_t i = 0; i < spec->n_variants; i++)
        variant_done(&spec->variants[i]);
    for (size_t i = 0; i < spec->n_expects; i++)
        free(spec->expects[i].text);
    free(spec->workloads);
    free(spec->variants);
    free(spec->expects);
    free(spec->name);
    free(spec->description);
    free(spec->machine);
    (void)topology_unref(spec->topology);
    free(spec);
    return NULL;
}
