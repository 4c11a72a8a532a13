/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pacing of ticks: backing off, waking, and staying below MaxCPU=. */

#include "base/time.h"
#include "base/util.h"
#include "daemon/pace.h"
#include "unit-test.h"

#define MS USEC_PER_MSEC

static const PaceSettings defaults = {.fast_usec = 100 * MS, .slow_usec = 1000 * MS, .max_cpu_permille = 10};

static Pace pace;
static uint64_t now;

static int setup(void **state)
{
    now = 1000 * USEC_PER_SEC;
    pace_init(&pace, &defaults);
    return 0;
}

/* A pace without savings, like that of a daemon that has long been busy. */
static void init_poor(void)
{
    pace_init(&pace, &defaults);
    pace.saved_nsec = 0;
}

/* One tick now, at no cost. */
static void tick(bool pressed, bool asleep)
{
    pace_ticked(&pace, now, pace_slow_due(&pace, now), pressed ? PACE_PRESSED : PACE_CALM, asleep, 0, 0);
}

/* That many ticks in which all threads sleep, until the next one is due. */
static void ticks_asleep(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        tick(false, true);
        now = pace.due_usec;
    }
}

static void test_first_tick_is_slow_and_due(void **state)
{
    assert_true(pace_slow_due(&pace, 123456));
    assert_true(pace.due_usec <= 123456);
}

static void test_pressed_keeps_the_fast_tick(void **state)
{
    for (int i = 0; i < 50; i++) {
        tick(true, false);
        assert_int_equal(pace.due_usec - now, 100 * MS);
        now = pace.due_usec;
    }
}

/* A long tick may see a machine on which everything runs, one thread ends and another waits, as full. The
 * next tick is therefore fast, so that a CPU that is idle now is seen soon. A machine that is full stays
 * full, and is no reason to hurry. */
static void test_full_only_when_seen_twice(void **state)
{
    static const struct {
        PacePress press;
        uint64_t expected_ms;
    } ticks[] = {{PACE_FULL, 100}, {PACE_FULL, 200}, {PACE_FULL, 400}, {PACE_PRESSED, 100},
                 {PACE_FULL, 200}, {PACE_CALM, 400}, {PACE_FULL, 100}};

    while (pace_fast_usec(&pace) < PACE_IDLE_MAX_USEC)
        ticks_asleep(1);
    for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
        pace_ticked(&pace, now, pace_slow_due(&pace, now), ticks[i].press, false, 0, 0);
        assert_int_equal(pace_fast_usec(&pace), ticks[i].expected_ms * MS);
        now = pace.due_usec;
    }
}

static void test_backs_off_doubling_to_two_seconds(void **state)
{
    static const uint64_t expected_ms[] = {200, 400, 800, 1600, 2000, 2000};

    for (size_t i = 0; i < ARRAY_SIZE(expected_ms); i++) {
        tick(false, true);
        assert_int_equal(pace_fast_usec(&pace), expected_ms[i] * MS);
        now += pace_fast_usec(&pace);
    }
}

static void test_asleep_wakes_once_for_both_ticks(void **state)
{
    uint64_t before;

    ticks_asleep(20);
    assert_int_equal(pace_slow_usec(&pace), 2000 * MS);
    for (int i = 0; i < 20; i++) {
        assert_true(pace_slow_due(&pace, now));
        before = now;
        tick(false, true);
        now = pace.due_usec;
        assert_int_equal(now - before, 2000 * MS);
    }
}

static void test_members_are_looked_at_within_a_second(void **state)
{
    ticks_asleep(20);
    tick(false, true);
    assert_int_equal(pace.due_usec, now + 2000 * MS);
    pace_members_changed(&pace);
    assert_int_equal(pace.due_usec, now + 1000 * MS);
    assert_true(pace_slow_due(&pace, now + 1000 * MS));
    /* Only once. */
    now += 1000 * MS;
    tick(false, true);
    assert_int_equal(pace_slow_usec(&pace), 2000 * MS);
}

static void test_running_keeps_the_slow_tick(void **state)
{
    unsigned n_slow = 0;

    for (int i = 0; i < 100; i++) {
        n_slow += pace_slow_due(&pace, now);
        tick(true, false);
        now = pace.due_usec;
    }
    assert_int_equal(n_slow, 10); /* 100 fast ticks of 100 ms */
}

