/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rules of this room that a simulation can switch off, each alone, to see what it is worth (`./dev bench ablation`).
 * The daemon has all of them. What a policy can switch off is not among them. */

#include "world/world.h"

typedef enum AblationRule {
    ABLATION_NEAREST,       /* P2: the nearest idle CPU is lent; else the first */
    ABLATION_MOST_FIRST,    /* P2: who lacks most is served first; else the oldest group */
    ABLATION_BACKOFF,       /* P7: a pass in vain doubles the pause before the next */
    ABLATION_COOLDOWN,      /* P7: a CPU that was recalled for its owner is not lent at once */
    ABLATION_LEAN,          /* P4: among nodes that are as good, a group stays where it runs */
    ABLATION_IN_PLACE,      /* P4: who is where it belongs is not confined in its first second */
    ABLATION_IMBALANCE,     /* P5: allowed imbalance between nodes */
    ABLATION_SIBLINGS,      /* P15: two threads on one core cost */
    ABLATION_PUSH,          /* P4: who shares a core is pushed to an idle one of its home */
    ABLATION_OTHERS,        /* P15: what others run counts */
    ABLATION_BOUND,         /* P15: who is bound by somebody else counts where it is */
    ABLATION_REACH,         /* P15: and takes no more of a node than the CPUs it may use; nor does who is in a cpuset */
    ABLATION_FAIR_SHARE,    /* P15: on a full machine every demand is less */
    ABLATION_PAUSES,        /* P15: threads that pause want more CPUs at times than on average */
    ABLATION_ALONE,         /* P5, P14: what threads use alone presses on a node, and need not be together */
    ABLATION_TRAFFIC,       /* P15: what wants more than a node's memory can give is divided over several */
    ABLATION_SLOWER,        /* P15, P18: memory that was brought together, in vain, goes back where it lay */
    ABLATION_STALL,         /* P15: who hardly waits for memory need not be near it */
    ABLATION_SORTED,        /* P15: and where that lies beside them already, being apart costs nothing */
    ABLATION_OUTGROWN,      /* P15: a first home that is too small is given up at once */
    ABLATION_BEGUN,         /* P15: who began within a tick wants a CPU; a first home waits to know */
    ABLATION_AWAIT_MEMORY,  /* P15: a first home waits for where its memory is */
    ABLATION_AWAIT_APART,   /* P4, P15: and, where that is on several nodes, for who uses it */
    ABLATION_IN_VAIN,       /* P15: who is beside its memory gets no home where all CPUs are busy */
    ABLATION_LOANS,         /* P2, P15: living on loans instead of a shared node */
    ABLATION_STARVES,       /* P15: who starves need not wait for its memory to arrive */
    ABLATION_BESIDE,        /* P15: beside the kernel's balancing, what is wide is left to it */
    ABLATION_FREEZE,        /* P16: who has converged is not evicted */
    ABLATION_APART,         /* P11: nodes for single threads */
    ABLATION_POOL,          /* P11: and all share the CPUs of the home where that is tried and they wait less */
    ABLATION_ROOM,          /* P15: and where other groups leave room for them */
    ABLATION_BUDDIES,       /* P14: threads that share go together */
    ABLATION_FEW,           /* P14, P15: sets of few threads, which a node holds each, need not be together */
    ABLATION_DIVIDED,       /* P14: a set of few threads that no node holds is divided over some */
    ABLATION_DISTANCES,     /* P11: and over nodes that are near each other */
    ABLATION_SPILL,         /* P15: and one that is too much for its node gives some away */
    ABLATION_RELIEVE,       /* P15: threads leave a crowded node of their home */
    ABLATION_ANEW,          /* P15: threads are assigned anew where that gains much (flipping) */
    ABLATION_AWAIT_USE,     /* P13: memory does not follow while it is being found out who uses it */
    ABLATION_PINNED,        /* P18: memory follows threads that somebody else pinned */
    ABLATION_TWO_USERS,     /* P13: nor where threads pinned elsewhere use it */
    ABLATION_HELP,          /* P18: CPUs of the nodes that memory leaves help */
    ABLATION_BALANCE,       /* P13: shared blocks move only into balance */
    ABLATION_TRIES,         /* P13: a block that does not go is let be */
    ABLATION_REST,          /* P13: a block that moved rests */
    ABLATION_STRIPE_SHARED, /* P17: what many threads are seen to share is interleaved */
    ABLATION_STAYS,         /* P13, P17: threads without a node use their memory from where they stay */
    ABLATION_BUSY,          /* P10: who begins or ends to work is seen anew */
    ABLATION_PARTS,         /* P12: a cgroup that fits no node is not one group */
    ABLATION_FIRST_ROUNDS,  /* P10: the first rounds are fast */
    ABLATION_MAX,
    ABLATION_INVALID = -EINVAL,
} AblationRule;

/* "nearest", "two-users"; NULL-terminated. */
extern const char *const ablation_names[];

/* The rule of that name (AblationRule), or -EINVAL. */
int ablation_find(const char *name);

/* Whether a rule is in force. */
static inline bool rule_holds(const World *world, AblationRule rule)
{
    return (world->ablated >> rule & 1) == 0;
}
