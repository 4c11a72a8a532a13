/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random machines and mixes of realistic work, as scenarios, for bench-harm. None was chosen by what the
 * daemon does with it, and ranges are as wide as in reality. One policy of defaults places all of them.
 *
 * Machines: 2 to 16 nodes of 1 to 8 cores, siblings on a third of the machines, one or two last-level caches
 * per node, distances of one or two levels, on a few machines a memory-only node beside each other node, 2 to
 * 8 GB/s of bandwidth per CPU. */

#include "base/util.h"
#include "sim/model/random.h"

#include <stdio.h>

#define HARM_SETTLE_SEC 2U
#define HARM_SEC        62U

/* The kind of most work on a machine. */
typedef enum HarmKind {
    HARM_HEAPS,     /* processes whose threads share a heap */
    HARM_MESSAGES,  /* pairs and groups that wake each other */
    HARM_GUESTS,    /* virtual machines */
    HARM_JOBS,      /* short jobs */
    HARM_BURSTS,    /* work and pauses */
    HARM_DATABASE,  /* one process with shared memory, often wider than a node */
    HARM_RANKS,     /* single-threaded processes in one cgroup that need bandwidth */
    HARM_STREAMS,   /* the same as threads of one process */
    HARM_BUILD,     /* many short processes in one cgroup */
    HARM_BACKUP,    /* a process that reads much, once, beside others */
    HARM_COLLECTOR, /* a heap that a collector replaces by another one at times */
    HARM_PINNED,    /* vCPUs pinned by somebody, beside free ones */
    HARM_PHASES,    /* work that changes over to other memory */
    HARM_CROWD,     /* more threads than CPUs */
    HARM_TEAMS,     /* one process whose threads share memory in groups of two to eight */
    HARM_GROWS,     /* processes that begin with one thread */
    HARM_MAX,
    HARM_INVALID = -EINVAL,
} HarmKind;

static const char *const harm_names[] = {
    [HARM_HEAPS] = "heaps",     [HARM_MESSAGES] = "messages",   [HARM_GUESTS] = "virtual machines",
    [HARM_JOBS] = "short jobs", [HARM_BURSTS] = "bursts",       [HARM_DATABASE] = "database",
    [HARM_RANKS] = "ranks",     [HARM_STREAMS] = "streams",     [HARM_BUILD] = "build",
    [HARM_BACKUP] = "backup",   [HARM_COLLECTOR] = "collector", [HARM_PINNED] = "pinned",
    [HARM_PHASES] = "phases",   [HARM_CROWD] = "crowd",         [HARM_TEAMS] = "teams",
    [HARM_GROWS] = "grows",
};

typedef struct HarmMachine {
    FILE *f;
    Random random;
    uint32_t n_nodes, n_cpus; /* nodes with CPUs, and CPUs of each */
    uint32_t bandwidth_mb;    /* of a node, per CPU */
    uint32_t n_workloads;
    bool near; /* all memory is as near as a node's own */
} HarmMachine;

/* Variants of a scenario. */
typedef enum HarmVariant {
    HARM_KERNEL,      /* unplaced, kernel balancing off */
    HARM_BALANCING,   /* unplaced, kernel balancing on */
    HARM_AUTO,        /* the daemon with all keys at their defaults */
    HARM_AUTO_BESIDE, /* the same beside kernel balancing */
    HARM_PROCESS,     /* GroupBy=process */
    HARM_CGROUP,      /* GroupBy=cgroup */
    HARM_VARIANTS,
} HarmVariant;

static const char harm_variants[] =
    "[Policy auto Match]\nComm=*\n[Policy auto Placement]\nMode=auto\n"
    "[Policy process Match]\nComm=*\n[Policy process Placement]\nMode=auto\n"
    "[Policy process Workload]\nGroupBy=process\n"
    "[Policy cgroup Match]\nComm=*\n[Policy cgroup Placement]\nMode=auto\n"
    "[Policy cgroup Workload]\nGroupBy=cgroup\n"
    "[Variant kernel]\nDaemon=no\n[Variant balancing]\nDaemon=no\nNumaBalancing=yes\n"
    "[Variant auto]\nPolicies=auto\n[Variant auto-beside]\nPolicies=auto\nNumaBalancing=yes\n"
    "[Variant process]\nPolicies=process\n[Variant cgroup]\nPolicies=cgroup\n";

/* A random number from `low` to `high`. */
static inline uint32_t harm_between(HarmMachine *m, uint32_t low, uint32_t high)
{
    return low + random_below(&m->random, high - low + 1);
}

