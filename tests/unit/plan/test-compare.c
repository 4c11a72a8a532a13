/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P6: classes of nodes, moves and exchanges (S-SWAP, S-RETRY). */

#include "fixture.h"
#include "plan/pack/compare.h"
#include "score-test.h"

#include <string.h>

#define CPUS 8U

/* So many whole tasks on a node of 8 CPUs. */
static CompareNode node(int32_t ix, uint32_t n_tasks)
{
    return (CompareNode){
        .node = {ix},
        .n_cpus = CPUS,
        .n_running = n_tasks,
        .capacity = CPUS * 1000,
        .run = MIN(n_tasks, CPUS) * 1000,
        .wait = (n_tasks - MIN(n_tasks, CPUS)) * 1000,
    };
}

/* A whole task without a group on node 0, with these weights there and on node 1. */
static CompareSubject task(int32_t here, int32_t there)
{
    return (CompareSubject){
        .preferred = NODE_NONE,
        .n_tasks = 1,
        .load = 1000,
        .task_here = here,
        .task_there = there,
    };
}

static CompareSubject member(uint64_t group, int32_t task_gain, int32_t group_gain)
{
    CompareSubject s = task(0, task_gain);

    s.group_id = group;
    s.group_there = group_gain;
    return s;
}

static CompareMove begin(uint32_t n_src, uint32_t n_dst, CompareSubject subject)
{
    CompareNode src = node(0, n_src), dst = node(1, n_dst);

    return compare_begin(&src, &dst, &subject, 1, 30);
}

static void test_classify(void **state)
{
    CompareNode n = node(0, 7);

    assert_int_equal(compare_classify(&n), COMPARE_NODE_SPARE);
    n = node(0, 8);
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
    n = node(0, 9);
    assert_int_equal(compare_classify(&n), COMPARE_NODE_OVERLOADED);

    /* As many tasks as CPUs, or more, that mostly sleep: 8 percent of room in both run time and demand. */
    n.run = 7407;
    n.wait = 0;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_SPARE);
    n.run = 7408;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_OVERLOADED);
    n.n_running = 8;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
    n.run = 5000;
    n.wait = 3639;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_SPARE);
    n.wait = 3640;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
    n.n_running = 9;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
    n.wait = 3641;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_OVERLOADED);
    n.n_running = 7;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_SPARE);

    /* Exactly 8 percent is neither. */
    n = (CompareNode){.n_cpus = 11, .n_running = 11, .capacity = 10800, .run = 10000};
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
    n.n_running = 12;
    assert_int_equal(compare_classify(&n), COMPARE_NODE_BUSY);
}

static void test_may_move(void **state)
{
    CompareSubject one = task(0, 1000), group = task(0, 1000);
    CompareNode src = node(0, 8), dst = node(1, 2);

    /* To a node with room: tasks, and what P5 allows. */
    assert_true(compare_may_move(&src, &dst, &one, 1));
    dst = node(1, 7);
    assert_false(compare_may_move(&src, &dst, &one, 1)); /* 8 to 7 */
    src = node(0, 9);
    assert_true(compare_may_move(&src, &dst, &one, 1)); /* 8 to 8 */
    src = node(0, 2);
    dst = node(1, 1);
    assert_false(compare_may_move(&src, &dst, &one, 1)); /* 2 to 1, beyond what one node may have more */
    assert_true(compare_may_move(&src, &dst, &one, 2));
    group.n_tasks = 4;
    group.load = 4000;
    src = node(0, 6);
    assert_false(compare_may_move(&src, &dst, &group, 4)); /* 5 to 2 */
    assert_false(compare_may_move(&src, &dst, &group, 5)); /* 3 more is more than 2 */
    src = node(0, 8);
    assert_true(compare_may_move(&src, &dst, &group, 5));

    /* To a full one: loads must not get further apart. */
    src = node(0, 10);
    dst = node(1, 8);
    assert_true(compare_may_move(&src, &dst, &one, 1));
    src = node(0, 9);
    assert_true(compare_may_move(&src, &dst, &one, 1)); /* 9 and 8, the other way round */
    src = node(0, 8);
    assert_false(compare_may_move(&src, &dst, &one, 1));

    /* By capacity: a node of half the CPUs, with half the load. */
    src = node(0, 16);
    dst =
        (CompareNode){.node = {1}, .n_cpus = 4, .n_running = 8, .capacity = 4000, .run = 4000, .wait = 4000};
    assert_false(compare_may_move(&src, &dst, &one, 1));
    dst.wait = 2000;
    assert_true(compare_may_move(&src, &dst, &one, 1));
}

