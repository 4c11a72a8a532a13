/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random machines with random workloads under random policies, as scenarios, for cases nobody thought of. */

#include "base/util.h"
#include "sim/model/random.h"

#include <stdio.h>

#define RANDOM_MACHINE_SETTLE_SEC 5U
#define RANDOM_MACHINE_SEC        65U

/* Its variants. */
#define RANDOM_MACHINE_NONE  0U
#define RANDOM_MACHINE_HOMES 1U

static inline const char *random_pick(Random *random, const char *const *words, uint32_t n)
{
    return words[random_below(random, n)];
}

static inline void random_nodes(FILE *f, Random *random, uint32_t n_nodes, uint32_t n_cpus)
{
    uint32_t far = 20 + random_below(random, 3) * 6, block = random_below(random, 2) ? n_nodes / 2 : n_nodes;

    (void)fprintf(f, "[Machine]\nSynthetic=numa:%u l3:1 core:%u pu:1 distances=", n_nodes, n_cpus);
    for (uint32_t i = 0; i < n_nodes * n_nodes; i++) {
        uint32_t a = i / n_nodes, b = i % n_nodes;

        (void)fprintf(f, "%s%u", i > 0 ? "," : "", a == b ? 10 : a / block == b / block ? 16 : far);
    }
    (void)fprintf(f, "\n[Kernel]\nNumaBalancing=%s\n", random_below(random, 3) ? "no" : "yes");
}

static inline void random_workload(FILE *f, Random *random, uint32_t index, uint32_t n_processes,
                                   uint32_t n_threads)
{
    static const char *const bursts[] = {"", "BurstSec=exponential 20ms\nSleepSec=exponential 10ms\n",
                                         "BurstSec=uniform 200ms 300ms\nSleepSec=uniform 100ms 500ms\n"};
    static const char pairs[] = "Wake=pair\nBurstSec=exponential 2ms\n";
    static const char *const touches[] = {"thread", "process", "interleave"};

    (void)fprintf(f, "[Workload w%u]\nProcesses=%u\nThreads=%u\nPrivateMemory=%uM\nMemoryBound=%u%%\n", index,
                  n_processes, n_threads, 1 + random_below(random, 3) * 8, random_below(random, 70));
    (void)fprintf(f, "FirstTouch=%s\n%s", random_pick(random, touches, ARRAY_SIZE(touches)),
                  n_threads % 2 || random_below(random, 2) ? random_pick(random, bursts, ARRAY_SIZE(bursts))
                                                           : pairs);
    if (random_below(random, 2))
        (void)fprintf(f, "SharedMemory=%uM\nSharedAccess=%u%%\n", 1 + random_below(random, 100),
                      random_below(random, 100));
    if (random_below(random, 4) == 0)
        (void)fprintf(f, "Bandwidth=%uG\n", 1 + random_below(random, 12));
}

static inline void random_policy(FILE *f, Random *random, uint32_t index, bool guarded)
{
    static const char *const modes[] = {"auto", "auto", "compress", "spread", "interleave"};
    static const char *const groups[] = {"process", "workload"};

    (void)fprintf(f,
                  "[Policy p%u Match]\nComm=w%u\n[Policy p%u Workload]\nGroupBy=%s\n"
                  "[Policy p%u Placement]\nMode=%s\n%s",
                  index, index, index, random_pick(random, groups, ARRAY_SIZE(groups)), index,
                  random_pick(random, modes, ARRAY_SIZE(modes)),
                  guarded ? "" : "MinGainPermille=0\nMinResidencySec=0\nPingPongSec=0\nSettleSec=0\n");
}

/* The scenario, malloc'd; NULL: out of memory. Without `guarded` none of the guards (P7) applies. There are
 * up to twice as many threads as CPUs. */
static inline char *random_machine(uint64_t seed, bool guarded)
{
    static const uint32_t nodes[] = {2, 2, 4, 4, 8}, cpus[] = {1, 2, 4, 8};
    Random random = random_split(seed, 0);
    uint32_t n_nodes = nodes[random_below(&random, ARRAY_SIZE(nodes))];
    uint32_t n_cpus = cpus[random_below(&random, ARRAY_SIZE(cpus))], left = n_nodes * n_cpus, n;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    (void)fprintf(f, "[Scenario]\nDurationSec=%us\nSettleSec=%us\n", RANDOM_MACHINE_SEC,
                  RANDOM_MACHINE_SETTLE_SEC);
    random_nodes(f, &random, n_nodes, n_cpus);
    left = 1 + random_below(&random, 2 * left);
    for (n = 0; n < 6 && left > 0; n++) {
        uint32_t n_processes = 1 + random_below(&random, 4),
                 n_threads = 1 + random_below(&random, 2 * n_cpus);

        random_workload(f, &random, n, n_processes, n_threads);
        left -= MIN(left, n_processes * n_threads);
    }
    for (uint32_t i = 0; i < n; i++)
        if (random_below(&random, 6)) /* the others match no policy */
            random_policy(f, &random, i, guarded);
    (void)fprintf(f, "[Variant none]\nDaemon=no\n[Variant homes]\n");
    return fclose(f) == 0 ? text : NULL;
}
