/* SPDX-License-Identifier: LGPL-2.1-or-later */

#pragma once

/* A process of two threads whose memory is sorted by use: rounds, judgements, migration requests. */

#include "fixture.h"
#include "plan/ablation.h"
#include "plan/memory/follow.h"
#include "plan/memory/sorting.h"

#define MIB      ((uint64_t)1 << 20)
#define SEC      ((uint64_t)1000000)
#define BLOCK    (2 * MIB)
#define HEAP     (1 << 30)
#define N_BLOCKS 16U
#define PID      10
#define ON_0     11 /* threads, named after their home nodes */
#define ON_1     12

typedef struct Bench {
    Fixture f;
    Sorting sorting;
    Touches touches;
    MemoryRegions regions;
    Policy *policy;
    NodeIx where[N_BLOCKS];
    pid_t user[N_BLOCKS]; /* 0: no thread; -1: both, in turns */
    int32_t runs_on[4];   /* nodes of the threads from ON_0 on */
    uint32_t n_rounds;
} Bench;

static inline Process *process(Bench *b)
{
    return world_process(b->f.world, PID);
}

static inline SortingLook look(Bench *b)
{
    return (SortingLook){b->f.world, process(b), b->policy, &b->touches, &b->regions};
}

static inline void add_thread(Bench *b, pid_t tid)
{
    fixture_task(&b->f, PID, tid, 0);
    assert_int_equal(
        touches_add_thread(&b->touches, world_task_key(b->f.world, fixture_find(&b->f, PID, tid))), 0);
}

/* Sets up a home of all nodes, with all memory on node 0. */
static inline void setup_on(Bench *b, const char *synthetic, uint32_t n_nodes)
{
    const MemoryRegion heap = {.start = HEAP,
                               .end = HEAP + N_BLOCKS * BLOCK,
                               .readable = true,
                               .writable = true,
                               .resident_bytes = REGION_RESIDENT_UNKNOWN};

    *b = (Bench){.runs_on = {0, 1, 1, 1}};
    fixture_init(&b->f, synthetic);
    fixture_memory(&b->f);
    b->policy = fixture_policy(&b->f, "a",
                               n_nodes == 2 ? "[Placement]\nMode=fixed\nNodes=0-1\n"
                                            : "[Placement]\nMode=fixed\nNodes=0-2\n");
    fixture_process(&b->f, PID, "a", NULL);
    touches_init(&b->touches, n_nodes);
    add_thread(b, ON_0);
    add_thread(b, ON_1);
    fixture_home(&b->f);
    fixture_find(&b->f, PID, ON_0)->home_node.i = 0;
    fixture_find(&b->f, PID, ON_1)->home_node.i = 1;
    assert_int_equal(hwloc_bitmap_weight(b->f.world->groups[0].home_nodes), n_nodes);
    assert_int_equal(regions_add(&b->regions, &heap), 0);
    assert_int_equal(sorting_init(&b->sorting, n_nodes), 0);
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        b->where[i] = (NodeIx){0};
}

static inline void setup(Bench *b)
{
    setup_on(b, TWO_SHARDS, 2);
}

static inline void done(Bench *b)
{
    sorting_done(&b->sorting);
    touches_done(&b->touches);
    regions_done(&b->regions);
    fixture_done(&b->f);
}

static inline void touch(Bench *b, uint32_t block, pid_t tid)
{
    const Touch touch = {HEAP + block * BLOCK, tid, {b->runs_on[tid - ON_0]}};

    assert_int_equal(touches_add(&b->touches, &touch), 0);
}

static inline void round_(Bench *b)
{
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        if (b->user[i] > 0)
            touch(b, i, b->user[i]);
        else if (b->user[i] < 0)
            touch(b, i, (b->n_rounds + i) % 2 ? ON_0 : ON_1);
    }
    b->n_rounds++;
    assert_int_equal(touches_gather(&b->touches), 0);
    for (size_t i = 0; i < b->touches.n_blocks; i++)
        b->touches.blocks[i].node = b->where[(b->touches.blocks[i].address - HEAP) / BLOCK];
    assert_true(touches_fold(&b->touches));
}

static inline void rounds(Bench *b, unsigned n)
{
    while (n-- > 0)
        round_(b);
}

static inline void judge(Bench *b)
{
    const SortingLook what = look(b);

    assert_int_equal(sorting_judge(&b->sorting, &what), 0);
}

/* Plans the next migration request. Returns whether the plan has it; refusals are in the plan. */
static inline bool order(Bench *b, PlanUse *use)
{
    char *what = NULL;

    if (!sorting_next(&b->sorting, process(b), use))
        return false;
    assert_int_equal(plan_follow_use(b->f.world, b->f.policies, &b->f.limits, use, 1, &b->f.plan), 0);
    if (plan_check(b->f.world, b->f.policies, &b->f.limits, &b->f.plan, &what) < 0)
        fail_msg("%s", what);
    return b->f.plan.n_actions == 1;
}

/* Takes the request, which ends at once. */
static inline void take(Bench *b, const PlanUse *use, FollowEnd end)
{
    fixture_commit(&b->f, NULL);
    assert_true(process(b)->memory.by_use);
    assert_true(follow_holds(b->f.world, b->f.policies, process(b)));
    assert_int_equal(sorting_taken(&b->sorting, b->f.world->now_usec), 0);
    follow_over(b->f.world, b->f.policies,
                &(FollowResult){.subject = use->subject,
                                .group_id = b->f.world->groups[0].id,
                                .end = end,
                                .time_usec = b->f.world->now_usec,
                                .moved_bytes = end == FOLLOW_END_DONE ? use->bytes : 0});
    sorting_over(&b->sorting, end);
    assert_null(process(b)->memory.to);
}

/* The same, and all of it moves. */
static inline void carry_out(Bench *b, const PlanUse *use)
{
    take(b, use, FOLLOW_END_DONE);
    for (size_t i = 0; i < use->n_ranges; i++)
        for (uint64_t at = use->ranges[i].start; at < use->ranges[i].end; at += BLOCK)
            b->where[(at - HEAP) / BLOCK].i = use->stripe ? (int32_t)(at / BLOCK % 2) : use->ranges[i].to.i;
}
static inline void set_free(Bench *b)
{
    fixture_find(&b->f, PID, ON_0)->home_node = fixture_find(&b->f, PID, ON_1)->home_node = NODE_NONE;
}

/* Sets up two threads without home nodes that share eight blocks. */
static inline void setup_shared(Bench *b)
{
    setup(b);
    set_free(b);
    for (uint32_t i = 0; i < 8; i++)
        b->user[i] = -1;
}

/* Runs rounds, one a second, and puts into the World what each one shows. */
static inline void told_rounds(Bench *b, unsigned n)
{
    while (n-- > 0) {
        b->f.world->now_usec += SEC;
        round_(b);
        assert_int_equal(touches_tell(&b->touches, b->f.world, b->f.world->now_usec), 0);
    }
}

static inline size_t n_judged(Bench *b)
{
    judge(b);
    return b->sorting.n_moves;
}
