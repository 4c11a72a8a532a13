/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The invariants of a World, in the order of its members. Sums are not among them: they are right after
 * world_sum(), and may be outdated until the next one. */

#include "base/parse.h"
#include "world/load.h"
#include "world/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct Check {
    const World *world;
    char **ret_what;
} Check;

__attribute__((format(printf, 2, 3))) static int broken(const Check *check, const char *format, ...)
{
    va_list ap;

    if (!check->ret_what)
        return -EUCLEAN;
    va_start(ap, format);
    *check->ret_what = format_vtext(format, ap);
    va_end(ap);
    return -EUCLEAN;
}

static bool string_ok(const Check *check, const char *s, bool may_be_null)
{
    return s ? intern_has_string(check->world->pool, s) : may_be_null;
}

/* Whether a mask is interned, and finite: an infinite set has no text form. */
static bool mask_ok(const Check *check, CpuMask mask)
{
    if (!mask)
        return true;
    return intern_has_mask(check->world->pool, mask) &&
           (hwloc_bitmap_last(mask) >= 0 || hwloc_bitmap_iszero(mask));
}

static int check_bucket(const Check *check, const Bucket *bucket)
{
    if (bucket->updated_usec > check->world->now_usec)
        return broken(check, "a bucket was updated after now");
    return 0;
}

static int check_cpus(const Check *check)
{
    const World *w = check->world;

    for (uint32_t i = 0; i < w->topology->cpu_limit; i++) {
        const CpuLoad *c = &w->cpus[i];

        if (c->usable && !c->online)
            return broken(check, "CPU %" PRIu32 " is usable but not online", i);
        if (c->online && !w->topology->cpus[i].present)
            return broken(check, "CPU %" PRIu32 " is online but not in the topology", i);
        if (c->busy_permille > LOAD_FULL_PERMILLE || c->busy_before_permille > LOAD_FULL_PERMILLE)
            return broken(check, "CPU %" PRIu32 " is busy for more than the whole tick", i);
        if (c->idle_since_usec > w->now_usec)
            return broken(check, "the idle spell of CPU %" PRIu32 " begins after now", i);
    }
    return 0;
}

static int check_nodes(const Check *check)
{
    const World *w = check->world;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        if (w->nodes[i].free_bytes > (w->nodes[i].free_known ? WORLD_MEMORY_MAX : 0))
            return broken(check, "node %" PRIu32 " has more free memory than is possible", i);
    return 0;
}

static int check_workloads(const Check *check)
{
    const World *w = check->world;

    for (size_t i = 0; i < w->n_workloads; i++) {
        if (!string_ok(check, w->workloads[i].name, false))
            return broken(check, "the name of workload %zu is not interned", i);
        for (size_t j = 0; j < i; j++)
            if (w->workloads[i].name == w->workloads[j].name)
                return broken(check, "workloads %zu and %zu have the same name", j, i);
        if (check_bucket(check, &w->workloads[i].cross_node) < 0)
            return -EUCLEAN;
    }
    return 0;
}

static bool is_outside(const World *w, CpuMask nodes)
{
    return nodes && hwloc_bitmap_last(nodes) >= (int)w->topology->n_nodes;
}

static int check_group(const Check *check, const Group *g)
{
    const World *w = check->world;

    if (g->id == 0 || g->id >= w->next_group_id)
        return broken(check, "group id %" PRIu64 " was never assigned", g->id);
    if (g > w->groups && g->id <= g[-1].id)
        return broken(check, "group %" PRIu64 " is out of order", g->id);
    if (g->workload.i < 0 || (size_t)g->workload.i >= w->n_workloads)
        return broken(check, "group %" PRIu64 " belongs to no workload", g->id);
    if (!string_ok(check, g->key, false))
        return broken(check, "the key of group %" PRIu64 " is not interned", g->id);
    if (!mask_ok(check, g->home) || !mask_ok(check, g->home_nodes) || !mask_ok(check, g->before_nodes) ||
        !mask_ok(check, g->wish_nodes))
        return broken(check, "the home of group %" PRIu64 " is not interned", g->id);
    if (!g->home != !g->home_nodes)
        return broken(check, "group %" PRIu64 " has a home without nodes, or nodes without a home", g->id);
    if ((g->home_nodes && hwloc_bitmap_iszero(g->home_nodes)) || is_outside(w, g->home_nodes) ||
        is_outside(w, g->before_nodes) || is_outside(w, g->wish_nodes))
        return broken(check, "group %" PRIu64 " has a home outside the topology", g->id);
    return 0;
}

