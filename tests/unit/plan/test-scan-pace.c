/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P8, P10, P16: first rounds, adapted periods, and what a round shows (S-SETTLE). */

#include "../touches-test.h"
#include "fixture.h"
#include "plan/scan/converge.h"
#include "plan/scan/pace.h"

#define MEGABYTE (UINT64_C(1) << 20)
#define MSEC     UINT64_C(1000)
#define FIRST    (SCAN_PACE_FIRST_USEC / MSEC)

static const ScanPeriodLimits kernel = {1000000, 60000000, 256 * MEGABYTE};

static ScanPaceRound round_of(uint64_t rss_mb, ScanPeriodSeen seen)
{
    return (ScanPaceRound){.range = scan_period_range(&kernel, rss_mb * MEGABYTE), .seen = seen};
}

static ScanPaceRound local(void)
{
    return round_of(100, (ScanPeriodSeen){.local = 1000, .private_faults = 1000});
}

static ScanPaceRound remote(void)
{
    return round_of(100, (ScanPeriodSeen){.remote = 1000, .shared_faults = 1000});
}

static uint64_t go(ScanPace *pace, const ScanPaceRound *round)
{
    scan_pace_round(pace, round);
    return scan_pace_usec(pace) / MSEC;
}

/* A pace past its first rounds, with this period. */
static ScanPace paced(uint64_t msec)
{
    return (ScanPace){.period_usec = msec * MSEC, .n_rounds = SCAN_PACE_FIRST_ROUNDS, .moved_usec = 1000};
}

/* Whatever the shortest period, three rounds follow at once. */
static void test_first(void **state)
{
    const ScanPaceRound round = local();
    ScanPace pace = {0};

    assert_int_equal(scan_pace_usec(&pace), SCAN_PACE_FIRST_USEC);
    assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), 1000);
    assert_int_equal(go(&pace, &round), 1300);
}

/* More of them while threads become known, but not for ever. */
static void test_learning(void **state)
{
    ScanPaceRound round = local();
    ScanPace pace = {0};

    round.learning = true;
    for (unsigned i = 1; i < SCAN_PACE_LEARN_ROUNDS; i++)
        assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), 1000);
    assert_int_equal(go(&pace, &round), 1300);

    pace = (ScanPace){0};
    for (unsigned i = 1; i < 6; i++)
        assert_int_equal(go(&pace, &round), FIRST);
    round.learning = false;
    assert_int_equal(go(&pace, &round), 1000);

    /* After settling, if only for one round, it may learn again. */
    assert_int_equal(go(&pace, &round), 1300);
    round.learning = true;
    for (unsigned i = SCAN_PACE_FIRST_ROUNDS + 1; i < SCAN_PACE_LEARN_ROUNDS; i++)
        assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), 1000);
    assert_int_equal(go(&pace, &round), 1300);
}

static void test_adapted(void **state)
{
    const ScanPaceRound half = round_of(
        1024, (ScanPeriodSeen){.local = 500, .remote = 500, .private_faults = 500, .shared_faults = 500});
    const ScanPaceRound good = local(), bad = remote(), silent = round_of(100, (ScanPeriodSeen){0});
    ScanPace pace = paced(1000);

    assert_int_equal(go(&pace, &good), 1300);
    assert_int_equal(go(&pace, &good), 1690);
    assert_int_equal(go(&pace, &bad), 1000);
    pace = paced(1000);
    assert_int_equal(go(&pace, &half), 800);
    assert_int_equal(go(&pace, &half), 640);
    for (unsigned i = 0; i < 5; i++)
        (void)go(&pace, &half);
    assert_int_equal(go(&pace, &half), 250);
    assert_int_equal(go(&pace, &silent), 500);
    assert_int_equal(go(&pace, &silent), 1000);
}

/* The period grows no longer than saves anything: 20 ms in 4 s are half a percent of the time and, if all is
 * together on one node, 20 ms in 20 s a tenth of a percent. Cheaper rounds come at the start of the range,
 * expensive ones at ScanMaxSec=; a partial round does not tell the cost. */
