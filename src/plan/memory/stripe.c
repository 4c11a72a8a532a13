/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Interleaves the memory of running processes (P17). No process can set another's memory policy, but memory
 * can be moved: the address of each 2 MB block names its node, so that all nodes get equal parts.
 *
 * Mode=interleave asks for it. Mode=auto does it, without evidence of what threads use, if a process needs
 * more CPUs than the node with nearly all of its memory has (EvenOut): some threads are then local to it, and
 * others remote from all of it. By residency two cases look alike:
 *
 * - All threads use all of the memory, or each uses a part that the main thread touched first. The program
 *   finishes when a thread does that is remote from everything. Interleaved, all are equally fast.
 * - A few threads have most of the memory, and are local to it. That is right, and interleaving makes them
 *   slower. To look like the first case, they must have three times as much as the others.
 *
 * Example: m is the share of the time that waits for local memory, r how much longer remote memory takes. Of
 * two threads on two nodes one takes 1, the other 1 - m + m r. Interleaved, both take 1 - m + m (1 + r) / 2.
 * With m = 1 and r = 2, 2 becomes 1.5: a program with equal work per thread finishes in three quarters of the
 * time, as with memory that each thread touched itself. A server whose threads take work as they can goes
 * from (1 + 1 / 2) / 2 to 1 / 1.5, a ninth less. With m = 0.5 the program gains a sixth of the time, and the
 * server loses a twenty-fifth of the work. So it is done unless a policy says that the process is a server.
 *
 * Unevenness of up to a fiftieth of all memory is left alone: at most one access in fifty goes to another
 * node. Some comes from blocks that are not full and mappings that do not begin at one; huge pages of stacks,
 * 8 MB apart, all go to one node. What is uneven after a round has these causes, or was allocated since. So
 * each further round over the same nodes counts as in vain, and doubles the pause. After one that moved
 * nothing, unevenness of that size is left alone.
 *
 * What it does badly: a block goes where its address says, not where memory is lacking. When two nodes become
 * three, two of three blocks move, where one would do. */

#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

/* More than this many fourths of all memory on one node is nearly all. An even process on two nodes is as far
 * from that as one on a single node. */
#define MOST_FOURTHS 3U

/* The memory must still be there a slow tick after the threads came. */
#define STAYS_USEC 1000000U

/* A process that uses this many fourths of what the node's CPUs can give spends a fifth of its time on other nodes. */
#define WIDE_FOURTHS 5U

/* The node with nearly all of the memory; -1: none. */
static int find_most(const World *world, const Process *process)
{
    uint64_t all = world_sum_nodes(world, process->node_bytes);

    for (uint32_t i = 0; all >= TOUCHES_BLOCK_BYTES && i < world->topology->n_nodes; i++)
        if (process->node_bytes[i] > all / 4 * MOST_FOURTHS)
            return (int)i;
    return -1;
}

bool stripe_concerns(const Planner *p, const Process *process)
{
    const Policy *policy = p->s->workloads[process->workload.i].policy;

    return policy->mode == POLICY_MODE_INTERLEAVE ||
           (policy->mode == POLICY_MODE_AUTO && find_most(p->world, process) >= 0);
}

/* CPU time of the threads, and what the usable CPUs of a node can give; permille of a CPU. Not the demand of
 * the group: of many single-threaded processes, each is local to its memory. */
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

    planner_note(f->p, hwloc_bitmap_and(set, f->p->world->topology->nodes[node].cpus, f->p->s->usable));
    return (uint64_t)hwloc_bitmap_weight(set) * 1000;
}

/* Whether the process runs so much that some threads must be remote from node `most`; refuses if not. */
static bool is_wide(const Follow *f, int most)
{
    uint64_t run = process_run(f), limit = node_capacity(f, most) / 4 * WIDE_FOURTHS;

    return run > limit ? true : follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_FITS_NODE, run, limit);
}

/* Whether this lasts, and is neither part of the start nor caused by our own moves; refuses if not. */
static bool stays(const Follow *f)
{
    const Process *process = f->process;
    uint64_t age = world_since(f->p->world, process->started_usec);
    uint64_t measured = process->node_bytes_usec - MIN(follow_home_usec(f), process->node_bytes_usec);
    uint64_t moved = world_since(f->p->world, MAX(process->memory.since_usec, process->memory.over_usec));

    if (age < f->policy->min_age_usec)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_TOO_YOUNG, age, f->policy->min_age_usec);
    if (measured < STAYS_USEC)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_UNSETTLED, measured, STAYS_USEC);
    if (process->memory.last && moved < f->policy->ping_pong_usec)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_RESIDENCY, moved, f->policy->ping_pong_usec);
    return true;
}

/* Whether evidence shows what threads use: each can then be placed beside that (P11). */
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
    int most = find_most(f->p->world, f->process);

    if (most < 0 || !hwloc_bitmap_isset(f->to, (unsigned)most) || is_seen(f))
        return false;
    if (!f->policy->even_out)
        return follow_refuse(f, MECHANISM_STRIPE, PLAN_REASON_EVEN_OUT_OFF, 0, 0);
    return is_wide(f, most) && stays(f);
}

/* Whether its cpuset reaches all these nodes: memory on others would never be local. */
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
    return world_sum_nodes(f->p->world, f->process->node_bytes) / (uint64_t)hwloc_bitmap_weight(f->to);
}
