/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P7 and I4: cool-downs, token buckets, and the effect of all guards on noise (S-HYST). */

#include "fixture.h"
#include "plan/planner.h"

#define FIXED0 "[Placement]\nMode=fixed\nNodes=0\n"

static void test_cooldown(void **state)
{
    const Policy policy = {.min_residency_usec = 2000000, .backoff_max = 8};
    CpuLoad cpu = {0};

    /* The example in guard.c. */
    cpu.cooldown_ticks = guard_cooldown(&cpu, &policy, 1000000, FIXTURE_TICK_USEC);
    assert_int_equal(cpu.cooldown_ticks, 1);
    cpu.cooldown_ticks = guard_cooldown(&cpu, &policy, 1000000, FIXTURE_TICK_USEC);
    assert_int_equal(cpu.cooldown_ticks, 2);
    cpu.cooldown_ticks = guard_cooldown(&cpu, &policy, 1000000, FIXTURE_TICK_USEC);
    assert_int_equal(cpu.cooldown_ticks, 4);
    cpu.cooldown_ticks = guard_cooldown(&cpu, &policy, 1000000, FIXTURE_TICK_USEC);
    cpu.cooldown_ticks = guard_cooldown(&cpu, &policy, 1000000, FIXTURE_TICK_USEC);
    assert_int_equal(cpu.cooldown_ticks, 8); /* BackoffMax= */
    assert_int_equal(guard_cooldown(&cpu, &policy, 15999999, FIXTURE_TICK_USEC), 8);
    assert_int_equal(guard_cooldown(&cpu, &policy, 16000000, FIXTURE_TICK_USEC), 1);

    /* As time: that many units. A single one is shorter after a long lease, but at least one tick. */
    assert_int_equal(guard_cooldown_usec(&cpu, &policy, 60000000, FIXTURE_TICK_USEC), 16000000);
    cpu.cooldown_ticks = 1;
    assert_int_equal(guard_cooldown_usec(&cpu, &policy, 0, FIXTURE_TICK_USEC), 2000000);
    assert_int_equal(guard_cooldown_usec(&cpu, &policy, 3999999, FIXTURE_TICK_USEC), 2000000);
    assert_int_equal(guard_cooldown_usec(&cpu, &policy, 20000000, FIXTURE_TICK_USEC), 200000);
    assert_int_equal(guard_cooldown_usec(&cpu, &policy, UINT64_MAX, FIXTURE_TICK_USEC), FIXTURE_TICK_USEC);
    assert_int_equal(guard_cooldown_usec(&cpu, &(Policy){0}, 0, 0), 0);

    assert_int_equal(guard_cooldown_unit(&policy, FIXTURE_TICK_USEC), 2000000);
    assert_int_equal(guard_cooldown_unit(&(Policy){0}, FIXTURE_TICK_USEC), FIXTURE_TICK_USEC);
}

static void test_bucket(void **state)
{
    Bucket b = {0};
    uint64_t now = 5000000;

    /* The example in cap.c: burst 4, 2 per second. */
    for (unsigned i = 0; i < 4; i++) {
        assert_true(cap_has(&b, 2, 4, now, 0));
        cap_take(&b, 2, 4, now);
    }
    assert_false(cap_has(&b, 2, 4, now, 0));
    assert_false(cap_has(&b, 2, 4, now + 499999, 0));
    assert_true(cap_has(&b, 2, 4, now + 500000, 0));
    assert_false(cap_has(&b, 2, 4, now + 500000, 1));
    assert_int_equal(cap_level(&b, 2, 4, now + 3600000000), 4000);
    assert_int_equal(cap_level(&b, UINT32_MAX, 4, UINT64_MAX), 4000);
    assert_int_equal(cap_level(&b, 2, 0, now), 0);
    assert_int_equal(cap_level(&b, 2, 4, now - 1), 0); /* time never runs backwards, but if it did */
    b.level = 4000;
    assert_int_equal(cap_level(&b, 2, 1, now), 1000); /* a smaller burst after a reload */
}

/* I4 over every window of a random sequence. */
static void test_bucket_windows(void **state)
{
    uint64_t random = 4711;

    for (unsigned round = 0; round < 50; round++) {
        uint32_t rate = fixture_random(&random, 20), burst = fixture_random(&random, 10);
        uint64_t taken[400], now = 1000000;
        size_t n = 0;
        Bucket b = {0};

        for (unsigned i = 0; i < 400; i++) {
            now += fixture_random(&random, 200000);
            if (!cap_has(&b, rate, burst, now, 0))
                continue;
            cap_take(&b, rate, burst, now);
            taken[n++] = now;
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = i; k < n; k++)
                assert_true((k - i + 1) * 1000000 <= burst * 1000000ULL + rate * (taken[k] - taken[i]));
        assert_true(burst > 0 || n == 0);
    }
}