/* S-SWAP: two full nodes, on each a task whose memory is on the other: one exchange, and the weights rise by 2000. */
static void test_s_swap(void **state)
{
    CompareSubject mine = task(0, 1000), other = task(0, 1000);
    CompareMove move = begin(8, 8, mine);
    CompareBest best = {0};

    mine.preferred = (NodeIx){1};
    other.preferred = (NodeIx){0};
    assert_false(move.may_move);
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_IMBALANCE);
    assert_int_equal(compare_offer(&move, &other, 7, &best), COMPARE_TAKEN);
    assert_true(best.found && best.exchange && best.sends_home);
    assert_int_equal(best.candidate, 7);
    assert_int_equal(best.gain, 2250);
    assert_int_equal(mine.task_there + other.task_there - mine.task_here - other.task_here, 2000);

    /* After it each is where it wants to be, and nothing is gained by more. */
    mine = other = task(1000, 0);
    mine.preferred = (NodeIx){0};
    other.preferred = (NodeIx){1};
    move = begin(8, 8, mine);
    best = (CompareBest){0};
    assert_int_equal(compare_offer(&move, &other, 7, &best), COMPARE_SMALL_GAIN);
    assert_false(best.found);
}

/* I6: not inside a group, nor without groups, when there is a CPU to spare. */
static void test_spare(void **state)
{
    CompareSubject other = member(5, 1000, 0);
    CompareMove move = begin(8, 7, member(5, 1000, 0));
    CompareBest best = {0};

    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_SAME_GROUP);
    move = begin(8, 7, task(0, 1000));
    other = task(0, 1000);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_SAME_GROUP);
    assert_false(best.found);

    /* Of two groups they may; and so may all when it is full. */
    move = begin(8, 7, member(5, 1000, 1000));
    other = member(6, 1000, 1000);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    best = (CompareBest){0};
    move = begin(8, 8, member(5, 1000, 0));
    other = member(5, 1000, 0);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 2000 - 2000 / 16);
}

static void test_gain(void **state)
{
    CompareMove move = begin(8, 8, task(480, 505));
    CompareSubject other = task(500, 504);
    CompareBest best = {0};

    /* Less than 30 permille is nothing; MinGainPermille= says what less is. */
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_SMALL_GAIN); /* 25 + 4 */
    other.task_there++;
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 30);
    best = (CompareBest){0};
    move.gain_min = 31;
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_SMALL_GAIN);

    /* A later one must be better by more than 15. */
    move = begin(8, 8, task(0, 500));
    other = task(0, 100);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    other = task(0, 115);
    assert_int_equal(compare_offer(&move, &other, 2, &best), COMPARE_SMALL_GAIN);
    other = task(0, 116);
    assert_int_equal(compare_offer(&move, &other, 3, &best), COMPARE_TAKEN);
    assert_int_equal(best.candidate, 3);
    assert_int_equal(best.gain, 616);
}

static void test_adjustments(void **state)
{
    CompareMove move = begin(8, 8, task(0, 600));
    CompareSubject other = task(0, 200);
    CompareBest best = {0};

    other.preferred = (NodeIx){1}; /* it is on its node */
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 800 - 50);
    other.preferred = (NodeIx){0}; /* it comes home */
    assert_int_equal(compare_offer(&move, &other, 2, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 800 + 100);
    other.preferred = (NodeIx){3};
    best = (CompareBest){0};
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 800);

    /* Groups go by the group's weights, unless it is the same or one has none. */
    best = (CompareBest){0};
    move = begin(8, 8, member(5, 10, 300));
    other = member(6, 20, 500);
    other.group_here = 100;
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 700);
    best = (CompareBest){0};
    other = task(0, 20);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 320);
    best = (CompareBest){0};
    move = begin(8, 8, task(0, 40));
    other = member(6, 20, 400);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(best.gain, 60);
}