static inline bool harm_chance(HarmMachine *m, uint32_t percent)
{
    return random_below(&m->random, 100) < percent;
}

static inline uint32_t harm_all_cpus(const HarmMachine *m)
{
    return m->n_nodes * m->n_cpus;
}

static inline void harm_machine(HarmMachine *m)
{
    static const uint32_t nodes[] = {2, 2, 2, 4, 4, 8, 16}, cores[] = {1, 2, 4, 8};
    uint32_t n_cores, n_threads, n_caches, far, block;
    bool beside;

    m->n_nodes = nodes[random_below(&m->random, ARRAY_SIZE(nodes))];
    n_cores = cores[random_below(&m->random, m->n_nodes > 8 ? 3 : ARRAY_SIZE(cores))];
    n_threads = harm_chance(m, 33) ? 2 : 1;
    n_caches = n_cores > 1 && harm_chance(m, 33) ? 2 : 1;
    beside = harm_chance(m, 8);
    far = harm_between(m, 16, 32);
    block = m->n_nodes > 2 && harm_chance(m, 50) ? m->n_nodes / 2 : m->n_nodes;
    m->n_cpus = n_cores * n_threads;
    m->bandwidth_mb = harm_between(m, 2000, 8000);
    (void)fprintf(m->f, "[Machine]\nSynthetic=pack:%u [numa(memory=64GiB)]%s l3:%u core:%u pu:%u", m->n_nodes,
                  beside ? "[numa(memory=64GiB)]" : "", n_caches, n_cores / n_caches, n_threads);
    for (uint32_t i = 0; !beside && i < m->n_nodes * m->n_nodes; i++) {
        uint32_t a = i / m->n_nodes, b = i % m->n_nodes;

        (void)fprintf(m->f, "%s%u", i > 0 ? "," : " distances=",
                      a == b                   ? 10
                      : a / block == b / block ? (block < m->n_nodes ? 12 : far)
                                               : far);
    }
    (void)fprintf(m->f, "\nNodeBandwidth=%uM\n%s", m->bandwidth_mb * m->n_cpus,
                  m->near ? "LocalLatencyNSec=80\nRemoteLatencyNSec=80\n" : "");
}

/* Writes the head of a workload. */
static inline void harm_workload(HarmMachine *m, uint32_t n_processes, uint32_t n_threads)
{
    (void)fprintf(m->f, "[Workload w%u]\nProcesses=%u\nThreads=%u\n", m->n_workloads++, n_processes,
                  n_threads);
}

static inline void harm_touch(HarmMachine *m)
{
    static const char *const touches[] = {"thread", "thread", "process", "interleave"};

    (void)fprintf(m->f, "FirstTouch=%s\n", touches[random_below(&m->random, ARRAY_SIZE(touches))]);
}

static inline void harm_pauses(HarmMachine *m, uint32_t low_ms, uint32_t high_ms)
{
    uint32_t burst = harm_between(m, low_ms, high_ms);

    (void)fprintf(m->f, "BurstSec=exponential %ums\nSleepSec=exponential %ums\n", burst,
                  MAX(burst * harm_between(m, 10, 200) / 100, 1));
}

static inline void harm_shared(HarmMachine *m, uint32_t low_mb, uint32_t high_mb, uint32_t share)
{
    (void)fprintf(m->f, "SharedMemory=%uM\nSharedAccess=%u%%\nPrivateMemory=%uM\n",
                  harm_between(m, low_mb, high_mb), harm_between(m, share, 100), harm_between(m, 1, 32));
}

/* Streams that want half to three times the bandwidth available per CPU. */
static inline void harm_streams(HarmMachine *m)
{
    (void)fprintf(m->f, "PrivateMemory=%uM\nMemoryBound=%u%%\nBandwidth=%uM\nFirstTouch=%s\n",
                  harm_between(m, 8, 256), harm_between(m, 60, 95),
                  m->bandwidth_mb * harm_between(m, 50, 300) / 100,
                  harm_chance(m, 80) ? "thread" : "process");
}

static inline void harm_heaps(HarmMachine *m, uint32_t n_threads)
{
    harm_workload(m, harm_between(m, 1, MIN(m->n_nodes, 4)), n_threads);
    harm_shared(m, 32, 512, 60);
    (void)fprintf(m->f, "MemoryBound=%u%%\n", harm_between(m, 15, 65));
    harm_touch(m);
    if (harm_chance(m, 50))
        harm_pauses(m, 5, 200);
    if (harm_chance(m, 25))
        (void)fprintf(m->f, "Displaced=%u%%\nDisplacedSec=%us\n", harm_between(m, 20, 100),
                      harm_between(m, 1, 10));
}

