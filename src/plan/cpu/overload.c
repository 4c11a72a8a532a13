/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The overload map (P1), from averages: no kernel exports how many threads are runnable on a CPU.
 *
 * Two consecutive ticks must agree. One tick is not enough: with 21 threads on 20 CPUs some CPU has waiting threads in
 * each tick, but the kernel moves the extra thread around. What the kernel solves within 100 ms is left to it.
 *
 * Example: 25 spinning threads on 20 CPUs, none moved. 5 CPUs run 2 threads each, so busy 1000 and wait 1000 permille;
 * 15 run one each, busy 1000 and wait 0. After two ticks 5 CPUs are overloaded and none is idle.
 *
 * What it does badly: bursts shorter than two ticks are invisible, and real-time or interrupt load counts as busy only
 * when the kernel accounts for it as such. */

#include "plan/planner.h"
#include "world/load.h"

static bool is_overloaded(const CpuLoad *cpu)
{
    return cpu->online && cpu->wait_known && cpu->wait_permille >= OVERLOAD_WAIT_PERMILLE &&
           cpu->wait_before_permille >= OVERLOAD_WAIT_PERMILLE;
}

void overload_classify(Planner *p)
{
    const Topology *topology = p->world->topology;

    hwloc_bitmap_zero(p->s->idle);
    p->plan->n_overloaded = p->plan->n_idle = 0;
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const CpuLoad *load = &p->world->cpus[i];
        PlannerCpu *cpu = &p->s->cpus[i];

        if (!topology->cpus[i].present)
            continue;
        if (is_overloaded(load))
            p->plan->n_overloaded++;
        cpu->idle = cpu->lease < 0 && load_cpu_is_idle(p->world, load);
        if (!cpu->idle)
            continue;
        p->plan->n_idle++;
        planner_note(p, hwloc_bitmap_set(p->s->idle, i));
    }
}
