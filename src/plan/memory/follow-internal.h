/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by follow.c, its parts and stripe.c: one process whose memory is considered. */

#include "plan/planner.h"
#include "world/touches.h"

#define MECHANISM_FILTER   13 /* P13 */
#define MECHANISM_STRIPE   17 /* P17 */
#define MECHANISM_BLOCKS   18 /* P18 */
#define MECHANISM_SHORTAGE 19 /* P19 */
#define MECHANISM_RATE     20 /* P20 */

/* The thread that moves takes its CPU from the process it moves for, which runs at half speed as long as its memory is
 * elsewhere: the sooner over the better. At the same priority it took three times as long. */
#define FOLLOW_MOVER_NICE (-10)

typedef struct Follow {
    Planner *p;
    const Process *process;
    const Group *group;
    const PlannerGroup *g;
    const Policy *policy;
    PlanRule rule;          /* FOLLOW_HOME, or one of those that stripe */
    uint64_t outside_bytes; /* that lie where they should not */
    uint64_t few_bytes;     /* so many of them are not worth it */
    CpuMask from, to;       /* NodeIx */
    bool silent;            /* refusals are not noted */
} Follow;

/* Less is not worth looking through a process: what is moved in the time that takes, and one part in so many of all it
 * has. What is dealt out over nodes is so by blocks (P18), and one block more or less is even. */
#define FOLLOW_FEW_BYTES ((uint64_t)256 << 10)
#define FOLLOW_FEW_PART  50U

/* Says no; returns false. */
bool follow_refuse(const Follow *f, uint8_t mechanism, PlanReason reason, uint64_t value, uint64_t limit);

/* How long ago that was. */
uint64_t follow_age_usec(const Follow *f, uint64_t then_usec);

/* Since when the group lives where it does; now, when this plan decides so. */
uint64_t follow_home_usec(const Follow *f);

bool follow_has_memory(const Topology *topology, uint32_t node);

/* Whether some thread that somebody else pinned may run on the node, and memory may lie there. */
bool follow_pin_takes(const World *world, const Process *process, uint32_t node);

/* Whether memory of a group is to lie on the node: it is of its home, or, where the group roams and has none, some
 * thread may run there. */
bool follow_takes_memory(const World *world, CpuMask home_nodes, uint32_t node);

/* Growth of groups, and what orders under way will still bring. False: memory is out. */
bool follow_gather(Planner *p);

/* Whether all of it that lies outside its home is to follow in the next plan. Says nothing. */
bool follow_is_due(const Follow *f);

/* Gives the order: for all of the process, or for what `use` (NULL: all) says. */
void follow_order(const Follow *f, uint8_t mechanism, const PlanUse *use);

/* Each refuses if not. What its policy says; what the machine says; what the memory of the nodes gives it (P15); P19;
 * P20: each order is given the whole rate, so a workload may have only one for a node at a time. */
bool follow_may(const Follow *f);
bool follow_is_time(const Follow *f);
bool follow_is_fed(const Follow *f);
bool follow_has_room(const Follow *f);
bool follow_has_rate(const Follow *f);

/* Counts what the process moves on the nodes its memory goes to, for those asked after it in this plan. */
void follow_speak_for_traffic(const Follow *f);

/* Of the nodes it comes from, those whose CPUs may help to move it (NodeIx); NULL: none. */
CpuMask follow_help(const Follow *f);

/* The share of each node in what the group may grow by until it is looked at again, which is when it is twice as
 * old: by as much as it grew last. */
uint64_t follow_reserve_bytes(const Follow *f);

/* stripe.c: P17 */

/* Whether memory of a process whose group roams is considered at all. Says nothing. */
bool stripe_concerns(const Planner *p, const Process *process);

/* How memory goes to f->to: the rule, with what is against evening it out refused. */
PlanRule stripe_rule(const Follow *f);

static inline bool stripe_is(PlanRule rule)
{
    return rule == PLAN_RULE_INTERLEAVE || rule == PLAN_RULE_EVEN_OUT || rule == PLAN_RULE_GO_BACK;
}

/* What each node of f->to is to have of it. */
uint64_t stripe_share(const Follow *f);
