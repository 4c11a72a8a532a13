/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory follows the home (P18, P19, P20): a migration request for a process that lives in a home and has memory
 * outside its nodes. Residency (evidence D) says where memory lies, not which thread uses it. So all memory outside
 * moves into the nodes of the home, and none moves between these nodes. plan_compute() makes the requests, on slow
 * ticks, and plan_commit() notes those that were accepted.
 *
 * A request lasts longer than a tick. The rest of this file is how the code that carries it out keeps the World up to
 * date. */

#include "policy/policy.h"
#include "world/world.h"

typedef enum FollowEnd {
    FOLLOW_END_DONE,      /* everything was looked at */
    FOLLOW_END_NO_ROOM,   /* the nodes became full (P19) */
    FOLLOW_END_CANCELLED, /* by us */
    FOLLOW_END_FAILED,    /* it cannot be done, and will not be tried again for PingPongSec */
} FollowEnd;

typedef struct FollowResult {
    TaskKey subject; /* the process, which may be gone */
    uint64_t group_id;
    FollowEnd end;
    uint64_t time_usec; /* at or after World.now_usec */
    uint64_t moved_bytes;
    uint64_t refused_bytes; /* that lie elsewhere and could not be moved */
    uint64_t blocked_usec;
} FollowResult;

/* An order is over. */
void follow_over(World *world, const PolicySet *policies, const FollowResult *result);

/* An order has moved so much since this was said last. */
void follow_progress(World *world, TaskKey subject, uint64_t moved_bytes);

/* Whether memory of the process that is to lie on these nodes is left to the kernel, which balances and sees who uses
 * which part. */
bool follow_is_kernels(const World *world, const Policy *policy, const Process *process, CpuMask to);

/* Whether the order under way is still what the process needs; else it is to be cancelled. */
bool follow_holds(const World *world, const PolicySet *policies, const Process *process);

/* Whether somebody else pinned all of its threads. And whether these are the nodes with memory they may then run on. */
bool follow_is_pinned(const World *world, const Process *process);
bool follow_is_pinned_to(const World *world, const Process *process, CpuMask nodes);

/* Whether what is known of its memory is older than its home or the last move, or, while it has no home, half of
 * what it has or less, so that another look is due. */
bool follow_wants_look(const World *world, const Process *process);

/* P20: bytes a second that all orders together may move to a node while others wait for memory; 0: as many as can
 * be. */
uint64_t follow_rate(const World *world);