/* The same for whole plans: 16 threads, short leases, both buckets small. */
static void test_caps(void **state)
{
    uint64_t when[2000];
    size_t n = 0;
    CLEANUP(fixture_done) Fixture f;
    Policy *p;

    fixture_init(&f, TWO_SHARDS);
    p = fixture_policy(&f, "a", FIXED0 "[Limits]\nCrossNodeMovesPerSec=3\nCrossNodeBurst=5\nNiceTries=0\n");
    p->lease_usec = 500000;
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 26; tid++)
        fixture_task(&f, 10, tid, 500)->last_cpu = (CpuIx){0}; /* waits at home, not on the lent CPU */
    fixture_cpus(&f, 0, 7, 1000, 500);
    fixture_home(&f);

    f.limits.cross_node_burst = 2;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 2);
    assert_true(f.plan.n_refused[PLAN_REASON_RATE_HOST] > 0);
    f.limits.cross_node_burst = 1000;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 5);
    assert_true(f.plan.n_refused[PLAN_REASON_RATE_WORKLOAD] > 0);

    for (unsigned tick = 0; tick < 1000; tick++) {
        fixture_plan(&f, false);
        for (size_t i = 0; i < fixture_count(&f, PLAN_KIND_LEND); i++)
            when[n++] = f.world->now_usec;
        fixture_commit(&f, NULL);
        fixture_tick(&f);
    }
    assert_true(n > 200); /* of 305 allowed: back-off prevents some */
    for (size_t i = 0; i < n; i++)
        for (size_t k = i; k < n; k++)
            assert_true((k - i + 1) * 1000000 <= 5 * 1000000ULL + 3 * (when[k] - when[i]));
}

/* As many threads as CPUs at home, and at random one more in a tick, for a minute. Returns the number of lends. */
static uint64_t noise(uint64_t seed, const char *policy)
{
    uint64_t random = seed * 7919, moves = 0;
    uint16_t demand[9];
    Fixture f;

    fixture_init_with(&f, TWO_SHARDS, policy);
    fixture_process(&f, 10, "a", NULL);
    for (unsigned i = 0; i < 9; i++)
        fixture_task(&f, 10, 10 + (pid_t)i, 0);
    fixture_home(&f);
    for (unsigned tick = 0; tick < 600; tick++) {
        uint32_t n = 7 + fixture_random(&random, 3);

        for (unsigned i = 0; i < 9; i++)
            demand[i] = i < n ? 1000 : 0;
        fixture_model(&f, demand);
        fixture_plan(&f, false);
        moves += fixture_count(&f, PLAN_KIND_LEND);
        fixture_commit(&f, NULL);
    }
    fixture_done(&f);
    return moves;
}

/* S-HYST for lends. Detection takes two ticks and the vetoes two more, so 9 threads must be there in four
 * ticks in a row: 1/81 of all, that is 7 in a minute. Residency prevents some. */
static void test_s_hyst(void **state)
{
    uint64_t guarded = 0, unguarded = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t n = noise(seed, FIXED0);

        assert_in_range(n, 0, 7);
        guarded += n;
        unguarded += noise(seed, FIXED0 "MinResidencySec=0\n[Limits]\nNiceTries=0\n");
    }
    assert_true(guarded * 4 < unguarded);
}

/* An owner that wakes every 3 s for 1 s: each time its CPUs are lent again a little later. */
static void test_relapses(void **state)
{
    uint64_t recalls = 0;
    uint16_t demand[20];
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, FIXED0);
    fixture_policy(&f, "b", "[Placement]\nMode=fixed\nNodes=1\n");
    fixture_process(&f, 10, "a", NULL);
    fixture_process(&f, 20, "b", NULL);
    for (unsigned i = 0; i < 12; i++)
        fixture_task(&f, 10, 10 + (pid_t)i, 0);
    for (unsigned i = 0; i < 8; i++)
        fixture_task(&f, 20, 30 + (pid_t)i, 0);
    fixture_home(&f);
    for (unsigned tick = 0; tick < 1200; tick++) {
        for (unsigned i = 0; i < 20; i++)
            demand[i] = i < 12 || tick % 40 >= 30 ? 1000 : 0;
        fixture_model(&f, demand);
        if (tick % 40 >= 33) /* two ticks after waking, the owner has all */
            assert_int_equal(fixture_run(&f, 20), 8000);
        fixture_plan(&f, false);
        recalls += fixture_count(&f, PLAN_KIND_RECALL);
        fixture_commit(&f, NULL);
        fixture_assert_settled(&f, false);
    }
    /* 30 wakings, 4 threads lent: 120 recalls without the doubling. */
    assert_in_range(recalls, 4, 60);
}

TEST_MAIN(NULL, NULL, test_cooldown, test_bucket, test_bucket_windows, test_caps, test_s_hyst, test_relapses)
