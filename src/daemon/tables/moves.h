/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was done and refused, kept for explain: a ring of actions, and the last refusals of each subject. Both
 * are limited; the oldest goes first. */

#include "base/intern.h"
#include "base/util.h"
#include "plan/plan.h"

#include <stdint.h>

#define MOVES_MAX \
    2048U /* kept actions: at 64 a tick of 100 ms, three seconds of a storm, hours of a normal day */
#define MOVES_REFUSALS_MAX 2048U /* (subject, reason) pairs kept */
#define MOVES_FOLD_MAX     256U  /* how far back the same failed action is looked for */

/* One action. Unlike PlanAction it refers to nothing that ends with its tick. */
typedef struct Move {
    uint64_t sequence; /* from 1, without gaps */
    uint64_t time_usec;
    uint64_t realtime_usec;
    uint64_t tick;
    PlanKind kind;
    PlanRule rule;
    PlanOutcome outcome;
    uint32_t count; /* how often it had this outcome; 1 if done */
    TaskKey subject;
    char comm[WORLD_COMM_SIZE];
    const char *workload; /* interned here */
    uint64_t group_id;
    CpuMask from, to;               /* interned here */
    CpuMask home_nodes;             /* NodeIx bitmap at that time, or NULL */
    CpuMask memory_from, memory_to; /* the same, of a migration */
    CpuMask memory_help;            /* the same, nodes whose CPUs may help */
    uint64_t memory_bytes;
    CpuIx cpu;
    uint64_t lease_usec;
    uint32_t distance, value, limit;
    uint8_t mechanism;
    bool cross_node;
} Move;

typedef struct MoveRefusal MoveRefusal;

struct MoveRefusal {
    PlanReason reason;
    TaskKey subject;
    uint64_t group_id;
    const char *workload; /* interned here */
    uint8_t mechanism;
    CpuIx cpu;
    uint64_t value, limit;
    uint64_t count;
    uint64_t time_usec; /* of the last */
    uint64_t tick;
    struct MoveRefusal *newer, *older;
};

typedef struct Moves Moves;

Moves *moves_new(void);
Moves *moves_free(Moves *moves);

/* Notes an action and its outcome. *ret_new is the new entry, or NULL if one that says the same was counted
 * up instead (never for DONE). Returns 0 or -ENOMEM. */
int moves_add(Moves *moves, World *world, const PlanAction *action, PlanOutcome outcome,
              uint64_t realtime_usec, const Move **ret_new);

/* Notes a refusal. Returns 0 or -ENOMEM. */
int moves_refuse(Moves *moves, const World *world, const PlanRefusal *refusal);

/* Sequence number of the newest action, 0 before the first. */
uint64_t moves_last(const Moves *moves);

/* The oldest kept action whose sequence is above `after`; NULL: none. */
const Move *moves_next(const Moves *moves, uint64_t after);

/* The oldest kept refusal; go on with its `newer`. */
const MoveRefusal *moves_refusals(const Moves *moves);

/* Forgets the nodes of actions, and all refusals: after a change of CPUs, old node numbers mean nothing.
 * Sequence numbers go on. */
void moves_forget_nodes(Moves *moves);
