/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by follow.c, its parts and stripe.c: one process whose memory is considered. */

#include "plan/memory/follow.h"
#include "plan/planner.h"
#include "world/touches.h"

#define MECHANISM_FILTER   13 /* P13 */
#define MECHANISM_STRIPE   17 /* P17 */
#define MECHANISM_BLOCKS   18 /* P18 */
#define MECHANISM_SHORTAGE 19 /* P19 */
#define MECHANISM_RATE     20 /* P20 */

/* The mover takes CPU time from the process it moves for, which runs at half speed while its memory is
 * remote: the sooner it is done the better. At the same priority it took three times as long. */
#define FOLLOW_MOVER_NICE (-10)

typedef struct Follow {
    Planner *p;
    const Process *process;
    const Group *group;
    const PlannerGroup *g;
    const Policy *policy;
    PlanRule rule;          /* why memory moves; if stripe_is(), it is interleaved */
    uint64_t outside_bytes; /* that lie where they should not */
    uint64_t few_bytes;     /* up to this many are not worth a move */
    CpuMask from, to;       /* NodeIx */
    CpuMask due;            /* the mask of its threads; NULL: somebody else pinned them */
    bool silent;            /* refusals are not noted */
} Follow;

/* Fewer bytes are not worth a walk over the process: what could be moved in that time. */
#define FOLLOW_FEW_BYTES ((uint64_t)256 << 10)

/* Records a refusal unless f->silent; returns false. */
static inline bool follow_refuse(const Follow *f, uint8_t mechanism, PlanReason reason, uint64_t value,
                                 uint64_t limit)
{
    if (!f->silent)
        planner_refuse_process(f->p, mechanism, reason, f->process, value, limit);
    return false;
}

/* When the group got its home; now, if in this plan. */
static inline uint64_t follow_home_usec(const Follow *f)
{
    bool new = f->g->home != f->group->home || f->g->roams != f->group->roams;

    return new ? f->p->world->now_usec : f->group->last_home_usec;
}

/* follow-nodes.c: where memory may lie */

bool follow_has_memory(const Topology *topology, uint32_t node);

/* Whether a pinned thread may run on the node, and it has memory. */
bool follow_pin_takes(const World *world, const Process *process, uint32_t node);

/* Whether memory of a group may lie on the node: it has memory and is in the home, or, if the group roams, a
 * usable CPU. */
bool follow_takes_memory(const World *world, CpuMask home_nodes, uint32_t node);

/* The nodes for memory of a group; NULL: none. */
CpuMask follow_find_nodes(Planner *p, CpuMask home_nodes);

/* Finds misplaced memory: outside f->to or, by f->rule, beyond a node's share if it is interleaved. Sets f->from and
 * adds to f->outside_bytes. */
void follow_find_outside(Follow *f);

/* follow.c */

/* Sums up growth of groups and what requests in flight will bring to each node. False: out of memory. */
bool follow_gather(Planner *p);

/* Adds the request to the plan: for the ranges of `use`, or for all of the process if NULL. */
void follow_order(const Follow *f, uint8_t mechanism, const PlanUse *use);

/* follow-when.c */

/* Whether memory follows its home, to f->to. Sets f->rule, f->from, f->outside_bytes and f->few_bytes. Records why not;
 * nothing if no memory is misplaced, or only that of a group that roams, which is not interleaved. */
bool follow_goes_home(Follow *f);

/* Whether f->outside_bytes found by use go to f->to. Records why not; nothing if the home changed, or gets all. */
bool follow_goes_to_users(const Follow *f);

/* A request for all memory of a process, to memory->to, was accepted: a longer pause follows if it goes back to where
 * the memory was recently. Call before memory->before and ->last change. `policy` may be NULL. */
void follow_pause_begun(const World *world, const Policy *policy, MemoryMove *memory);

/* The request `memory` is over: counts those in vain, and sets how long the process rests and how much of its memory
 * cannot be moved. `policy` may be NULL. */
void follow_pause_over(const Policy *policy, const FollowResult *result, MemoryMove *memory);

/* What each destination node keeps free for growth of the group: its share of the last growth. The group is
 * measured again when it is twice as old. */
uint64_t follow_reserve_bytes(const Follow *f);

/* follow-help.c */

/* Source nodes whose CPUs may help to move the memory (NodeIx); NULL: none. */
CpuMask follow_help(const Follow *f);

/* stripe.c: P17 */

/* Whether memory of a process whose group roams is considered at all. Records no refusal. */
bool stripe_concerns(const Planner *p, const Process *process);

/* The rule by which memory goes to f->to. Records a refusal if something speaks against evening it out. */
PlanRule stripe_rule(const Follow *f);

static inline bool stripe_is(PlanRule rule)
{
    return rule == PLAN_RULE_INTERLEAVE || rule == PLAN_RULE_EVEN_OUT || rule == PLAN_RULE_GO_BACK;
}

/* Bytes that each node of f->to should have. */
uint64_t stripe_share(const Follow *f);
