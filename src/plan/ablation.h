/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rules of this room that a simulation can switch off one by one, to see what each is worth (`./dev bench
 * ablation`). The daemon always has all of them. Rules that a policy can switch off are not among them. */

#include "world/world.h"

typedef enum AblationRule {
    ABLATION_NEAREST,       /* P2: the nearest idle CPU is lent; else the first */
    ABLATION_MOST_FIRST,    /* P2: the group that lacks most is served first; else the oldest */
    ABLATION_BACKOFF,       /* P7: a fruitless pass doubles the pause before the next */
    ABLATION_COOLDOWN,      /* P7: a CPU recalled for its owner is not lent again at once */
    ABLATION_LEAN,          /* P4: among equally good nodes, a group stays where it runs */
    ABLATION_IN_PLACE,      /* P4: a process beside its memory is not confined while it is young */
    ABLATION_IMBALANCE,     /* P5: allowed imbalance between nodes */
    ABLATION_SIBLINGS,      /* P15: two threads on one core cost */
    ABLATION_PUSH,          /* P4: threads that share a core are pushed to an idle one of their home */
    ABLATION_OTHERS,        /* P15: load of other programs counts */
    ABLATION_BOUND,         /* P15: groups bound by somebody else count on their CPUs */
    ABLATION_REACH,         /* P15: they, and groups in a cpuset, take no more than these CPUs give */
    ABLATION_FAIR_SHARE,    /* P15: on a full machine every demand is reduced */
    ABLATION_PAUSES,        /* P15: threads that pause want more CPUs at times than on average */
    ABLATION_ALONE,         /* P5, P14: memory used alone presses on a node; its users may be apart */
    ABLATION_TRAFFIC,       /* P15: groups that want more than a node's bandwidth, or its share, are divided */
    ABLATION_SLOWER,        /* P15, P18: memory brought together in vain goes back to where it lay */
    ABLATION_STALL,         /* P15: a group that hardly waits for memory need not be near it */
    ABLATION_SORTED,        /* P15: if each thread is beside its memory, being apart costs nothing */
    ABLATION_OUTGROWN,      /* P15: a first home that is too small is given up at once */
    ABLATION_BEGUN,         /* P15: a thread begun within a tick wants a CPU; a first home waits to know */
    ABLATION_AWAIT_MEMORY,  /* P15: a first home waits until it is known where its memory is */
    ABLATION_AWAIT_APART,   /* P4, P15: and, if that is several nodes, until it is known who uses it */
    ABLATION_IN_VAIN,       /* P15: a thread beside its memory gets no home while all CPUs are busy */
    ABLATION_LOANS,         /* P2, P15: living on loans instead of sharing a node */
    ABLATION_STARVES,       /* P15: a starving group need not wait for its memory to arrive */
    ABLATION_BESIDE,        /* P15: beside the kernel's balancing, homes of several nodes are left to it */
    ABLATION_FREEZE,        /* P16: a converged group is not evicted */
    ABLATION_APART,         /* P11: home nodes for single threads */
    ABLATION_POOL,          /* P11: sharing the CPUs of the home instead, if a trial shows less waiting */
    ABLATION_ROOM,          /* P15: home nodes only where other groups leave room */
    ABLATION_BUDDIES,       /* P14: threads that share memory stay together */
    ABLATION_FEW,           /* P14, P15: sets of few threads that each fit a node may be apart */
    ABLATION_DIVIDED,       /* P14: a set of few threads that fits no node is divided */
    ABLATION_DISTANCES,     /* P11: over nodes that are near what it uses */
    ABLATION_SPILL,         /* P15: a set too large for its node gives away some threads */
    ABLATION_HERE,          /* P11, P15: threads that pause much get the node where they run */
    ABLATION_RELIEVE,       /* P15: threads leave a crowded node of their home */
    ABLATION_ANEW,          /* P15: threads are reassigned where that gains much (flipping) */
    ABLATION_AWAIT_USE,     /* P13: memory does not follow while its users are being found out */
    ABLATION_PINNED,        /* P18: memory follows threads that somebody else pinned */
    ABLATION_TWO_USERS,     /* P13: memory also used by threads pinned elsewhere does not follow */
    ABLATION_HELP,          /* P18: CPUs of the nodes that memory leaves help to copy */
    ABLATION_BALANCE,       /* P13: shared blocks move only into balance */
    ABLATION_TRIES,         /* P13: a block that cannot be moved is given up */
    ABLATION_REST,          /* P13: a block that moved rests */
    ABLATION_STRIPE_SHARED, /* P17: memory seen to be shared by many threads is interleaved */
    ABLATION_STAYS,         /* P13, P17: threads without a home node count where they stay */
    ABLATION_BUSY,          /* P10: a thread whose work begins or ends is observed anew */
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
