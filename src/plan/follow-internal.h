/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What follow.c and stripe.c share: one process whose memory is considered. */

#include "plan/planner.h"

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
} Follow;

/* Less is not worth looking through a process: one block (P18), and one part in so many of all it has. */
#define FOLLOW_FEW_BYTES ((uint64_t)2 << 20)
#define FOLLOW_FEW_PART  50U

/* Says no; returns false. */
bool follow_refuse(const Follow *f, uint8_t mechanism, PlanReason reason, uint64_t value, uint64_t limit);

/* How long ago that was. */
uint64_t follow_age_usec(const Follow *f, uint64_t then_usec);

/* Since when the group lives where it does; now, when this plan decides so. */
uint64_t follow_home_usec(const Follow *f);

/* stripe.c: P17 */

#define MECHANISM_STRIPE 17

/* Whether memory of a process whose group roams is considered at all. Says nothing. */
bool stripe_concerns(const Planner *p, const Process *process);

/* How memory goes to f->to: the rule, with what is against evening it out refused. */
PlanRule stripe_rule(const Follow *f);

static inline bool stripe_is(PlanRule rule)
{
    return rule == PLAN_RULE_INTERLEAVE || rule == PLAN_RULE_EVEN_OUT;
}

/* What each node of f->to is to have of it. */
uint64_t stripe_share(const Follow *f);