/* Who comes home goes before who does not, whichever is seen first, but not for nothing. */
static void test_home_first(void **state)
{
    CompareMove move = begin(8, 8, task(0, 500));
    CompareSubject homeward = task(100, 0), other = task(0, 400);
    CompareBest best = {0};

    homeward.preferred = (NodeIx){0};
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(compare_offer(&move, &homeward, 2, &best), COMPARE_TAKEN);
    assert_int_equal(best.candidate, 2);
    best = (CompareBest){0};
    assert_int_equal(compare_offer(&move, &homeward, 2, &best), COMPARE_TAKEN);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_SMALL_GAIN);
    assert_int_equal(best.candidate, 2);

    best = (CompareBest){0};
    homeward.task_here = 480;
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(compare_offer(&move, &homeward, 2, &best), COMPARE_SMALL_GAIN);
    assert_int_equal(best.candidate, 1);
}

static void test_plain_move(void **state)
{
    CompareMove move = begin(10, 8, task(0, 500));
    CompareSubject other = task(100, 0);
    CompareBest best = {0};

    /* An exchange that only costs: the plain move is better. One that gains is better than it. */
    assert_true(move.may_move);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_PLAIN_MOVE);
    assert_true(best.found && !best.exchange);
    assert_int_equal(best.gain, 500);
    other = task(0, 16);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_true(best.exchange);
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_SMALL_GAIN);

    best = (CompareBest){0};
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_TAKEN);
    assert_true(best.found && !best.exchange);
    assert_int_equal(compare_offer(&move,
                                   &(CompareSubject){.preferred = NODE_NONE, .load = 1000, .task_here = 1}, 1,
                                   &best),
                     COMPARE_SMALL_GAIN); /* said before */

    /* At no gain for the other, the plain move does. */
    best = (CompareBest){0};
    other = task(0, 0);
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN);
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_TAKEN);
    assert_false(best.exchange);

    best = (CompareBest){0};
    move = begin(10, 8, task(0, 30));
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_TAKEN);
    best = (CompareBest){0};
    move = begin(10, 8, task(0, 29));
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_SMALL_GAIN);
    move = begin(10, 8, task(500, 0));
    assert_int_equal(compare_offer(&move, NULL, 0, &best), COMPARE_SMALL_GAIN);
    assert_false(best.found);
}

static void test_imbalance(void **state)
{
    CompareMove move = begin(8, 8, task(0, 1000));
    CompareSubject other = task(0, 1000);
    CompareBest best = {0};

    other.load = 400;
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_IMBALANCE);
    move = begin(9, 8, task(0, 1000));
    assert_int_equal(compare_offer(&move, &other, 1, &best), COMPARE_TAKEN); /* 8.4 and 8.6 */
    assert_int_equal(best.candidate, 1);
}

static void test_worth_trying(void **state)
{
    CompareSubject s = task(100, 100);

    assert_true(compare_worth_trying(&s));
    s.task_there = 99;
    assert_false(compare_worth_trying(&s));
    s.group_there = 5; /* of no group */
    assert_false(compare_worth_trying(&s));
    s.group_id = 1;
    assert_true(compare_worth_trying(&s));
    s.group_there = 0;
    assert_true(compare_worth_trying(&s));
    s.group_there = -1;
    assert_false(compare_worth_trying(&s));
}

static void test_weigh(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = machine_new(BOARDS);
    ScoreMachine m = score_machine(topology);
    CompareSubject s = {.group_id = 1};
    Faults own, all;

    TABLE(&own, 100, 0, 0, 300);
    TABLE(&all, 0, 500, 300, 200);
    compare_weigh(&s, &m, &own, &all, (NodeIx){0}, (NodeIx){3});
    assert_int_equal(s.task_here, 250);
    assert_int_equal(s.task_there, 750);
    assert_int_equal(s.group_here, 500); /* its board */
    assert_int_equal(s.group_there, 500);
    compare_weigh(&s, &m, NULL, &all, (NodeIx){2},
                  (NodeIx){3}); /* on one board: the other board is too far to count */
    assert_int_equal(s.task_here, 0);
    assert_int_equal(s.task_there, 0);
    assert_int_equal(s.group_here, 300);
    assert_int_equal(s.group_there, 200);
    compare_weigh(&s, &m, &own, NULL, (NodeIx){0}, (NodeIx){3});
    assert_int_equal(s.group_here, 0);
    assert_int_equal(s.group_there, 0);
    faults_done(&own);
    faults_done(&all);
}

