/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* If a group needs a little more than one node, packing gives it two, even if other groups live on the second
 * one. There its threads compete with theirs. The kernel treats both nodes as equal, and half of what the
 * threads share is remote for each of them. A home of one node and single CPUs lent from the other are better
 * for both groups: threads run beside their memory, except for borrowers, which wait at home in turn, and the
 * groups on the other node get their CPUs back within two ticks.
 *
 * Example, two nodes of two CPUs, memory twice as far on the other node: A with three threads that share all
 * their memory, B with one. On both nodes, with memory interleaved, A does 3 / 1.5 = 2, as much as bound to
 * one of them. At home on one node and with one thread lent a CPU it does 2 + 1 / 2.
 *
 * A node is left out of the home when all of these hold:
 *
 *   other groups live there   a node without groups is given: lending gives less than owning;
 *   lending will do           what the group needs beyond its home fits the CPUs that the others leave idle
 *                             there, and is at most half of what it has at home: three threads for two CPUs
 *                             (S-UNEVEN);
 *   something would be lent   where cores have siblings: if its home has CPUs for all of it, no thread waits for
 *                             one, even if some share cores (S-SIBLINGS);
 *   lending is allowed        by Steal=, Scope=, NodeLimit= and MaxDistance=;
 *   its threads share memory  as far as is known. If most of them use their own, they have homes on several
 *                             nodes (thread-homes.c). */

#include "plan/choose/loans.h"

#include "plan/pack/pack.h"

/* Groups that want less on a node do not live there: they run there now and then, and no group should go
 * without the node for their sake. A choice of ours. */
#define LIVES_PERMILLE 500U

/* Threads that use more than this share of their memory alone have it beside them on several nodes, too. One such
 * thread of many is not enough: in the first rounds, what all share looks like one thread's own. A choice of ours. */
#define PRIVATE_PERMILLE 500U

/* CPUs lent are at most this part of those at home. */
#define LOANS_PART 2U

/* The part of a node that may be lacking: waiting for that is no worse than sharing two nodes. A group that
 * lives on loans goes on until half a node is lacking; demands of others come and go. */
#define WAITS_PART      8U
#define WAITS_PART_STAY 2U

/* Demand of the other groups on a node; those of several nodes count in equal parts. */
static uint64_t others_on(const Planner *p, size_t group, uint32_t node)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->s->n_order; i++) {
        PackNodes set = p->s->pack_sets[i];

        if (i != group && (set >> node & 1) != 0)
            sum += p->s->pack_groups[i].demand_permille / (uint32_t)__builtin_popcountll(set);
    }
    return sum;
}

static uint64_t room_on(const Planner *p, const PackNode *nodes, size_t group, uint32_t node)
{
    uint64_t others = others_on(p, group, node), capacity = nodes[node].capacity_permille;

    return capacity - MIN(capacity, others);
}

static bool may_borrow(const Planner *p, const Policy *policy, PackNodes home, uint32_t node)
{
    const Topology *topology = p->world->topology;

    if (!policy->steal || policy->scope != POLICY_SCOPE_MACHINE || p->n_cpu_nodes > policy->node_limit)
        return false;
    for (PackNodes rest = home; rest; rest &= rest - 1)
        if (topology->distances[(size_t)__builtin_ctzll(rest) * topology->n_nodes + node] <=
            policy->max_distance)
            return true;
    return false;
}

/* Whether the group may have all of its nodes but this one, and loans from there. */
static bool loans_will_do(const Planner *p, const PackNode *nodes, size_t group, uint32_t node)
{
    PackNodes home = p->s->pack_sets[group] & ~((PackNodes)1 << node);
    PackNodes now = p->s->pack_groups[group].home;
    uint64_t demand = p->s->pack_groups[group].demand_permille, had = 0, cores = 0, cpus = 0, lent, lack;

    for (PackNodes rest = home; rest; rest &= rest - 1) {
        had += room_on(p, nodes, group, (uint32_t)__builtin_ctzll(rest));
        cores += nodes[__builtin_ctzll(rest)].cores_permille;
        cpus += nodes[__builtin_ctzll(rest)].capacity_permille;
    }
    lent = demand - MIN(demand, had);
    if (cores > 0 && cores < cpus && (lent == 0 || p->s->pack_groups[group].steady_permille > cores))
        return false; /* nothing would be lent: no thread borrows a core because its sibling is busy */
    lack = nodes[node].capacity_permille / (now && now == (now & home) ? WAITS_PART_STAY : WAITS_PART);
    return others_on(p, group, node) + p->s->bound_permille[node] >= LIVES_PERMILLE &&
           lent <= room_on(p, nodes, group, node) + lack && lent * LOANS_PART <= had + lack;
}

/* Whether the group can do with one node less. Packing decides which one, near its memory and away from others. */
static bool has_too_many(const Planner *p, const PackNode *nodes, size_t group)
{
    const Policy *policy = p->s->workloads[p->world->groups[p->s->order[group].index].workload.i].policy;
    PackNodes set = p->s->pack_sets[group];

    for (PackNodes rest = set & (set - 1) ? set : 0; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        if (may_borrow(p, policy, set & ~((PackNodes)1 << i), (uint32_t)i) &&
            loans_will_do(p, nodes, group, (uint32_t)i))
            return true;
    }
    return false;
}

bool choose_loans(const Planner *p, const PackNode *nodes)
{
    bool any = false;

    for (size_t i = 0; i < p->s->n_order; i++) {
        size_t index = p->s->order[i].index;
        PackGroup *pack = &p->s->pack_groups[i];

        if (!policy_chooses_nodes(p->s->workloads[p->world->groups[index].workload.i].policy) ||
            pack->stays || pack->lone || (pack->mode != PACK_MODE_AUTO && pack->mode != PACK_MODE_COMPRESS) ||
            pack->private_permille > PRIVATE_PERMILLE || !has_too_many(p, nodes, i))
            continue;
        pack->max_nodes = (uint32_t)__builtin_popcountll(p->s->pack_sets[i]) - 1;
        any = true;
    }
    return any;
}
