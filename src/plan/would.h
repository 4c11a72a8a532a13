/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What acting would do, for workloads that are only observed (Act=observe, or a daemon that may not change anything).
 *
 *   World --copy--> copy <-- homes, masks and lends of the copy before
 *                     |
 *                   plan --committed to the copy--> what would be
 *
 * The copy goes on from one look to the next as the World does from tick to tick: its tasks have the masks that would
 * have been set, and everything that is measured is the World's. So neither waiting nor memory changes by what would
 * be done. Memory does not move in it: an order to move some is repeated until it lies there for another reason. */

#include "plan/plan.h"
#include "policy/policy.h"
#include "world/world.h"

typedef struct Would {
    World *world;          /* with what would be; NULL: nobody is observed */
    Plan plan;             /* the last one; of everybody */
    PlanOutcome *outcomes; /* RETRY: not of an observed workload */
    size_t outcomes_capacity;
} Would;

void would_done(Would *would);

/* Whether a workload is only observed. `limits` as for plan_compute(). */
bool would_observes(const World *world, const PolicySet *policies, const PlanLimits *limits,
                    WorkloadIx workload);

/* Looks again. `world` is not changed. Returns 0 or -ENOMEM. */
int would_compute(Would *would, const World *world, const PolicySet *policies, const PlanLimits *limits);

/* Notes in Group.wish_nodes where observed groups would be, for when they are placed. Returns 0 or -ENOMEM. */
int would_wish(const Would *would, World *world, const PolicySet *policies, const PlanLimits *limits);

/* How much of the memory of a process is on the node that its threads run on, in permille, averaged over them: now, by
 * the CPUs they ran on last; and at the home of `group`, over which they are taken to be spread evenly, with the memory
 * where it is, or (`follows`) there and as even. WOULD_UNKNOWN: nothing is known of its memory, or none of its threads
 * runs. */
#define WOULD_UNKNOWN UINT32_MAX
uint32_t would_local_now(const World *world, const Process *process);
uint32_t would_local_then(const World *world, const Process *process, const Group *group, bool follows);

/* What is known of a process as it is, in permille. */
typedef struct WouldNow {
    uint32_t local, local_noise; /* as would_local_now(), and how much that varies in its group */
    uint32_t waits;              /* of the CPU time that the threads of its group want, what they wait */
} WouldNow;

/* How much more it would do in the same time, in permille of what it does; negative: less. How much of its time goes
 * into memory cannot be seen from outside. In `most` all of it does, and nodes are half as far again as the firmware
 * says; in `expected`, half of it; in `least`, nothing, or all where it would be led away from its memory. Waiting
 * ends, by half, or goes on. Its threads use all of its memory alike, or each has some of its own, which is then local
 * to it wherever it runs. Threads that would be gathered on one node gain at most as if nothing was local to them now:
 * what they write is in each other's caches. Work that bandwidth limits loses where memory would be on fewer nodes.
 * WOULD_GAIN_NOISE more or less is what a program may vary by itself, a choice of ours. */
#define WOULD_GAIN_NOISE 20
typedef struct WouldGain {
    int32_t least, expected, most;
} WouldGain;

/* At the home of `group`, as would_local_then(); without one it stays where it is, or (`spreads`) each thread may be
 * led to a node with what it uses. False: nothing is known of its memory. */
bool would_gain(const World *world, const Process *process, const Group *group, bool follows, bool spreads,
                const WouldNow *now, WouldGain *ret);