static void test_wake_goes_back_to_fast_but_not_below(void **state)
{
    ticks_asleep(10);
    tick(false, true);
    pace_wake(&pace);
    assert_int_equal(pace.due_usec, now + 100 * MS);
    pace_wake(&pace); /* a burst of events changes nothing */
    assert_int_equal(pace.due_usec, now + 100 * MS);
}

static void test_a_long_setting_is_not_backed_off_below(void **state)
{
    const PaceSettings lazy = {.fast_usec = 5000 * MS, .slow_usec = 60000 * MS, .max_cpu_permille = 10};

    pace_init(&pace, &lazy);
    for (int i = 0; i < 5; i++, now += 5000 * MS)
        tick(false, true);
    assert_int_equal(pace_fast_usec(&pace), 5000 * MS);
    assert_int_equal(pace_slow_usec(&pace), 60000 * MS);
}

static void test_cost_stretches_both_ticks_to_the_limit(void **state)
{
    /* The example of pace.c: 2 ms per fast tick and 5 ms more per slow one, 1 % of a CPU. */
    init_poor();
    pace.saved_nsec = 7 * MS * 1000;
    pace_ticked(&pace, now, true, PACE_PRESSED, false, 2 * MS * 1000, 5 * MS * 1000);
    assert_int_equal(pace.stretch_permille, 2500);
    assert_int_equal(pace_fast_usec(&pace), 250 * MS);
    assert_int_equal(pace_slow_usec(&pace), 2500 * MS);
}

/* The reported cost is what was spent, also when ticks come before they are due. */
static void test_cost_lately(void **state)
{
    for (int i = 0; i < 1000; i++, now += 100 * MS)
        pace_ticked(&pace, now, i % 10 == 0, PACE_CALM, true, MS * 1000, 0);
    assert_int_equal(pace_fast_usec(&pace), 2 * USEC_PER_SEC);
    assert_int_equal(pace_lately_usec(&pace), 100 * MS);
    assert_in_range(pace_cost_permille(&pace), 9, 10);
    /* Half of the cost of ten seconds ago no longer counts. */
    for (int i = 0; i < 5; i++, now += 2 * USEC_PER_SEC)
        pace_ticked(&pace, now, true, PACE_CALM, true, 0, 0);
    assert_in_range(pace_cost_permille(&pace), 3, 5);
}

static void test_stretch_is_bounded_and_ends(void **state)
{
    init_poor();
    pace_ticked(&pace, now, true, PACE_PRESSED, false, 60 * NSEC_PER_SEC, 0);
    assert_int_equal(pace_fast_usec(&pace), PACE_STRETCH_MAX_USEC);

    for (int i = 0; i < 200; i++) {
        now = pace.due_usec;
        pace_ticked(&pace, now, pace_slow_due(&pace, now), PACE_PRESSED, false, 1000, 0);
    }
    assert_int_equal(pace.stretch_permille, 1000);
    assert_int_equal(pace_fast_usec(&pace), 100 * MS);
}

/* At the beginning, ticks may cost more than MaxCPU= for a while, but not on average over a minute. */
static void test_savings(void **state)
{
    uint64_t start = now, spent = 0, unstretched = 0;

    for (int i = 0; i < 10000; i++) {
        bool slow = pace_slow_due(&pace, now);
        uint64_t cost = slow ? 7 * MS * 1000 : 2 * MS * 1000;

        pace_ticked(&pace, now, slow, PACE_PRESSED, false, 2 * MS * 1000, slow ? 5 * MS * 1000 : 0);
        spent += cost;
        assert_true(spent <= (PACE_SAVING_USEC + now - start) * 10 + 7 * MS * 1000);
        if (pace.stretch_permille == 1000 && unstretched == now - start)
            unstretched = pace.due_usec - start;
        now = pace.due_usec;
    }
    /* 25 ms are spent per second, 10 are earned: half of the saved 600 ms last 20 s. */
    assert_true(unstretched > 19 * USEC_PER_SEC && unstretched < 21 * USEC_PER_SEC);
    assert_in_range(pace.stretch_permille, 2400, 2500);
    assert_true(now - start > 10000 * 200 * MS);

    /* After half a minute without work the savings are back. */
    for (int i = 0; i < 40; i++) {
        pace_ticked(&pace, now, true, PACE_CALM, true, 0, 0);
        now += USEC_PER_SEC;
    }
    assert_int_equal(pace.stretch_permille, 1000);
}

