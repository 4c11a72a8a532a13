/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random machines and programs without kinds, for bench-harm --any: everything that a scenario can set, drawn
 * independently. They have what kinds (harm-machine.h) lack: cpusets, pinned threads, shared bandwidth, many programs
 * in one cgroup, odd numbers of nodes and cores. No single thread wants more bandwidth than six tenths of a node's. */

#include "harm-machine.h"

#define HARM_CPUS_MAX 96U

static inline uint32_t harm_one_of(HarmMachine *m, const uint32_t *values, uint32_t n)
{
    return values[random_below(&m->random, n)];
}

static inline void harm_any_machine(HarmMachine *m)
{
    static const uint32_t nodes[] = {2, 2, 2, 3, 4, 4, 6, 8, 8, 12}, few[] = {1, 2, 3, 4, 6, 8},
                          many[] = {1, 2, 3, 4, 6, 8, 10, 12, 16, 20}, threads[] = {1, 1, 2},
                          memory[] = {16, 64, 128};
    uint32_t n_cores, n_threads, n_caches, far, near, block, smt, local, remote;

    m->n_nodes = harm_one_of(m, nodes, ARRAY_SIZE(nodes));
    n_cores = m->n_nodes <= 4 ? harm_one_of(m, many, ARRAY_SIZE(many)) : harm_one_of(m, few, ARRAY_SIZE(few));
    n_cores = MIN(n_cores, HARM_CPUS_MAX / m->n_nodes);
    n_threads = harm_one_of(m, threads, ARRAY_SIZE(threads));
    n_threads = m->n_nodes * n_cores * n_threads > HARM_CPUS_MAX ? 1 : n_threads;
    for (n_caches = harm_between(m, 1, MIN(n_cores, 4)); n_cores % n_caches != 0; n_caches--)
        ;
    far = harm_between(m, 14, 40);
    near = harm_between(m, 11, (far + 10) / 2);
    for (block = harm_between(m, 1, 4); m->n_nodes % block != 0; block--)
        ;
    m->n_cpus = n_cores * n_threads;
    m->bandwidth_mb = harm_between(m, 1500, 10000);
    (void)fprintf(m->f, "[Machine]\nSynthetic=pack:%u [numa(memory=%uGiB)] l3:%u core:%u pu:%u", m->n_nodes,
                  harm_one_of(m, memory, ARRAY_SIZE(memory)), n_caches, n_cores / n_caches, n_threads);
    for (uint32_t i = 0; i < m->n_nodes * m->n_nodes; i++) {
        uint32_t a = i / m->n_nodes, b = i % m->n_nodes;

        (void)fprintf(m->f, "%s%u", i > 0 ? "," : " distances=",
                      a == b                   ? 10
                      : a / block == b / block ? near
                                               : far);
    }
    smt = harm_between(m, 52, 70);
    local = harm_between(m, 70, 110);
    remote = local * harm_between(m, 130, 250) / 100;
    (void)fprintf(m->f, "\nNodeBandwidth=%uM\nSMTSpeed=%u%%\nLocalLatencyNSec=%u\nRemoteLatencyNSec=%u\n",
                  m->bandwidth_mb * m->n_cpus, smt, local, m->near ? local : remote);
}

/* Percent of the time that a thread wants a CPU. `text` gets the keys for its bursts and pauses, `ret_wakes`
 * whether threads wake each other. */
static inline uint32_t harm_any_pace(HarmMachine *m, char *text, size_t size, bool *ret_wakes)
{
    static const uint32_t parts[] = {10, 30, 50, 100, 200, 500};
    uint32_t draw = harm_between(m, 1, 9), burst, sleep;

    *ret_wakes = draw > 6;
    text[0] = '\0';
    if (draw <= 3)
        return 100;
    if (draw > 6) {
        (void)snprintf(text, size, "Wake=%s\nBurstSec=exponential %uus\nWakeSync=%s\n",
                       harm_chance(m, 50) ? "pair" : "group", harm_between(m, 100, 5000),
                       harm_chance(m, 50) ? "yes" : "no");
        return 50;
    }
    burst = draw == 4   ? harm_between(m, 1, 20)
            : draw == 5 ? harm_between(m, 20, 500)
                        : harm_between(m, 500, 5000);
    sleep = MAX(burst * harm_one_of(m, parts, ARRAY_SIZE(parts)) / 100, 1);
    if (harm_chance(m, 33))
        (void)snprintf(text, size, "BurstSec=%ums\nSleepSec=%ums\n", burst, sleep);
    else if (harm_chance(m, 50))
        (void)snprintf(text, size, "BurstSec=exponential %ums\nSleepSec=exponential %ums\n", burst, sleep);
    else
        (void)snprintf(text, size, "BurstSec=uniform %ums %ums\nSleepSec=uniform %ums %ums\n",
                       MAX(burst / 2, 1), MAX(burst * 3 / 2, 1), MAX(sleep / 2, 1), MAX(sleep * 3 / 2, 1));
    return MAX(burst * 100 / (burst + sleep), 1);
}