static int check_move(const Check *check, const Process *p)
{
    const CpuMask nodes[] = {p->memory.to, p->memory.last, p->memory.before};

    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        if (!mask_ok(check, nodes[i]) ||
            (nodes[i] && (hwloc_bitmap_iszero(nodes[i]) ||
                          hwloc_bitmap_last(nodes[i]) >= (int)check->world->topology->n_nodes)))
            return broken(check, "memory of process %d moves outside the topology", p->pid);
    if (p->memory.to && !p->memory.by_use && p->memory.to != p->memory.last)
        return broken(check, "memory of process %d moves to other nodes than its last request named", p->pid);
    if (p->memory.stripe && !p->memory.last)
        return broken(check, "memory of process %d is marked as interleaved but has no target nodes", p->pid);
    if (!p->memory.to && (p->memory.todo_bytes > 0 || p->memory.by_use))
        return broken(check, "memory of process %d has bytes to move but no request in flight", p->pid);
    return 0;
}

static int check_process(const Check *check, const Process *p)
{
    const World *w = check->world;

    if (p->pid <= 0 || (p > w->processes && p->pid <= p[-1].pid))
        return broken(check, "process %d is out of order", p->pid);
    if (!string_ok(check, p->comm, false) || !string_ok(check, p->cgroup, false) ||
        !string_ok(check, p->unit, true) || !string_ok(check, p->slice, true) ||
        !string_ok(check, p->shared, true) || !mask_ok(check, p->cpuset) ||
        !mask_ok(check, p->gather.nodes) || !mask_ok(check, p->gather.cpuset))
        return broken(check, "a name or mask of process %d is not interned", p->pid);
    if (p->workload.i < -1 || p->workload.i >= (int64_t)w->n_workloads)
        return broken(check, "process %d belongs to a workload that does not exist", p->pid);
    if (p->group.i < -1 || p->group.i >= (int64_t)w->n_groups)
        return broken(check, "process %d is in a group that does not exist", p->pid);
    if (p->group.i >= 0 && w->groups[p->group.i].workload.i != p->workload.i)
        return broken(check, "process %d is in a group of another workload", p->pid);
    if (!p->node_bytes != !p->node_bytes_usec || p->node_bytes_usec > w->now_usec)
        return broken(check,
                      "the residency of process %d and its time do not match, or the time is after "
                      "now",
                      p->pid);
    for (uint32_t i = 0; p->node_bytes && i < w->topology->n_nodes; i++)
        if (p->node_bytes[i] > WORLD_MEMORY_MAX)
            return broken(check, "process %d has more memory than is possible", p->pid);
    if ((!p->node_bytes && p->bound_bytes > 0) || p->bound_bytes > WORLD_MEMORY_MAX)
        return broken(check, "process %d has bound memory of unknown residency, or more than is possible",
                      p->pid);
    if (!p->node_bytes && p->grown_bytes > 0)
        return broken(check, "process %d has grown memory of unknown residency", p->pid);
    if (p->stall_permille > (p->stall_usec > 0 ? 1000 : 0) || p->stall_usec > w->now_usec)
        return broken(check, "process %d waits for memory longer than it ran, or was counted after now",
                      p->pid);
    if (p->traffic_mb > (p->stall_usec > 0 ? WORLD_TRAFFIC_MAX : 0))
        return broken(check, "process %d has too much memory traffic, or traffic that was not counted",
                      p->pid);
    if (is_outside(w, p->gather.nodes) || (!p->gather.nodes && p->gather.until_usec > 0))
        return broken(check, "memory of process %d is to go back to nodes outside the topology, or to none",
                      p->pid);
    return check_move(check, p);
}

