/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes with memory on one of two nodes, for tests of memory that follows its home. */

#include "fixture.h"
#include "plan/memory/follow.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"
#define AUTO   "[Placement]\nMode=auto\n"
#define MIB    ((uint64_t)1 << 20)
#define SEC    ((uint64_t)1000000)

/* Sets the bytes of the process on each node, as measured now. */
static inline void set_memory(Fixture *f, pid_t pid, uint64_t on_0, uint64_t on_1)
{
    const uint64_t bytes[] = {on_0, on_1};

    fixture_bytes(f, pid, bytes);
}

static inline void add_process(Fixture *f, pid_t pid)
{
    fixture_threads(f, pid, 2);
}

/* Sets up a policy, 4 of 8 GiB free on each node, and process 10 with 64 MiB on node 1. */
static inline void setup(Fixture *f, const char *policy)
{
    fixture_init(f, TWO_SHARDS);
    fixture_memory(f);
    fixture_policy(f, "a", policy);
    add_process(f, 10);
    set_memory(f, 10, 0, 64 * MIB);
}

static inline MemoryMove *move_of(Fixture *f, pid_t pid)
{
    return &world_process(f->world, pid)->memory;
}

static inline void end_order(Fixture *f, pid_t pid, FollowEnd end, uint64_t moved, uint64_t refused)
{
    const Process *process = world_process(f->world, pid);

    follow_over(f->world, f->policies,
                &(FollowResult){
                    .subject = {.pid = pid, .start_ticks = process->start_ticks},
                    .group_id = f->world->groups[process->group.i].id,
                    .end = end,
                    .time_usec = f->world->now_usec,
                    .moved_bytes = moved,
                    .refused_bytes = refused,
                    .blocked_usec = 7,
                });
}

/* Asserts that the plan has no migration request for process 10, for this reason and no other. */
static inline void assert_refused(Fixture *f, PlanReason reason)
{
    size_t n = 0;

    fixture_plan(f, true);
    assert_int_equal(fixture_count(f, PLAN_KIND_MOVE_PAGES), 0);
    for (size_t i = 0; i < f->plan.n_refusals; i++)
        if (f->plan.refusals[i].mechanism >= 18) {
            assert_int_equal(f->plan.refusals[i].reason, reason);
            n++;
        }
    assert_int_equal(n, 1);
}