/* Returns true when the program changes its memory over time, or its memory is displaced. */
static inline bool harm_any_memory(HarmMachine *m, uint32_t n_processes, uint32_t n_threads)
{
    static const char *const touches[] = {"thread", "thread", "process", "interleave"};
    uint32_t share_mb = MAX(8000 / n_processes, 4), draw = harm_between(m, 1, 10);
    bool shared = harm_chance(m, 60), alone = !shared || harm_chance(m, 75);

    (void)fprintf(m->f, "MemoryBound=%u%%\n",
                  draw <= 2   ? 0
                  : draw <= 5 ? harm_between(m, 5, 30)
                  : draw <= 8 ? harm_between(m, 20, 60)
                              : harm_between(m, 50, 95));
    if (alone)
        (void)fprintf(m->f, "PrivateMemory=%uM\n",
                      harm_between(m, 1, MAX(MIN(share_mb / n_threads, 256), 2)));
    if (shared)
        (void)fprintf(m->f, "SharedMemory=%uM\nSharedAccess=%u%%\n", harm_between(m, 1, MIN(share_mb, 2048)),
                      alone ? harm_between(m, 10, 100) : 100);
    if (shared && n_threads > 2 && harm_chance(m, 30))
        (void)fprintf(m->f, "SharedBy=%u\n", harm_between(m, 2, n_threads));
    if (draw > 2 && harm_chance(m, 35))
        (void)fprintf(
            m->f, "Bandwidth=%uM\n",
            MIN(m->bandwidth_mb * harm_between(m, 5, 300) / 100, m->bandwidth_mb * m->n_cpus * 6 / 10));
    (void)fprintf(m->f, "FirstTouch=%s\n", touches[random_below(&m->random, ARRAY_SIZE(touches))]);
    if (alone && harm_chance(m, 10)) {
        (void)fprintf(m->f, "Displaced=%u%%\nDisplacedSec=%us\n", harm_between(m, 10, 100),
                      harm_between(m, 0, 15));
        return true;
    }
    if (!harm_chance(m, 10))
        return false;
    (void)fprintf(m->f, "PhaseSec=%us\n", harm_between(m, 2, 40));
    return true;
}

static inline void harm_any_place(HarmMachine *m, bool changes)
{
    uint32_t first = random_below(&m->random, harm_all_cpus(m));
    uint32_t last = MIN(first + random_below(&m->random, 2 * m->n_cpus + 1), harm_all_cpus(m) - 1);
    uint32_t node = random_below(&m->random, m->n_nodes);

    if (harm_chance(m, 25))
        (void)fprintf(m->f, "Shuffled=yes\n");
    if (harm_chance(m, 15))
        (void)fprintf(m->f, "ForkSec=%ums\n", harm_between(m, 1, 200));
    if (harm_chance(m, 8))
        (void)fprintf(m->f, "AsleepSec=%ums\n", harm_between(m, 100, 5000));
    if (harm_chance(m, 12))
        (void)fprintf(m->f, "Nodes=%u-%u\n", node, harm_between(m, node, m->n_nodes - 1));
    else if (harm_chance(m, 8))
        (void)fprintf(m->f, "CPUs=%u-%u\n", first, last);
    else if (!changes && harm_chance(m, 6))
        (void)fprintf(m->f, "Affinity=%u-%u\n", first, last);
    else if (harm_chance(m, 14))
        (void)fprintf(m->f, "StartNodes=%u\n", node);
    if (harm_chance(m, 20))
        (void)fprintf(m->f, "Cgroup=/sim.slice/all.service\n");
}

/* A program that wants about `percent` hundredths of a CPU. */
static inline void harm_any_program(HarmMachine *m, uint32_t percent)
{
    static const uint32_t numbers[] = {1, 1, 2, 3, 4}, works[] = {200, 1000, 5000, 20000};
    uint32_t n_processes = harm_chance(m, 70)   ? harm_one_of(m, numbers, ARRAY_SIZE(numbers))
                           : harm_chance(m, 50) ? harm_between(m, 1, 2 * m->n_nodes)
                                                : harm_between(m, 1, harm_all_cpus(m));
    uint32_t duty, n_threads;
    char pace[160];
    bool wakes;

    if (harm_chance(m, 10)) {
        harm_finite(m, harm_between(m, 1, 4), harm_one_of(m, works, ARRAY_SIZE(works)),
                    MIN(percent / harm_all_cpus(m), 130));
        harm_any_place(m, true);
        return;
    }
    duty = harm_any_pace(m, pace, sizeof(pace), &wakes);
    n_threads = MIN(MAX(percent / duty / n_processes, 1), 4 * harm_all_cpus(m));
    n_processes = MIN(n_processes, MAX(4 * harm_all_cpus(m) / n_threads, 1));
    n_threads = wakes ? (n_threads + 1) / 2 * 2 : n_threads;
    harm_workload(m, n_processes, n_threads);
    (void)fprintf(m->f, "%s", pace);
    if (n_processes > 1 && harm_chance(m, 25))
        (void)fprintf(m->f, "ArrivalSec=exponential %ums\n", harm_between(m, 1, 8000 / n_processes + 1));
    harm_any_place(m, harm_any_memory(m, n_processes, n_threads));
}

static inline void harm_any(HarmMachine *m, uint64_t seed)
{
    static const uint32_t numbers[] = {1, 1, 2, 2, 3, 4, 5},
                          loads[] = {30, 50, 70, 90, 100, 100, 110, 140, 200};
    uint32_t n = harm_one_of(m, numbers, ARRAY_SIZE(numbers)),
             load = harm_one_of(m, loads, ARRAY_SIZE(loads));

    (void)seed; /* only what is drawn counts */
    harm_any_machine(m);
    for (uint32_t i = 0; i < n; i++)
        harm_any_program(m, MAX(harm_all_cpus(m) * load / n * harm_between(m, 40, 160) / 100, 100));
}
