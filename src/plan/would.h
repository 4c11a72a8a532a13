/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What acting would do, for workloads that are only observed (Act=observe, or a daemon that may not change anything).
 *
 *   World --copy--> copy <-- homes, masks and lends of the copy before
 *                     |
 *                   plan --committed to the copy--> what would be
 *
 * The copy continues from one look to the next as the World does from tick to tick. Its tasks have the masks that
 * would have been set. All measurements are the World's, so what would be done changes neither waiting nor memory.
 * Memory does not move in the copy: a migration request is repeated until the memory lies there for another reason. */

#include "plan/plan.h"
#include "policy/policy.h"
#include "world/world.h"

typedef struct Would {
    World *world;          /* the copy; NULL: no workload is observed */
    Plan plan;             /* the last one; of all workloads */
    PlanOutcome *outcomes; /* RETRY: not of an observed workload */
    size_t outcomes_capacity;
} Would;

void would_done(Would *would);

/* Whether a workload is only observed. `limits` as for plan_compute(). */
bool would_observes(const World *world, const PolicySet *policies, const PlanLimits *limits,
                    WorkloadIx workload);

/* Computes anew what acting would do. `world` is not changed. Returns 0 or -ENOMEM. */
int would_compute(Would *would, const World *world, const PolicySet *policies, const PlanLimits *limits);

/* Notes in Group.wish_nodes where observed groups would live, for when they are placed. Returns 0 or -ENOMEM. */
int would_wish(const Would *would, World *world, const PolicySet *policies, const PlanLimits *limits);

/* The share of a process's memory that is local, in permille, averaged over its threads. `now`: by the CPUs they ran
 * on last. `then`: with the threads spread evenly over the home of `group`, and the memory where it is or, with
 * `follows`, spread evenly there too. WOULD_UNKNOWN: nothing is known of its memory, or none of its threads runs. */
#define WOULD_UNKNOWN UINT32_MAX
uint32_t would_local_now(const World *world, const Process *process);
uint32_t would_local_then(const World *world, const Process *process, const Group *group, bool follows);

/* What is known of a process at present, in permille. */
typedef struct WouldNow {
    uint32_t local, local_noise; /* as would_local_now(), and how much that varies in its group */
    uint32_t waits;              /* waiting of its group's threads, as a share of the CPU time they want */
} WouldNow;

/* How much more work the process would do in the same time, in permille of its present work; negative: less.
 *
 * How much of its time it waits for memory cannot be seen from outside. `most` assumes all, and nodes half as far
 * again as the firmware says; `expected` half; `least` none, or as much as `most` if the process would run farther
 * from its memory. If the processor counted it, twice the count replaces all, and the count replaces half, if that is
 * less. Waiting for CPUs ends in `most`, is halved in `expected`, and goes on in `least`.
 *
 * In `least` all threads use all memory alike; in `most` each may use memory of its own, which is then local wherever
 * the thread runs. If threads would be gathered on one node, `most` assumes that nothing is local to them now: what
 * they write is in each other's caches. In `least` work limited by bandwidth loses if its memory would be on fewer
 * nodes. WOULD_GAIN_NOISE is added and subtracted for what a program varies by itself, a choice of ours. */
#define WOULD_GAIN_NOISE 20
typedef struct WouldGain {
    int32_t least, expected, most;
} WouldGain;

/* Estimates the gain at the home of `group`, as would_local_then(). Without a home the process stays where it is, or,
 * with `spreads`, each thread may get a node with its memory. False: nothing is known of its memory. */
bool would_gain(const World *world, const Process *process, const Group *group, bool follows, bool spreads,
                const WouldNow *now, WouldGain *ret);