static void test_retry(void **state)
{
    assert_int_equal(compare_retry_at(0, 100000), 6250);
    assert_int_equal(compare_retry_at(0, 1000000), 62500);
    assert_int_equal(compare_retry_at(0, 15000000), 937500);
    assert_int_equal(compare_retry_at(0, 60000000), 1000000);
    assert_int_equal(compare_retry_at(5000000, 60000000), 6000000);
}

/* S-RETRY. A hundred threads on two nodes of 50 CPUs, each with its memory on one of them and most on the wrong one,
 * are looked at in the order in which they were started. */
#define THREADS 100U

typedef struct Thread {
    unsigned role; /* which of the program's threads it is; its memory is on node role % 2 */
    int32_t on;
    uint64_t retry_at_usec;
} Thread;

static CompareNode node_of(const Thread threads[THREADS], int32_t ix)
{
    CompareNode n = {.node = {ix}, .n_cpus = THREADS / 2, .capacity = THREADS / 2 * 1000};

    for (unsigned i = 0; i < THREADS; i++)
        n.n_running += threads[i].on == ix;
    n.run = MIN(n.n_running, n.n_cpus) * 1000;
    n.wait = n.n_running * 1000 - n.run;
    return n;
}

static CompareSubject subject_of(const Thread *thread)
{
    CompareSubject s = task(0, 1000);

    s.group_id = 1;
    s.preferred = (NodeIx){(int32_t)thread->role % 2};
    if (thread->on == s.preferred.i) {
        s.task_here = 1000;
        s.task_there = 0;
    }
    return s;
}

static void place(Thread threads[THREADS], Thread *thread)
{
    CompareNode src = node_of(threads, thread->on), dst = node_of(threads, 1 - thread->on);
    CompareSubject subject = subject_of(thread);
    CompareMove move = compare_begin(&src, &dst, &subject, 6, 30);
    CompareBest best = {0};

    (void)compare_offer(&move, NULL, 0, &best);
    for (size_t i = 0; i < THREADS; i++) {
        CompareSubject other = subject_of(&threads[i]);

        if (threads[i].on == dst.node.i)
            (void)compare_offer(&move, &other, i, &best);
    }
    if (best.found && best.exchange)
        threads[best.candidate].on = src.node.i;
    if (best.found)
        thread->on = dst.node.i;
}

/* One pass at `now`; returns how many threads are where their memory is. */
static unsigned pass(Thread threads[THREADS], uint64_t now)
{
    unsigned n = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        if (now < threads[i].retry_at_usec || threads[i].on == (int32_t)threads[i].role % 2)
            continue;
        threads[i].retry_at_usec = compare_retry_at(now, 1000000);
        place(threads, &threads[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        n += threads[i].on == (int32_t)threads[i].role % 2;
    return n;
}

static void test_s_retry(void **state)
{
    const uint64_t far_future = 1000000000, now = 5000000;
    uint64_t random = 23;

    for (unsigned round = 0; round < 20; round++) {
        Thread threads[THREADS] = {0}, heirs[THREADS];

        for (unsigned i = 0; i < THREADS; i++) {
            unsigned k = fixture_random(&random, i + 1); /* any order of starting */

            threads[i].role = threads[k].role;
            threads[k].role = i;
        }
        for (unsigned i = 0; i < THREADS; i++) /* where the role says, whenever it was started */
            threads[i].on = threads[i].role < THREADS / 2;
        memcpy(heirs, threads, sizeof(heirs));
        assert_int_equal(pass(threads, now), THREADS);

        /* Had they inherited the parent's instant, nothing would happen until then. */
        for (unsigned i = 0; i < THREADS; i++)
            heirs[i].retry_at_usec = far_future;
        assert_int_equal(pass(heirs, now), THREADS / 2);
        assert_int_equal(pass(heirs, far_future), THREADS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classify),     cmocka_unit_test(test_may_move),
        cmocka_unit_test(test_s_swap),       cmocka_unit_test(test_spare),
        cmocka_unit_test(test_gain),         cmocka_unit_test(test_adjustments),
        cmocka_unit_test(test_home_first),   cmocka_unit_test(test_plain_move),
        cmocka_unit_test(test_imbalance),    cmocka_unit_test(test_weigh),
        cmocka_unit_test(test_worth_trying), cmocka_unit_test(test_retry),
        cmocka_unit_test(test_s_retry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