static void test_cheap(void **state)
{
    static const struct {
        uint32_t strength;
        uint64_t cost_usec, msec;
    } cases[] = {
        {0, 20000, 4000},
        {0, 100, 1000},
        {0, 1000000, 60000},
        {0, 0, 60000},
        {CONVERGE_FREEZE, 20000, 20000},
        {CONVERGE_FREEZE, 100, 1000},
        {CONVERGE_FREEZE, 1000000, 60000},
        {CONVERGE_FREEZE, 0, 60000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ScanPaceRound round = local();
        ScanPace pace = paced(1000);

        round.strength = cases[i].strength;
        round.cost_usec = cases[i].cost_usec;
        for (unsigned k = 0; k < 20; k++)
            (void)go(&pace, &round);
        assert_int_equal(go(&pace, &round), cases[i].msec);
    }
}

/* If memory is together the rate halves each time (P16); if a tenth is elsewhere it does not. */
static void test_converged(void **state)
{
    static const uint64_t expected[] = {2000, 4000, 8000, 16000, 32000, 60000, 60000};
    ScanPaceRound round = local();
    ScanPace pace = paced(1000);

    round.strength = CONVERGE_FREEZE;
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_int_equal(go(&pace, &round), expected[i]);
    pace = paced(1000);
    round.strength = CONVERGE_FREEZE - 1;
    assert_int_equal(go(&pace, &round), 1300);

    /* All on one node, but used from another one. */
    pace = paced(1000);
    round.strength = CONVERGE_ONE;
    round.n_near = 89;
    round.n_far = 11;
    assert_int_equal(go(&pace, &round), 1300);
    round.n_near++;
    round.n_far--;
    assert_int_equal(go(&pace, &round), 2600);
}

static uint64_t go_near(ScanPace *pace, uint64_t n_near, uint64_t n_far)
{
    ScanPaceRound round = local();

    round.n_near = n_near;
    round.n_far = n_far;
    return go(pace, &round);
}

/* Threads exchange what they work on: first rounds again. */
static void test_left(void **state)
{
    ScanPace pace = paced(1000);

    assert_int_equal(go_near(&pace, 64, 0), 1300);
    assert_int_equal(go_near(&pace, 53, 11), 1690); /* may be chance */
    assert_int_equal(go_near(&pace, 0, 0), 2197);
    assert_int_equal(go_near(&pace, 0, 64), FIRST);
    assert_int_equal(go_near(&pace, 0, 64), FIRST);
    assert_int_equal(go_near(&pace, 0, 64), 1000);
    assert_int_equal(go_near(&pace, 0, 64), 1300);
    /* Memory moves after the threads. */
    assert_int_equal(go_near(&pace, 60, 4), 1690);
    assert_int_equal(go_near(&pace, 32, 32), FIRST);
    /* A tenth of thousands is not chance, but no change of phase either. */
    pace = paced(1000);
    assert_int_equal(go_near(&pace, 10000, 0), 1300);
    assert_int_equal(go_near(&pace, 9010, 990), 1690);
    assert_int_equal(go_near(&pace, 9000, 1000), FIRST);
}

static unsigned rounds_until(ScanPace *pace, const ScanPaceRound *round, uint64_t msec)
{
    unsigned n = 1;

    while (go(pace, round) != msec && n < 100)
        n++;
    return n;
}

/* S-SETTLE: from the first round on, converged or not, at most 20 rounds to the longest period; after a new
 * phase begins, four to the shortest. */
static void test_s_settle(void **state)
{
    for (uint32_t strength = 0; strength <= CONVERGE_ONE; strength += CONVERGE_ONE) {
        ScanPaceRound good = local(), bad = remote();
        ScanPace pace = {0};
        unsigned n;

        good.strength = strength;
        n = rounds_until(&pace, &good, 60000);
        assert_int_equal(n, strength ? 9 : 19);
        assert_in_range(rounds_until(&pace, &bad, 1000), 1, 4);
    }
}

/* If threads begin to work there are three quick rounds, as at first. */
static void test_restart(void **state)
{
    const ScanPaceRound round = local();
    ScanPace pace = paced(30000);

    scan_pace_restart(&pace);
    assert_int_equal(scan_pace_usec(&pace), SCAN_PACE_FIRST_USEC);
    assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), FIRST);
    assert_int_equal(go(&pace, &round), 1000);
}

static void test_moved(void **state)
{
    const ScanPeriodRange range = scan_period_range(&kernel, 1024 * MEGABYTE);
    ScanPace pace = paced(9000);

    scan_pace_moved(&pace, &range, 0);
    scan_pace_moved(&pace, &range, 1000);
    assert_int_equal(scan_pace_usec(&pace), 9000 * MSEC);
    scan_pace_moved(&pace, &range, 2000);
    assert_int_equal(scan_pace_usec(&pace), 250 * MSEC);
    /* The same move noted again. */
    pace.period_usec = 4000 * MSEC;
    scan_pace_moved(&pace, &range, 2000);
    assert_int_equal(scan_pace_usec(&pace), 4000 * MSEC);

    /* First rounds come even sooner. */
    pace = (ScanPace){0};
    scan_pace_moved(&pace, &range, 3000);
    assert_int_equal(scan_pace_usec(&pace), SCAN_PACE_FIRST_USEC);
}

