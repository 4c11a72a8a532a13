/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory follows the home (P18, P19, P20): a migration request for a process that lives in a home and has
 * memory outside its nodes. Residency says where memory lies, not which thread uses it. So all
 * memory outside moves into the home, and none moves between its nodes. plan_compute() makes the requests, on
 * slow ticks, and plan_commit() notes those accepted.
 *
 * A request lasts longer than a tick. With the functions below, the code that carries it out keeps the World
 * up to date. */

#include "policy/policy.h"
#include "world/world.h"

struct MemoryWatch;

typedef enum FollowEnd {
    FOLLOW_END_DONE,      /* everything was looked at */
    FOLLOW_END_NO_ROOM,   /* the target nodes became full (P19) */
    FOLLOW_END_CANCELLED, /* by the daemon */
    FOLLOW_END_FAILED,    /* it cannot be done, and is not tried again for PingPongSec */
} FollowEnd;

typedef struct FollowResult {
    TaskKey subject; /* the process, which may be gone */
    uint64_t group_id;
    FollowEnd end;
    uint64_t time_usec; /* at or after World.now_usec */
    uint64_t moved_bytes;
    uint64_t refused_bytes; /* of memory elsewhere that could not be moved */
    uint64_t blocked_usec;
} FollowResult;

/* A migration request is over. */
void follow_over(World *world, const PolicySet *policies, const FollowResult *result);

/* The request in flight has moved this much since the last call. */
void follow_progress(World *world, TaskKey subject, uint64_t moved_bytes);

/* Whether memory for these nodes is left to the kernel: there are several, it balances, and only it sees
 * which thread uses which part. */
bool follow_is_kernels(const World *world, const Policy *policy, const Process *process, CpuMask to);

/* Whether the process still needs the request in flight; if not, cancel it. */
bool follow_holds(const World *world, const PolicySet *policies, const Process *process);

/* Whether its memory is kept from following, or its first home put off, because its users are about to be known.
 * `watch`: its state in plan/memory/watch.h; NULL: it is not sampled yet. `policy` may be NULL. */
bool follow_awaits_use(const World *world, const Policy *policy, const Process *process,
                       const struct MemoryWatch *watch);

/* Whether somebody else pinned all threads; and whether `nodes` are the nodes with memory that these may run on. */
bool follow_is_pinned(const World *world, const Process *process);
bool follow_is_pinned_to(const World *world, const Process *process, CpuMask nodes);

/* Whether residency should be measured again: it is older than the home or the last migration, or, without a
 * home, is less than half of the memory. */
bool follow_wants_look(const World *world, const Process *process);

/* P20: bytes a second that all requests may move to a node while others wait for memory; 0: no limit. */
uint64_t follow_rate(const World *world);
