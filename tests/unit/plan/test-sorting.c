/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory of one process, sorted by use: from rounds to plans. */

#include "sorting-test.h"

static void test_own(void **state)
{
    const PlanAction *action;
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 4; i++)
        b.user[i] = ON_0;
    for (uint32_t i = 4; i < 10; i++)
        b.user[i] = i == 7 ? 0 : ON_1;
    /* A thread seen once may be chance. */
    round_(&b);
    judge(&b);
    assert_false(order(&b, &use));
    round_(&b);
    judge(&b);
    assert_true(order(&b, &use));
    action = &b.f.plan.actions[0];
    assert_int_equal(action->rule, PLAN_RULE_FOLLOW_USE);
    assert_int_equal(use.bytes, 5 * BLOCK);
    assert_int_equal(use.n_ranges, 2);
    assert_int_equal(use.ranges[0].start, HEAP + 4 * BLOCK);
    assert_int_equal(use.ranges[0].end, HEAP + 7 * BLOCK);
    assert_int_equal(use.ranges[1].start, HEAP + 8 * BLOCK);
    assert_ptr_equal(action->memory.to, fixture_mask(&b.f, "1"));
    assert_ptr_equal(action->memory.from, fixture_mask(&b.f, "0"));
    assert_int_equal(action->memory.headroom_percent, 10);
    carry_out(&b, &use);
    assert_false(sorting_next(&b.sorting, process(&b), &use));
    assert_int_equal(b.f.world->groups[0].memory.moved_bytes, 5 * BLOCK);
    for (unsigned i = 0; i < SORTING_QUIET; i++) {
        round_(&b);
        judge(&b);
    }
    assert_int_equal(b.sorting.n_moves, 0);
    assert_int_equal(b.sorting.n_quiet, SORTING_QUIET);
    done(&b);
}

/* Of 16 blocks each thread is seen at a quarter of its own in a round. When half were seen again, with no
 * other thread, all go to their users, also those seen once. While some are shared, three rounds of each
 * block are needed. */
static void test_apart(void **state)
{
    PlanUse use;

    for (uint32_t n_shared = 0; n_shared <= 2; n_shared += 2) {
        Bench b;

        setup(&b);
        for (uint32_t round = 0; round < 6; round++) {
            for (uint32_t i = 0; i < N_BLOCKS; i++) {
                bool other = i % 4 == 0 && i / 4 < n_shared && round >= 4;

                b.user[i] = i % 4 != round % 4 ? 0 : i < 8 && !other ? ON_0 : ON_1;
            }
            round_(&b);
            judge(&b);
            assert_true(round == 5 || !order(&b, &use));
        }
        assert_int_equal(order(&b, &use), n_shared == 0);
        if (n_shared == 0)
            assert_int_equal(use.bytes, 8 * BLOCK);
        done(&b);
    }
}

/* I7: moved memory stays for MinResidencySec=, and does not go back soon. */
static void test_rest(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    b.policy->min_residency_usec = SEC;
    b.policy->ping_pong_usec = 10 * SEC;
    b.user[0] = ON_1;
    /* With few blocks, being seen twice may be chance. */
    rounds(&b, 2);
    judge(&b);
    assert_false(order(&b, &use));
    round_(&b);
    judge(&b);
    assert_true(order(&b, &use));
    carry_out(&b, &use);
    /* Its user returns to node 0. */
    fixture_find(&b.f, PID, ON_1)->home_node.i = 0;
    round_(&b);
    b.f.world->now_usec += 2 * SEC;
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    assert_int_equal(b.sorting.n_resting, 1);
    b.f.world->now_usec += 9 * SEC;
    judge(&b);
    assert_true(order(&b, &use));
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "0"));
    done(&b);
}

/* Memory that goes back and forth moves after 5, 10, 20 seconds, and so on. */
static void test_back(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    b.policy->min_residency_usec = SEC;
    b.policy->ping_pong_usec = 60 * SEC;
    b.user[0] = ON_1;
    rounds(&b, 3);
    judge(&b);
    assert_true(order(&b, &use));
    carry_out(&b, &use);
    for (unsigned i = 0, secs = 5; i < 6; i++, secs = MIN(2 * secs, 60U)) {
        uint64_t moved_usec = b.f.world->now_usec, n_resting = b.sorting.n_resting;

        rounds(&b, 3);
        judge(&b);
        fixture_find(&b.f, PID, ON_1)->home_node.i = (int32_t)(i % 2);
        b.f.world->now_usec += secs * SEC - SEC / 2;
        rounds(&b, 3);
        b.f.world->now_usec = moved_usec + secs * SEC - 1;
        judge(&b);
        assert_int_equal(b.sorting.n_moves, 0);
        assert_true(b.sorting.n_resting > n_resting);
        b.f.world->now_usec = moved_usec + secs * SEC;
        judge(&b);
        assert_true(order(&b, &use));
        carry_out(&b, &use);
    }
    done(&b);
}

/* Requests that end before they looked at everything, since the node is full or memory is scarce, are no attempts.
 * Those that left the memory where it is, or cannot be carried out, are. */