static void test_no_limit_does_not_stretch(void **state)
{
    PaceSettings settings = defaults;

    settings.max_cpu_permille = 0;
    pace_init(&pace, &settings);
    pace_ticked(&pace, 1000 * USEC_PER_SEC, true, PACE_PRESSED, false, 50 * MS * 1000, 0);
    assert_int_equal(pace_fast_usec(&pace), 100 * MS);
}

/* Whatever ticks cost, their share at the chosen intervals stays within the limit, unless the maximum stretch
 * is reached. */
static void test_property_share_stays_below_limit(void **state)
{
    uint64_t seed = 1;

    for (int i = 0; i < 2000; i++) {
        uint64_t fast, slow, share_ppm;

        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        fast = seed >> 40;              /* up to 17 ms */
        slow = (seed >> 8) & 0x3ffffff; /* up to 67 ms */
        init_poor();
        pace_ticked(&pace, 1000 * USEC_PER_SEC, true, PACE_PRESSED, false, fast, slow);
        share_ppm = fast * 1000 / pace_fast_usec(&pace) + slow * 1000 / pace_slow_usec(&pace);
        assert_true(share_ppm <= 10010); /* rounding of the factor */
    }
}

static void test_settings_take_effect_at_once(void **state)
{
    PaceSettings faster = {.fast_usec = 20 * MS, .slow_usec = 500 * MS, .max_cpu_permille = 10};

    tick(false, true);
    pace_set(&pace, &faster);
    assert_int_equal(pace.due_usec, now + 20 * MS);
}

static void test_now_makes_the_next_tick_slow(void **state)
{
    tick(true, false);
    assert_false(pace_slow_due(&pace, now + 1));
    pace_now(&pace, now + 1);
    assert_true(pace_slow_due(&pace, now + 1));
    assert_int_equal(pace.due_usec, now + 1);
}

/* Between slow ticks, discoveries are at least a tenth of the slow interval apart, and no more than MaxCPU=
 * allows if they were the only cost. */
static void test_may_discover(void **state)
{
    init_poor();
    pace_ticked(&pace, now, true, PACE_CALM, false, 0, 0);
    assert_false(pace_may_discover(&pace, now + 99 * MS));
    assert_true(pace_may_discover(&pace, now + 100 * MS));

    /* A discovery in between counts for later ones, but not for slow ticks. */
    pace_ticked(&pace, now + 100 * MS, false, PACE_CALM, false, 0, 4 * MS * 1000);
    assert_false(pace_slow_due(&pace, now + 700 * MS));
    assert_true(pace_slow_due(&pace, now + 1000 * MS));

    /* 4 ms are a hundredth of 400 ms, even when fast ticks alone exceed MaxCPU=. */
    assert_false(pace_may_discover(&pace, now + 499 * MS));
    assert_true(pace_may_discover(&pace, now + 500 * MS));
    pace.fast_cost_nsec = pace_fast_usec(&pace) * 20;
    assert_false(pace_may_discover(&pace, now + 499 * MS));
    assert_true(pace_may_discover(&pace, now + 500 * MS));
    pace.find_cost_nsec = 50 * MS * 1000;
    assert_false(pace_may_discover(&pace, now + 1099 * MS));
    assert_true(pace_may_discover(&pace, now + 1100 * MS));

    /* Savings may be spent. */
    pace.saved_nsec = (int64_t)PACE_SAVING_USEC * 10;
    assert_true(pace_may_discover(&pace, now + 200 * MS));
}