/* Work that ends. It is measured by its speed. */
static inline void harm_finite(HarmMachine *m, uint32_t n_threads, uint32_t work_ms, uint32_t per_cpu_percent)
{
    uint32_t use = harm_all_cpus(m) * per_cpu_percent / 100 + 1; /* CPUs */
    uint32_t arrival_ms = MAX(work_ms * n_threads / use, 2);

    harm_workload(m, MIN(MAX((HARM_SEC - 5) * 1000 / arrival_ms, 1), 2000), n_threads);
    (void)fprintf(m->f, "ArrivalSec=exponential %ums\nWorkSec=%ums\nPrivateMemory=%uM\nMemoryBound=%u%%\n",
                  arrival_ms, work_ms, harm_between(m, 2, 64), harm_between(m, 10, 60));
}

static inline void harm_guests(HarmMachine *m, uint32_t n, const char *affinity)
{
    for (uint32_t i = 0; i < n; i++) {
        harm_workload(m, 1, harm_between(m, 1, MAX(m->n_cpus, 2)));
        harm_shared(m, 64, 512, 40);
        (void)fprintf(m->f, "MemoryBound=%u%%\n%s", harm_between(m, 10, 50), affinity);
        harm_touch(m);
        harm_pauses(m, 1, 50);
    }
}

static inline void harm_pinned(HarmMachine *m)
{
    char affinity[48];
    uint32_t first = random_below(&m->random, harm_all_cpus(m)),
             last = MIN(first + random_below(&m->random, m->n_cpus), harm_all_cpus(m) - 1);

    (void)snprintf(affinity, sizeof(affinity), "Affinity=%u-%u\n", first, last);
    harm_guests(m, harm_between(m, 1, 2), affinity);
    harm_guests(m, harm_between(m, 1, 3), "");
}

static inline void harm_teams(HarmMachine *m)
{
    uint32_t by = harm_between(m, 2, 8);

    harm_workload(m, 1, by * harm_between(m, 1, MAX(harm_all_cpus(m) / by, 1)));
    harm_shared(m, 16, 256, 50);
    (void)fprintf(m->f, "SharedBy=%u\nMemoryBound=%u%%\n", by, harm_between(m, 20, 60));
    harm_touch(m);
    if (harm_chance(m, 40))
        harm_pauses(m, 1, 20);
}

/* One thread reads the input, then there are many: for good, or in jobs that come and go. */
static inline void harm_grows(HarmMachine *m)
{
    uint32_t n_threads = harm_between(m, 2, MAX(harm_all_cpus(m) / 2, 2));

    if (harm_chance(m, 50)) {
        harm_workload(m, harm_between(m, 1, 3), n_threads);
        (void)fprintf(m->f, "SerialSec=%ums\nPrivateMemory=%uM\nMemoryBound=%u%%\n",
                      harm_between(m, 500, 10000), harm_between(m, 1, 64), harm_between(m, 15, 60));
        if (harm_chance(m, 30))
            (void)fprintf(m->f, "ForkSec=%ums\n", harm_between(m, 1, 500));
    } else {
        harm_finite(m, n_threads, harm_between(m, 500, 6000), harm_between(m, 20, 90));
        (void)fprintf(m->f, "SerialSec=%ums\n", harm_between(m, 100, 1000));
    }
    if (harm_chance(m, 60))
        (void)fprintf(m->f, "SharedMemory=%uM\nSharedAccess=%u%%\n", harm_between(m, 16, 512),
                      harm_between(m, 40, 100));
    harm_touch(m);
}

