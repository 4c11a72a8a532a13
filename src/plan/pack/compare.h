/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a task or group should move to another node, or change places with one there (P6). Source:
 * task_numa_migrate(), task_numa_find_cpu(), task_numa_compare() and numa_classify() of Linux with Mel Gorman's series
 * of 2022 ("Mitigate inconsistent NUMA imbalance behaviour"), restated.
 *
 * Use, for one subject and one destination: compare_begin(); compare_offer() for the plain move (NULL), when a CPU is
 * free there, and for each candidate at the destination in ascending order of their keys (I12). `best` then holds the
 * decision. */

#include "base/ids.h"
#include "plan/pack/score.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum CompareNodeClass {
    COMPARE_NODE_SPARE, /* room for more */
    COMPARE_NODE_BUSY,
    COMPARE_NODE_OVERLOADED, /* more tasks than CPUs, and no capacity left */
    COMPARE_NODE_CLASS_MAX,
    COMPARE_NODE_CLASS_INVALID = -EINVAL,
} CompareNodeClass;

/* The load of one node. Sums are in permille of one CPU, each below 2^30. */
typedef struct CompareNode {
    NodeIx node;
    uint32_t n_cpus;    /* usable ones */
    uint32_t n_running; /* tasks that run or wait, rounded */
    uint32_t capacity;  /* 1000 for each usable CPU */
    uint32_t run, wait; /* of all tasks on it */
} CompareNode;

CompareNodeClass compare_classify(const CompareNode *node);

/* One who would move: a task, or a group as one. */
typedef struct CompareSubject {
    uint64_t group_id; /* 0: none */
    NodeIx preferred;  /* P11; NODE_NONE: none */
    uint32_t n_tasks;  /* 1, or those of the group; below 2^31 */
    uint32_t load;     /* run and wait, permille of one CPU; below 2^30 */
    int32_t task_here,
        task_there; /* weights of its own table on its node and on the other one (P11), permille */
    int32_t group_here, group_there; /* the same of its group's; without one not looked at */
} CompareSubject;

/* Fills in the weights of a subject on `here` for going `there`. Tables may be NULL: nothing is known. A group as
 * one gives its table for both. */
void compare_weigh(CompareSubject *subject, const ScoreMachine *machine, const Faults *task,
                   const Faults *group, NodeIx here, NodeIx there);

/* Whether a node other than the preferred one is worth trying: not when task and group both lose by it. */
bool compare_worth_trying(const CompareSubject *subject);

/* Whether `subject` may go from `src` to `dst` with nothing in exchange. To a node with room: when the difference in
 * tasks is then within what `allowed` (imb_numa_nr, P5) tolerates. Else: when loads, by capacity, are then no
 * further apart. */
bool compare_may_move(const CompareNode *src, const CompareNode *dst, const CompareSubject *subject,
                      uint32_t allowed);

typedef struct CompareMove {
    CompareNode src, dst;
    CompareNodeClass dst_class;
    bool may_move;
    int32_t gain_min;  /* permille; a smaller gain is noise, which two would follow back and forth */
    int32_t gain_move; /* of the plain move: of the group where there is one, else of the task; -1000..1000 */
    CompareSubject subject;
} CompareMove;

/* `gain_min` is MinGainPermille, at most 1000; 30 in the kernel (SMALLIMP). */
CompareMove compare_begin(const CompareNode *src, const CompareNode *dst, const CompareSubject *subject,
                          uint32_t allowed, uint32_t gain_min);

/* The best so far; all zero at first. */
typedef struct CompareBest {
    bool found;
    bool exchange;    /* with `candidate`; else a plain move */
    bool sends_home;  /* the candidate comes to its preferred node */
    size_t candidate; /* the caller's number for it */
    int32_t gain;     /* with the adjustments of compare_offer(), permille */
} CompareBest;

typedef enum CompareVerdict {
    COMPARE_TAKEN,      /* it is the best so far */
    COMPARE_PLAIN_MOVE, /* the plain move is better than this exchange, and the best so far */
    COMPARE_SAME_GROUP, /* of one group, or both of none, and the destination has room (I6) */
    COMPARE_SMALL_GAIN, /* below the least, or not better than the best so far by half the least */
    COMPARE_IMBALANCE,  /* the loads would be further apart, or for a plain move, the tasks */
    COMPARE_VERDICT_MAX,
    COMPARE_VERDICT_INVALID = -EINVAL,
} CompareVerdict;

/* Offers an exchange with `other` (NULL: the plain move), and changes *best when it is better. An exchange inside a
 * group is worth 1/16 less, one with somebody on its preferred node too; one that brings somebody there is worth 1/8
 * more, and goes before those that do not. */
CompareVerdict compare_offer(const CompareMove *move, const CompareSubject *other, size_t candidate,
                             CompareBest *best);

/* When to try again to bring a task to its preferred node: after a sixteenth of its scan period, at most 1 s. The
 * instant a World keeps is 0 for a new task, whatever its parent's was: it is due at once. */
uint64_t compare_retry_at(uint64_t now_usec, uint64_t scan_period_usec);