static int check_task(const Check *check, const Task *t)
{
    const World *w = check->world;
    const Lease *lease;
    TaskKey key;

    if (t->process.i < 0 || (size_t)t->process.i >= w->n_processes)
        return broken(check, "task %d belongs to no process", t->tid);
    if (t->tid <= 0 || (t > w->tasks && (t->process.i < t[-1].process.i ||
                                         (t->process.i == t[-1].process.i && t->tid <= t[-1].tid))))
        return broken(check, "task %d is out of order", t->tid);
    if (t->task_class >= TASK_CLASS_MAX || t->hands >= TASK_HANDS_MAX)
        return broken(check, "the class or eligibility of task %d is out of range", t->tid);
    if (!memchr(t->comm, 0, sizeof(t->comm)))
        return broken(check, "the name of task %d is not terminated", t->tid);
    if (t->last_cpu.i < -1)
        return broken(check, "the last CPU of task %d is out of range", t->tid);
    if (MAX(MAX(t->run_permille, t->wait_permille), MAX(t->run_before_permille, t->wait_before_permille)) >
            LOAD_FULL_PERMILLE ||
        MAX(t->run_ewma_permille, t->wait_ewma_permille) > LOAD_FULL_PERMILLE)
        return broken(check, "task %d has a load above one CPU", t->tid);
    if (!mask_ok(check, t->allowed) || !mask_ok(check, t->original))
        return broken(check, "a mask of task %d is not interned", t->tid);
    if (t->last_move_usec > w->now_usec)
        return broken(check, "task %d was moved after now", t->tid);
    if (t->home_node.i < -1 || t->home_node.i >= (int32_t)w->topology->n_nodes)
        return broken(check, "the home node of task %d is out of range", t->tid);
    if (t->use &&
        (t->use->measured_usec == 0 || t->use->measured_usec > w->now_usec ||
         t->use->private_permille > 1000 || t->use->buddy.tid < 0 || t->use->stay.node.i < -1 ||
         t->use->stay.node.i >= (int32_t)w->topology->n_nodes || t->use->stay.usec > t->use->measured_usec))
        return broken(check, "the memory use of task %d is out of range", t->tid);

    if (t->lease == -1)
        return 0;
    if (t->lease < 0 || (size_t)t->lease >= w->n_leases)
        return broken(check, "task %d has a lease that does not exist", t->tid);
    lease = &w->leases[t->lease];
    key = world_task_key(w, t);
    if (key.pid != lease->task.pid || key.tid != lease->task.tid ||
        key.start_ticks != lease->task.start_ticks)
        return broken(check, "task %d has the lease of another task", t->tid);
    if (!t->original)
        return broken(check, "task %d is lent a CPU and has no mask to put back", t->tid);
    return 0;
}

static int check_lease(const Check *check, const Lease *l)
{
    const World *w = check->world;

    if (l > w->leases && l->cpu.i <= l[-1].cpu.i)
        return broken(check, "the lease of CPU %d is out of order", l->cpu.i);
    if (!topology_cpu(w->topology, l->cpu))
        return broken(check, "CPU %d is lent but not in the topology", l->cpu.i);
    if (l->group_id == 0 || l->group_id >= w->next_group_id)
        return broken(check, "CPU %d is lent to a group that never existed", l->cpu.i);
    if (l->since_usec > l->until_usec || l->since_usec > w->now_usec || l->since_tick > w->tick)
        return broken(check, "the lease of CPU %d begins after its end, or after now", l->cpu.i);
    return 0;
}

/* check_task() has checked that a task with a lease has its own. So no two tasks share one, and with as many
 * leases as such tasks each lease is held. */
static int check_held(const Check *check)
{
    const World *w = check->world;
    size_t n = 0;

    for (size_t i = 0; i < w->n_tasks; i++)
        n += w->tasks[i].lease >= 0;
    if (n != w->n_leases)
        return broken(check, "%zu CPUs are lent, but %zu tasks have a lease", w->n_leases, n);
    return 0;
}

static int check_all(const Check *check)
{
    const World *w = check->world;
    int r;

    if (topology_check(w->topology) < 0)
        return broken(check, "the topology is not consistent");
    if (w->next_group_id == 0)
        return broken(check, "the next group would have id 0");
    r = check_bucket(check, &w->cross_node);
    if (r == 0)
        r = check_cpus(check);
    if (r == 0)
        r = check_nodes(check);
    if (r == 0)
        r = check_workloads(check);
    for (size_t i = 0; r == 0 && i < w->n_groups; i++)
        r = check_group(check, &w->groups[i]);
    for (size_t i = 0; r == 0 && i < w->n_processes; i++)
        r = check_process(check, &w->processes[i]);
    for (size_t i = 0; r == 0 && i < w->n_tasks; i++)
        r = check_task(check, &w->tasks[i]);
    for (size_t i = 0; r == 0 && i < w->n_leases; i++)
        r = check_lease(check, &w->leases[i]);
    return r == 0 ? check_held(check) : r;
}

int world_check(const World *world, char **ret_what)
{
    const Check check = {.world = world, .ret_what = ret_what};

    return check_all(&check);
}