static inline void harm_work(HarmMachine *m, HarmKind kind)
{
    switch (kind) {
    case HARM_HEAPS:
        harm_heaps(m, harm_between(m, 1, m->n_cpus));
        return;
    case HARM_MESSAGES:
        harm_workload(m, harm_between(m, 1, 2 * m->n_nodes), 2 * harm_between(m, 1, MIN(m->n_cpus, 8)));
        (void)fprintf(m->f, "Wake=%s\nBurstSec=exponential %uus\nSharedMemory=%uM\nMemoryBound=%u%%\n",
                      harm_chance(m, 50) ? "pair" : "group", harm_between(m, 200, 3000),
                      harm_between(m, 1, 64), harm_between(m, 0, 40));
        return;
    case HARM_GUESTS:
        harm_guests(m, harm_between(m, 1, MIN(m->n_nodes * 2, 8)), "");
        return;
    case HARM_JOBS:
        harm_finite(m, harm_between(m, 1, 4), harm_between(m, 500, 6000), harm_between(m, 20, 110));
        return;
    case HARM_BURSTS:
        harm_workload(m, harm_between(m, 1, 2 * m->n_nodes), harm_between(m, 1, m->n_cpus));
        (void)fprintf(m->f, "PrivateMemory=%uM\nMemoryBound=%u%%\n", harm_between(m, 1, 64),
                      harm_between(m, 5, 60));
        harm_touch(m);
        harm_pauses(m, 5, 500);
        return;
    case HARM_DATABASE:
        harm_workload(m, 1, harm_between(m, 1, harm_all_cpus(m)));
        harm_shared(m, 256, 2048, 50);
        (void)fprintf(m->f, "MemoryBound=%u%%\n", harm_between(m, 20, 60));
        harm_touch(m);
        if (harm_chance(m, 60))
            harm_pauses(m, 1, 20);
        return;
    case HARM_RANKS:
        harm_workload(m, harm_between(m, 2, harm_all_cpus(m)), 1);
        harm_streams(m);
        return;
    case HARM_STREAMS:
        harm_workload(m, 1, harm_between(m, 2, harm_all_cpus(m)));
        harm_streams(m);
        return;
    case HARM_BUILD:
        harm_finite(m, 1, harm_between(m, 100, 1500), harm_between(m, 50, 130));
        return;
    case HARM_BACKUP:
        harm_workload(m, 1, 1);
        (void)fprintf(m->f, "PrivateMemory=%uM\nMemoryBound=%u%%\nBandwidth=%uM\nFirstTouch=interleave\n",
                      harm_between(m, 512, 4096), harm_between(m, 40, 90), m->bandwidth_mb);
        harm_heaps(m, harm_between(m, 1, m->n_cpus));
        return;
    case HARM_COLLECTOR:
    case HARM_PHASES:
        harm_workload(m, harm_between(m, 1, 2), harm_between(m, 1, m->n_cpus));
        if (kind == HARM_COLLECTOR)
            harm_shared(m, 64, 1024, 70);
        else
            (void)fprintf(m->f, "PrivateMemory=%uM\n", harm_between(m, 4, 128));
        (void)fprintf(m->f, "MemoryBound=%u%%\nPhaseSec=%us\n", harm_between(m, 20, 60),
                      harm_between(m, 5, 30));
        harm_touch(m);
        return;
    case HARM_PINNED:
        harm_pinned(m);
        return;
    case HARM_TEAMS:
        harm_teams(m);
        return;
    case HARM_GROWS:
        harm_grows(m);
        return;
    default: /* HARM_CROWD */
        harm_heaps(m, harm_between(m, m->n_cpus, 2 * m->n_cpus));
        harm_workload(m, harm_between(m, 1, m->n_nodes), harm_between(m, m->n_cpus, 2 * m->n_cpus));
        (void)fprintf(m->f, "PrivateMemory=%uM\nMemoryBound=%u%%\n", harm_between(m, 1, 64),
                      harm_between(m, 5, 60));
        harm_touch(m);
        return;
    }
}

static inline HarmKind harm_kind(uint64_t seed)
{
    return (HarmKind)(seed % HARM_MAX);
}

/* The machine and its work. The kind follows from the number. Half of the machines also have some work of
 * another kind. */
static inline void harm_kinds(HarmMachine *m, uint64_t seed)
{
    harm_machine(m);
    harm_work(m, harm_kind(seed));
    if (harm_chance(m, 50))
        harm_work(m, (HarmKind)random_below(&m->random, HARM_MAX));
}

/* The scenario, malloc'd; NULL: out of memory. `near`: the same on a machine where all memory is as near as a
 * node's own. */
static inline char *harm_scenario(uint64_t seed, bool near, const char *kind,
                                  void (*fill)(HarmMachine *m, uint64_t seed))
{
    HarmMachine m = {.random = random_split(seed, 1), .near = near};
    char *text = NULL;
    size_t size = 0;

    m.f = open_memstream(&text, &size);
    if (!m.f)
        return NULL;
    (void)fprintf(m.f,
                  "[Scenario]\nDescription=Work of kind %s, number %llu\nDurationSec=%us\nSettleSec=%us\n",
                  kind, (unsigned long long)seed, HARM_SEC, HARM_SETTLE_SEC);
    fill(&m, seed);
    (void)fprintf(m.f, "%s", harm_variants);
    return fclose(m.f) == 0 ? text : NULL;
}
