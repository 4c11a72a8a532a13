/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Interleaves memory of processes that already run (P17). No process can set the memory policy of another, but memory
 * can be moved: the address of each block of 2 MB names its node, so that all nodes get as much.
 *
 * Mode=interleave asks for it. Under Mode=auto, when no evidence shows what threads use, it is done if a process needs
 * more CPUs than the node with nearly all of its memory has, so that some threads run beside it and others are remote
 * from all of it (EvenOut). In evidence D two cases look alike:
 *
 * - all threads use all of it, or each a part that the main thread touched first. The program is done when a thread is
 *   that is remote from everything. Interleaved, all are equally fast;
 * - a few threads have most of it and run beside it. That is right, and interleaving makes them slower. To look like
 *   that, the threads beside it must have three times as much of it as the others.
 *
 * Example, m the share of the time that waits for local memory, r how much longer remote memory takes: of two threads
 * on two nodes one takes 1, the other 1 - m + m r. Interleaved, both take 1 - m + m (1 + r) / 2. With m = 1 and r = 2,
 * 2 becomes 1.5: a program whose threads have equal work is done in three quarters of the time, as with memory that
 * each thread touched itself. A server whose threads take work as they can goes from (1 + 1 / 2) / 2 to 1 / 1.5, a
 * ninth less. With m = 0.5 it is a sixth of the time, and a twenty-fifth of the work. So it is done unless a policy
 * says that the process is a server.
 *
 * Unevenness of up to a fiftieth of all memory is left alone, so at most one access of fifty goes to another node.
 * Blocks that are not full, and mappings that do not begin with one, leave some of it; huge pages of stacks, which are
 * 8 MB apart, all go to one node. What is uneven after a round of interleaving is so for that reason, or was allocated
 * since. So each further round over the same nodes counts as in vain, and waits twice as long after the last. After one
 * that moved nothing, as much is left alone.
 *
 * What it does badly: a block goes where its address says, not where too little is. When two nodes become three, two
 * blocks of three move, where one would do. */

#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

/* Of all memory, more than so many fourths on one node is nearly all. An even process of two nodes is as far from
 * that as one that lies on a single node. */
#define MOST_FOURTHS 3U

/* It stays there for more than a slow tick after the threads have come. */
#define STAYS_USEC 1000000U

/* Using so many fourths of what the CPUs of the node can give, a process has a fifth of its time on other nodes. */
#define WIDE_FOURTHS 5U

static uint64_t all_bytes(const Process *process, uint32_t n_nodes)
{
    uint64_t all = 0;

    for (uint32_t i = 0; process->node_bytes && i < n_nodes; i++)
        all += process->node_bytes[i];
    return all;
}

/* The node that has nearly all of it; -1: none. */
static int find_most(const Process *process, uint32_t n_nodes)
{
    uint64_t all = all_bytes(process, n_nodes);

    for (uint32_t i = 0; all >= TOUCHES_BLOCK_BYTES && i < n_nodes; i++)
        if (process->node_bytes[i] > all / 4 * MOST_FOURTHS)
            return (int)i;
    return -1;
}

bool stripe_concerns(const Planner *p, const Process *process)
{
    const Policy *policy = p->s->workloads[process->workload.i].policy;

    return policy->mode == POLICY_MODE_INTERLEAVE ||
           (policy->mode == POLICY_MODE_AUTO && find_most(process, p->world->topology->n_nodes) >= 0);
}

/* What its threads run, and what the CPUs of a node can give; permille of a CPU. Not the demand of the group: of many
 * processes with one thread each, each is beside its memory. */
static uint64_t process_run(const Follow *f)
{
    const World *world = f->p->world;
    size_t n, first = world_process_tasks(world, f->process, &n);
    uint64_t sum = 0;

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone)
            sum += world->tasks[i].run_ewma_permille;
    return sum;
}

static uint64_t node_capacity(const Follow *f, int node)
{
    hwloc_bitmap_t set = f->p->s->set;

    if (hwloc_bitmap_and(set, f->p->world->topology->nodes[node].cpus, f->p->s->usable) < 0)
        f->p->error = -ENOMEM;
    return (uint64_t)hwloc_bitmap_weight(set) * 1000;
}

/* Whether its threads are so many that some of them must be far from it. */
static bool is_wide(const Follow *f, int most)
{
    uint64_t run = process_run(f), limit = node_capacity(f, most) / 4 * WIDE_FOURTHS;

    return run > limit ? true : follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_FITS_NODE, run, limit);
}

/* Whether that is how it is, and not how it begins, or what we made of it. */
static bool stays(const Follow *f)
{
    const Process *process = f->process;
    uint64_t age = follow_age_usec(f, process->started_usec);
    uint64_t measured = process->node_bytes_usec - MIN(follow_home_usec(f), process->node_bytes_usec);
    uint64_t moved = follow_age_usec(f, MAX(process->memory.since_usec, process->memory.over_usec));

    if (age < f->policy->min_age_usec)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_TOO_YOUNG, age, f->policy->min_age_usec);
    if (measured < STAYS_USEC)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_UNSETTLED, measured, STAYS_USEC);
    if (process->memory.last && moved < f->policy->ping_pong_usec)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_RESIDENCY, moved, f->policy->ping_pong_usec);
    return true;
}

/* Whether it is seen what its threads use: then each can be put next to that (P11). */
static bool is_seen(const Follow *f)
{
    const World *world = f->p->world;
    size_t n, first = world_process_tasks(world, f->process, &n);

    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone && world->tasks[i].use)
            return true;
    return false;
}

static bool may_even_out(const Follow *f)
{
    int most = find_most(f->process, f->p->world->topology->n_nodes);

    if (most < 0 || !hwloc_bitmap_isset(f->to, (unsigned)most) || is_seen(f))
        return false;
    if (!f->policy->even_out)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_EVEN_OUT_OFF, 0, 0);
    return is_wide(f, most) && stays(f);
}

/* Whether its cpuset lets it run on all of them: memory on others is never near. */
static bool reaches_all(const Follow *f)
{
    const TopologyNode *nodes = f->p->world->topology->nodes;

    for (int i = hwloc_bitmap_first(f->to); i >= 0; i = hwloc_bitmap_next(f->to, i))
        if (!f->process->cpuset || !hwloc_bitmap_intersects(f->process->cpuset, nodes[i].cpus))
            return false;
    return true;
}

PlanRule stripe_rule(const Follow *f)
{
    if (f->g->goes_back && gather_is_undone(f->p->world, f->policy, f->process))
        return PLAN_RULE_GO_BACK;
    if (!f->to || hwloc_bitmap_weight(f->to) < 2 || !reaches_all(f))
        return PLAN_RULE_FOLLOW_HOME;
    if (f->policy->mode == POLICY_MODE_INTERLEAVE)
        return PLAN_RULE_INTERLEAVE;
    return f->policy->mode == POLICY_MODE_AUTO && may_even_out(f) ? PLAN_RULE_EVEN_OUT
                                                                  : PLAN_RULE_FOLLOW_HOME;
}

uint64_t stripe_share(const Follow *f)
{
    return all_bytes(f->process, f->p->world->topology->n_nodes) / (uint64_t)hwloc_bitmap_weight(f->to);
}