/* Nothing depends on a daemon that may not change anything. */
static void test_watches_seldom_and_cheaply(void **state)
{
    PaceSettings settings = defaults;

    settings.watches = true;
    pace_init(&pace, &settings);
    for (uint64_t end = now + PACE_WATCH_NEW_USEC; now < end; now = pace.due_usec) {
        pace_ticked(&pace, now, true, PACE_PRESSED, false, 3 * MS * 1000, 3 * MS * 1000);
        assert_int_equal(pace.due_usec, now + 1000 * MS);
    }
    for (int i = 0; i < 4000; i++, now = pace.due_usec) {
        assert_true(pace_slow_due(&pace, now));
        pace_ticked(&pace, now, true, PACE_PRESSED, false, 3 * MS * 1000, 3 * MS * 1000);
        pace_wake(&pace);
        assert_true(i > 40 || pace_slow_usec(&pace) == PACE_WATCH_USEC); /* there are savings */
        assert_true(pace.due_usec >= now + PACE_WATCH_USEC);
        assert_false(pace_may_discover(&pace, pace.due_usec));
    }
    assert_in_range(pace_slow_usec(&pace), 5990 * MS, 6010 * MS); /* 6 ms of 6 s, when savings are spent */
    assert_int_equal(pace_cost_permille(&pace), 1);

    /* A new process is examined earlier only if that can be paid. */
    pace_members_changed(&pace);
    assert_in_range(pace_slow_usec(&pace), 5990 * MS, 6010 * MS);

    /* An unfinished discovery is not slowed down, even if it began before the daemon only watched. */
    pace_unfinished(&pace, true);
    assert_int_equal(pace.due_usec, pace.last_fast_usec + defaults.fast_usec);
    pace_unfinished(&pace, false);

    /* The configuration may ask for fewer and cheaper ticks. */
    settings.slow_usec = 5000 * MS;
    pace_set(&pace, &settings);
    assert_true(pace_slow_usec(&pace) >= 5000 * MS);

    settings = defaults;
    pace_set(&pace, &settings);
    pace_ticked(&pace, now, true, PACE_PRESSED, false, 1000, 1000);
    assert_true(pace.due_usec <= now + 1000 * MS);
    assert_true(pace_may_discover(&pace, now + 1000 * MS));
}

/* After processes have come or gone, a watching daemon ticks for some seconds like one that places. */
static void test_watches_what_is_new(void **state)
{
    PaceSettings settings = defaults;
    uint64_t end;

    settings.watches = true;
    pace_init(&pace, &settings);
    for (end = now + 2 * PACE_WATCH_NEW_USEC; now < end; now = pace.due_usec)
        tick(false, false);
    assert_int_equal(pace.due_usec, pace.last_fast_usec + PACE_WATCH_USEC);
    pace_members_changed(&pace);
    assert_int_equal(pace.due_usec, pace.last_fast_usec + 1000 * MS);
    for (end = pace.last_fast_usec + PACE_WATCH_NEW_USEC, now = pace.due_usec; now < end;
         now = pace.due_usec) {
        tick(false, false);
        assert_true(pace.due_usec == now + 1000 * MS);
    }
    tick(false, false);
    assert_int_equal(pace.due_usec, now + PACE_WATCH_USEC);

    /* A daemon that has placed until now already knows all processes. */
    settings.watches = false;
    pace_set(&pace, &settings);
    tick(false, false);
    settings.watches = true;
    pace_set(&pace, &settings);
    assert_int_equal(pace_slow_usec(&pace), PACE_WATCH_USEC);
}

TEST_MAIN(setup, NULL, test_first_tick_is_slow_and_due, test_pressed_keeps_the_fast_tick,
          test_full_only_when_seen_twice, test_backs_off_doubling_to_two_seconds,
          test_asleep_wakes_once_for_both_ticks, test_members_are_looked_at_within_a_second,
          test_running_keeps_the_slow_tick, test_wake_goes_back_to_fast_but_not_below,
          test_a_long_setting_is_not_backed_off_below, test_cost_stretches_both_ticks_to_the_limit,
          test_cost_lately, test_stretch_is_bounded_and_ends, test_savings, test_no_limit_does_not_stretch,
          test_property_share_stays_below_limit, test_settings_take_effect_at_once,
          test_now_makes_the_next_tick_slow, test_may_discover, test_watches_seldom_and_cheaply,
          test_watches_what_is_new)
