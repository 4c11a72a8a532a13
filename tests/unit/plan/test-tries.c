/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts of attempts, compared with a table that has an entry for every address. */

#include "plan/memory/tries.h"
#include "random-world.h"

#define N_ADDRESSES 40U
#define N_ROUNDS    500U

/* Adds an attempt at `start`. Returns the count before. */
static uint32_t again(Tries *tries, uint64_t start)
{
    uint32_t n = UINT32_MAX;

    assert_int_equal(tries_ask(tries, start, &n), 0);
    assert_int_equal(tries_keep(tries, start, n + 1), 0);
    return n;
}

static void test_rounds(void **state)
{
    CLEANUP(tries_done) Tries tries = {0};
    uint32_t n;

    tries_begin(&tries);
    assert_int_equal(again(&tries, 20), 0);
    assert_int_equal(again(&tries, 40), 0);
    assert_int_equal(tries_end(&tries), 0);

    /* One address is new and comes first, one is forgotten, and one is not asked for. */
    tries_begin(&tries);
    assert_int_equal(again(&tries, 10), 0);
    assert_int_equal(tries_ask(&tries, 20, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(tries_keep(&tries, 20, 0), 0);
    assert_int_equal(tries_end(&tries), 0);

    tries_begin(&tries);
    assert_int_equal(again(&tries, 10), 1);
    assert_int_equal(again(&tries, 20), 0);
    assert_int_equal(again(&tries, 30), 0);
    assert_int_equal(again(&tries, 40), 1);
    assert_int_equal(tries_end(&tries), 0);
}

/* Attempts are taken back in a range, once each, and never below zero. */
static void test_take_back(void **state)
{
    CLEANUP(tries_done) Tries tries = {0};

    tries_take_back(&tries, 0, UINT64_MAX);
    tries_begin(&tries);
    for (uint64_t start = 10; start <= 40; start += 10)
        assert_int_equal(again(&tries, start), 0);
    assert_int_equal(tries_end(&tries), 0);
    tries_take_back(&tries, 20, 40);
    tries_take_back(&tries, 11, 21);
    tries_take_back(&tries, 41, UINT64_MAX);

    tries_begin(&tries);
    assert_int_equal(again(&tries, 10), 1);
    assert_int_equal(again(&tries, 20), 0);
    assert_int_equal(again(&tries, 30), 0);
    assert_int_equal(again(&tries, 40), 1);
    assert_int_equal(tries_end(&tries), 0);
}

/* Memory that is never asked for again is forgotten before there is too much; what is asked for keeps its count. */
static void test_limit(void **state)
{
    CLEANUP(tries_done) Tries tries = {0};
    uint64_t start = 1;

    for (uint32_t round = 0; round < 40; round++) {
        tries_begin(&tries);
        assert_int_equal(again(&tries, 0), round);
        for (uint32_t i = 0; i < TRIES_MAX / 8; i++)
            assert_int_equal(again(&tries, start++), 0);
        assert_int_equal(tries_end(&tries), 0);
        assert_in_range(tries.n, TRIES_MAX / 8, 2 * TRIES_MAX);
    }
}

/* A round that was not finished does not count. */
static void test_broken_off(void **state)
{
    CLEANUP(tries_done) Tries tries = {0};

    tries_begin(&tries);
    assert_int_equal(again(&tries, 10), 0);
    assert_int_equal(tries_end(&tries), 0);
    tries_begin(&tries);
    assert_int_equal(again(&tries, 5), 0);
    assert_int_equal(again(&tries, 10), 1);
    tries_begin(&tries);
    assert_int_equal(again(&tries, 5), 0);
    assert_int_equal(again(&tries, 10), 1);
    assert_int_equal(tries_end(&tries), 0);
}

static void test_random(void **state)
{
    uint32_t known[N_ADDRESSES] = {0};
    Random random = {.state = 5};
    CLEANUP(tries_done) Tries tries = {0};

    for (unsigned round = 0; round < N_ROUNDS; round++) {
        uint32_t now[N_ADDRESSES];
        bool ends = random_roll(&random, 10) > 0;

        memcpy(now, known, sizeof(now));
        tries_begin(&tries);
        for (uint32_t i = 0; i < N_ADDRESSES; i++) {
            uint32_t n;

            if (random_roll(&random, 3) > 0)
                continue;
            assert_int_equal(tries_ask(&tries, i, &n), 0);
            assert_int_equal(n, known[i]);
            now[i] = random_roll(&random, 4) > 0 ? n + 1 : 0;
            assert_int_equal(tries_keep(&tries, i, now[i]), 0);
        }
        if (!ends)
            continue;
        assert_int_equal(tries_end(&tries), 0);
        memcpy(known, now, sizeof(known));
    }
}

TEST_MAIN(NULL, NULL, test_rounds, test_take_back, test_broken_off, test_random, test_limit)
