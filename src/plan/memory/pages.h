/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a page may follow an access from another node (P13).
 * Source: should_numa_migrate_memory() of Linux, its tiering part left out, restated. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* So many first sequences of a task are its start, in which pages move at once. */
#define PAGES_EARLY_SEQUENCES 4U

typedef enum PagesVerdict {
    PAGES_MOVE_EARLY,      /* an own or first access at the start of a task's life */
    PAGES_MOVE_PRIVATE,    /* the same task twice */
    PAGES_MOVE_NO_GROUP,   /* perhaps shared, but nothing is known of a group */
    PAGES_MOVE_MUCH_USED,  /* the group runs more than three times as much there */
    PAGES_MOVE_BALANCES,   /* it has less memory there than it runs there */
    PAGES_STAY_NO_MEMORY,  /* the node has none */
    PAGES_STAY_OTHER_NODE, /* the last access came from another node: not yet twice in a row */
    PAGES_STAY_BALANCED,   /* it would not match memory and use better, by a quarter */
    PAGES_VERDICT_MAX,
    PAGES_VERDICT_INVALID = -EINVAL,
} PagesVerdict;

/* One access by a task that runs on node `to`, to a page on node `from`. */
typedef struct PagesAccess {
    bool last_known; /* somebody is known to have accessed it before; if so: */
    bool last_own;   /* it was the same task */
    bool last_here;  /* it was from node `to` too */
    bool to_has_memory;
    bool has_preferred;              /* the task has a preferred node */
    uint32_t n_sequences;            /* of its fault averages */
    bool two_stage;                  /* TwoStage */
    bool has_group;                  /* if so, its averages (P11), each below 2^60: */
    uint64_t cpu_from, cpu_to;       /* run time on the node */
    uint64_t memory_from, memory_to; /* accesses to memory of the node */
} PagesAccess;

PagesVerdict pages_judge(const PagesAccess *access);

static inline bool pages_moves(PagesVerdict verdict)
{
    return verdict >= 0 && verdict <= PAGES_MOVE_BALANCES;
}
