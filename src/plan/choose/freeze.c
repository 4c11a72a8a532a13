/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Freezing (P16). A group on one node with nine tenths of its memory is frozen, and thawed when less than
 * three quarters are left there. Packing alone would evict it whenever a larger group gains more than it
 * loses. But its loss is certain, and the gain of the other one depends on memory that has not converged yet.
 * So a frozen group is never evicted for one that is not frozen, and the others find their places around it.
 *
 * It is evicted for other frozen groups. Of those on one node, the ones with most demand are held as long as
 * all of them fit, and the rest is packed like other groups. Two groups of 5 CPUs each on a node of 8: the
 * first is held, the second is not. A group that has outgrown its node is free in the same way. So is one
 * that wants more than the node has cores, where these have siblings: it shares cores that others may have to
 * spare. So are groups that together want more of the node's memory bandwidth than it can give.
 *
 * A group is not frozen if caches hold all of its memory, if it is to be spread, or if its threads have no
 * reason to be together and press on the node's memory (P5). */

#include "plan/choose/freeze.h"
#include "plan/choose/cpusets.h"

#include "plan/planner.h"
#include "plan/scan/converge.h"

/* Up to this a node is fully busy, not overloaded; as in pack/own.c (P6). */
#define FULL_PERCENT 108U

/* What groups that stay take of each node. */
typedef struct Held {
    uint64_t demand[PACK_NODES_MAX], traffic[PACK_NODES_MAX];
    uint64_t sliced[CHOOSE_CPUSETS_MAX][PACK_NODES_MAX]; /* demand of the groups of each cpuset */
    uint64_t share_permille; /* permille of what a node's memory gives that may be wanted of it */
} Held;

static void hold(Held *held, uint32_t node, const PackGroup *pack)
{
    held->demand[node] += pack->demand_permille;
    held->traffic[node] += pack->traffic_mb;
    if (pack->cpuset > 0)
        held->sliced[pack->cpuset - 1][node] += pack->demand_permille;
}

static bool is_one_node(PackNodes nodes)
{
    return nodes != 0 && (nodes & (nodes - 1)) == 0;
}

static bool presses(const Planner *p, const Group *group, const PackGroup *pack)
{
    return planner_presses(p->world->topology, group->home, group->home_nodes,
                           (uint64_t)pack->demand_permille * pack->private_permille / 1000);
}

static bool may_freeze(const Planner *p, const Group *group, const PackGroup *pack)
{
    const PlannerGroup *g = &p->s->groups[group - p->world->groups];

    return group->home && policy_chooses_nodes(p->s->workloads[group->workload.i].policy) &&
           g->memory_known && !g->reverts && is_one_node(pack->home) && (pack->home & ~pack->allowed) == 0 &&
           (pack->mode == PACK_MODE_COMPRESS || pack->mode == PACK_MODE_AUTO) && !presses(p, group, pack);
}

static bool is_frozen(const Planner *p, const Group *group, const PackGroup *pack, uint32_t *ret_strength)
{
    NodeIx node;

    *ret_strength = converge_share(pack->memory_bytes, p->world->topology->n_nodes, &node);
    return may_freeze(p, group, pack) &&
           world_sum_nodes(p->world, pack->memory_bytes) >= PLANNER_MEMORY_MIN &&
           pack->home == (PackNodes)1 << node.i && converge_is_frozen(group->converged, *ret_strength);
}

/* The node to which its policy, its cpuset or the kernel binds it, even without a home yet: it can be nowhere
 * else. 0: none. */
static PackNodes bound_to(const Planner *p, size_t index, const PackGroup *pack)
{
    if (is_one_node(pack->allowed) && (!pack->stays || pack->home == pack->allowed))
        return pack->allowed;
    return is_one_node(pack->home) && pack->stays && p->s->groups[index].n_placeable == 0 ? pack->home : 0;
}

/* Bound groups take their room first. */
static void hold_bound(const Planner *p, Held *held)
{
    for (size_t i = 0; i < p->s->n_order; i++) {
        const PackGroup *pack = &p->s->pack_groups[i];
        PackNodes node = bound_to(p, p->s->order[i].index, pack);

        if (node != 0)
            hold(held, (uint32_t)__builtin_ctzll(node), pack);
    }
}

/* Whether its threads share cores there because the node has too few (siblings_cost() in pack/cost.c). */
static bool is_squeezed(const PackGroup *pack, const PackNode *node)
{
    return node->cores_permille > 0 && node->cores_permille < node->capacity_permille &&
           pack->demand_permille > node->cores_permille;
}

/* Traffic that all groups together want, in permille of what nodes give; at least 1000. */
static uint64_t share_of_traffic(const Planner *p, const PackNode *nodes)
{
    uint64_t given = 0, wanted = 0;

    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
        given += nodes[i].traffic_mb;
    for (size_t i = 0; i < p->s->n_order; i++)
        wanted += p->s->pack_groups[i].traffic_mb;
    return wanted > given && given > 0 ? wanted * 1000 / given : 1000;
}

/* Whether its cpuset has too little of the node for the group and those that are held there. */
static bool is_beyond_slice(const Planner *p, const Held *held, const PackGroup *pack, uint32_t node)
{
    uint32_t slice = pack->cpuset - 1;

    return pack->cpuset > 0 &&
           held->sliced[slice][node] + pack->demand_permille >
               (uint64_t)p->s->slices[(size_t)slice * p->world->topology->n_nodes + node] * FULL_PERCENT /
                   100;
}

static bool is_too_much(const Planner *p, const Held *held, const PackGroup *pack, uint32_t node,
                        const PackNode *offer)
{
    uint64_t traffic = held->traffic[node] + pack->traffic_mb;

    return held->demand[node] + pack->demand_permille >
               (uint64_t)offer->capacity_permille * FULL_PERCENT / 100 ||
           is_beyond_slice(p, held, pack, node) ||
           (offer->traffic_mb > 0 && traffic * 1000 > offer->traffic_mb * held->share_permille);
}

void freeze_groups(Planner *p, const PackNode *nodes)
{
    Held held = {.share_permille = share_of_traffic(p, nodes)};

    hold_bound(p, &held);
    for (size_t i = 0; i < p->s->n_order; i++) {
        size_t index = p->s->order[i].index;
        const Group *group = &p->world->groups[index];
        PackGroup *pack = &p->s->pack_groups[i];
        uint32_t strength, node;
        bool frozen = is_frozen(p, group, pack, &strength);

        if (frozen != group->converged)
            planner_note(p, APPEND(p->plan->freezes, p->plan->freezes_capacity, p->plan->n_freezes,
                                   (PlanFreeze){group->id, frozen, strength}));
        if (!frozen || bound_to(p, index, pack) != 0)
            continue;
        node = (uint32_t)__builtin_ctzll(pack->home);
        if (is_squeezed(pack, &nodes[node]) || is_too_much(p, &held, pack, node, &nodes[node]))
            continue;
        hold(&held, node, pack);
        pack->stays = true;
        if (!p->s->groups[index].stay.stays)
            p->s->groups[index].stay = (PlannerStay){
                .stays = true,
                .reason = PLAN_REASON_CONVERGED,
                .value = strength * 1000ULL / CONVERGE_ONE,
                .limit = CONVERGE_THAW * 1000ULL / CONVERGE_ONE,
            };
    }
}