/*
 * What a round shows
 */

static void touch_block(pid_t tid, uint64_t block)
{
    touch(tid, (100 + block) * BLOCK);
}

/* Blocks below 104 lie on node 0, the others on node 1. */
static ScanPaceRound end_round(void)
{
    ScanPaceRound round;

    assert_int_equal(touches_gather(&touches), 0);
    for (size_t i = 0; i < touches.n_blocks; i++)
        touches.blocks[i].node.i = touches.blocks[i].address / BLOCK >= 104;
    assert_true(touches_fold(&touches));
    assert_int_equal(scan_pace_read(&touches, &round), 0);
    return round;
}

static void assert_seen(const ScanPeriodSeen *seen, uint64_t n_local, uint64_t n_remote, uint64_t n_private,
                        uint64_t n_shared)
{
    assert_int_equal(seen->local, n_local);
    assert_int_equal(seen->remote, n_remote);
    assert_int_equal(seen->private_faults, n_private);
    assert_int_equal(seen->shared_faults, n_shared);
    assert_int_equal(seen->n_failed, 0);
}

/* Only blocks of this round count. */
static void test_private(void **state)
{
    ScanPaceRound round;

    touch_block(11, 0);
    touch_block(11, 1);
    touch_block(11, 4);
    touch_block(13, 5);
    round = end_round();
    assert_seen(&round.seen, 3, 1, 4, 0);
    assert_int_equal(round.n_near, 3);
    assert_int_equal(round.n_far, 1);
    assert_true(round.learning);
    touch_block(13, 6);
    round = end_round();
    assert_seen(&round.seen, 1, 0, 1, 0);
}

/* A block shared by threads of one node is local there and remote elsewhere; one shared by threads of both
 * nodes is local on both (P12). */
static void test_shared(void **state)
{
    ScanPaceRound round;

    for (unsigned i = 0; i < 4; i++) {
        touch_block(i % 2 ? 11 : 12, 0);
        touch_block(i % 2 ? 11 : 12, 4);
        round = end_round();
    }
    assert_seen(&round.seen, 1, 1, 0, 2);
    for (unsigned i = 0; i < 4; i++) {
        touch_block(i % 2 ? 14 : 11, 0);
        touch_block(i % 2 ? 11 : 14, 4);
        round = end_round();
    }
    assert_seen(&round.seen, 2, 0, 0, 2);
    assert_int_equal(round.n_near, 0);
    assert_int_equal(round.n_far, 2);
    assert_false(round.learning);
}

/* One block in ten is touched from node 1: that is not one of the active nodes. */
static void test_inactive(void **state)
{
    ScanPaceRound round;

    for (unsigned i = 0; i < 4; i++) {
        for (uint64_t k = 8; k < 17; k++)
            touch_block(11, k);
        touch_block(i % 2 ? 13 : 14, 0);
        round = end_round();
    }
    assert_seen(&round.seen, 0, 10, 9, 1);
}

/* Evidence without blocks: the averages of threads. */
static void test_threads(void **state)
{
    ScanPaceRound round;
    TouchThread *thread = touches_thread(&touches, 12);

    thread->preferred = (NodeIx){1};
    thread->faults.nodes[0].memory[FAULTS_KIND_PRIVATE] = 100;
    thread->faults.nodes[1].memory[FAULTS_KIND_SHARED] = 300;
    touches_thread(&touches, 13)->preferred = NODE_NONE;
    touches_thread(&touches, 13)->faults.nodes[0].memory[FAULTS_KIND_SHARED] = 7;
    assert_int_equal(scan_pace_read(&touches, &round), 0);
    assert_seen(&round.seen, 300, 107, 100, 307);
    assert_int_equal(round.n_near, 300);
    assert_int_equal(round.n_far, 107);
    assert_false(round.learning);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_adapted),
        cmocka_unit_test(test_converged),
        cmocka_unit_test(test_cheap),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_s_settle),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_moved),
        cmocka_unit_test_setup_teardown(test_private, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inactive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };

    return cmocka_run_group_tests_name("plan/scan-pace", tests, NULL, NULL);
}
