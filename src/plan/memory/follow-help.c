/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whose CPUs move memory. First those of the node it goes to, where its users are. They run at half speed while they
 * wait, and moving takes their CPUs as well. So CPUs of the node it leaves help, unless other workloads would pay for
 * that: half of them must be idle or run threads of the same workload, whose memory was local so far.
 *
 * Example, nodes of two CPUs, a process on each, all memory on node 0. Moving 32 MB of small pages took 1.3 s of CPU
 * time in an emulated machine: 0.65 s of each thread on node 1, or 0.33 s of each of all. 90 % of the accesses were
 * local after 0.82 s, and after 1.17 s without help (numa01-thread-alloc in the lab). */

#include "plan/memory/follow-internal.h"

/* Other workloads may use 1/OTHERS_PART of a node's CPU time. A choice of ours, not measured. */
#define OTHERS_PART 2U

/* CPU time of the workload on the node, permille of a CPU. */
static uint64_t run_of_workload(const Follow *f, uint32_t node)
{
    const World *world = f->p->world;
    uint64_t sum = 0;

    for (size_t i = 0; i < world->n_tasks; i++) {
        const Task *task = &world->tasks[i];
        const TopologyCpu *cpu = topology_cpu(world->topology, task->last_cpu);

        if (!task->gone && cpu && cpu->node.i == (int32_t)node &&
            world->processes[task->process.i].workload.i == f->process->workload.i)
            sum += task->run_permille;
    }
    return sum;
}

static bool may_help(const Follow *f, uint32_t node)
{
    const World *world = f->p->world;
    hwloc_const_bitmap_t cpus = world->topology->nodes[node].cpus;
    uint64_t all = 0, busy = 0, own = run_of_workload(f, node);

    for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i)) {
        all += world->cpus[i].online ? 1000 : 0;
        busy += world->cpus[i].online ? world->cpus[i].busy_permille : 0;
    }
    return all > 0 && busy <= own + all / OTHERS_PART;
}

CpuMask follow_help(const Follow *f)
{
    hwloc_bitmap_t set = f->p->s->nodes;

    hwloc_bitmap_zero(set);
    for (int i = f->from && rule_holds(f->p->world, ABLATION_HELP) ? hwloc_bitmap_first(f->from) : -1; i >= 0;
         i = hwloc_bitmap_next(f->from, i))
        if (may_help(f, (uint32_t)i))
            planner_note(f->p, hwloc_bitmap_set(set, (unsigned)i));
    return planner_intern(f->p, set);
}