static void test_cut_short(void **state)
{
    PlanUse use;

    for (FollowEnd end = FOLLOW_END_DONE; end <= FOLLOW_END_FAILED; end++) {
        Bench b;

        setup(&b);
        b.user[0] = ON_1;
        rounds(&b, 3);
        for (unsigned i = 0; i < 2 * BLOCKS_TRIES; i++) {
            bool cut_short = end == FOLLOW_END_NO_ROOM || end == FOLLOW_END_CANCELLED;

            b.f.world->now_usec += 2 * b.policy->ping_pong_usec;
            judge(&b);
            assert_int_equal(order(&b, &use), cut_short || i < BLOCKS_TRIES);
            if (b.f.plan.n_actions > 0)
                take(&b, &use, end);
        }
        done(&b);
    }
}

/* A refused move is no attempt, and is made as soon as it is allowed. */
static void test_refused(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    b.user[0] = ON_1;
    rounds(&b, 3);
    b.f.world->nodes[1].free_bytes = 1;
    for (unsigned i = 0; i < BLOCKS_TRIES + 2; i++) {
        round_(&b);
        judge(&b);
        assert_false(order(&b, &use));
        assert_int_equal(b.f.plan.n_refused[PLAN_REASON_HEADROOM], 1);
        sorting_refused(&b.sorting);
    }
    b.f.world->nodes[1].free_bytes = 4096 * MIB;
    b.policy->follow = false;
    judge(&b);
    assert_false(order(&b, &use));
    assert_int_equal(b.f.plan.n_refused[PLAN_REASON_FOLLOW_OFF], 1);
    sorting_refused(&b.sorting);
    b.policy->follow = true;
    b.f.world->kernel_balances = true; /* which does not hold back moves by use */
    judge(&b);
    assert_true(order(&b, &use));
    done(&b);
}

/* Blocks move to all destinations at the same time, each to its own. */
static void test_both_ways(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    for (uint32_t i = 0; i < 6; i++) {
        b.user[i] = i < 2 ? ON_0 : ON_1;
        b.where[i].i = i < 2 ? 1 : 0;
    }
    rounds(&b, 4);
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 6 * BLOCK);
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "0-1"));
    assert_int_equal(use.n_ranges, 2);
    assert_int_equal(use.ranges[0].end, use.ranges[1].start);
    carry_out(&b, &use);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(b.where[i].i, i < 2 ? 0 : 1);
    assert_false(order(&b, &use));
    rounds(&b, 4);
    judge(&b);
    assert_false(order(&b, &use));
    done(&b);
}

/* A thread that somebody else pinned to a node lives there; one that may run anywhere has no proper node. */
static void test_foreign(void **state)
{
    PlanUse use;
    Task *task;
    Bench b;

    setup(&b);
    b.user[0] = ON_1;
    task = fixture_find(&b.f, PID, ON_1);
    task->home_node = NODE_NONE;
    rounds(&b, 3);
    judge(&b);
    assert_int_equal(b.sorting.n_moves, 0);
    task->hands = TASK_HANDS_FOREIGN;
    task->original = NULL;
    task->allowed = fixture_mask(&b.f, "8-9");
    judge(&b);
    assert_true(order(&b, &use));
    assert_ptr_equal(b.f.plan.actions[0].memory.to, fixture_mask(&b.f, "1"));
    done(&b);
}

/* P13: private memory of a free thread goes where the thread has run for a while, and not before; shared
 * memory stays. */
static void test_own_of_free_threads(void **state)
{
    PlanUse use;
    Bench b;

    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = i < 4 ? ON_1 : i < 7 ? ON_0 : -1;
    told_rounds(&b, 5);
    assert_int_equal(n_judged(&b), 0);
    b.runs_on[1] = 0; /* one thread is elsewhere for a moment */
    told_rounds(&b, 1);
    b.runs_on[1] = 1;
    told_rounds(&b, 5);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 1);
    b.f.world->ablated = 1ULL << ABLATION_STAYS;
    assert_int_equal(n_judged(&b), 0);
    b.f.world->ablated = 0;
    judge(&b);
    assert_true(order(&b, &use));
    assert_int_equal(use.bytes, 4 * BLOCK);
    assert_int_equal(use.ranges[0].start, HEAP);
    assert_int_equal(use.ranges[0].to.i, 1);
    done(&b);

    /* A few rounds are not enough, however long they take. */
    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_1;
    told_rounds(&b, 2);
    b.f.world->now_usec += 60 * SEC;
    told_rounds(&b, 1);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 1);
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);

    /* A thread that was forgotten starts anew. */
    setup(&b);
    set_free(&b);
    for (uint32_t i = 0; i < 8; i++)
        b.user[i] = ON_1;
    told_rounds(&b, 20);
    assert_int_equal(touches_forget_thread(&b.touches, ON_1), 0);
    told_rounds(&b, 5);
    assert_int_equal(fixture_find(&b.f, PID, ON_1)->use->stay.node.i, 1);
    assert_int_equal(n_judged(&b), 0);
    told_rounds(&b, 4);
    assert_int_not_equal(n_judged(&b), 0);
    done(&b);
}

/* While a process has no home, its use is watched only to find one: nothing moves until then. */
static void test_before_home(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        Group *group;
        PlanUse use;
        Bench b;

        setup(&b);
        group = &b.f.world->groups[0];
        group->home = group->home_nodes = NULL;
        group->roams = i > 0;
        for (uint32_t k = 0; k < N_BLOCKS; k++)
            b.user[k] = ON_1;
        rounds(&b, 5);
        judge(&b);
        assert_int_equal(order(&b, &use), group->roams);
        done(&b);
    }
}

TEST_MAIN(NULL, NULL, test_own, test_apart, test_rest, test_back, test_cut_short, test_refused,
          test_both_ways, test_foreign, test_own_of_free_threads, test_before_home)
