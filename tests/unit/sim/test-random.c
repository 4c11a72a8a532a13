/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Random numbers, and the heap that orders events. */

#include "../conf/conf-test.h"
#include "sim/model/heap.h"
#include "sim/model/random.h"

#define N 100000U

/* splitmix64 from seed 0, as published with it. */
static void test_known(void **state)
{
    Random random = {0};

    assert_true(random_next(&random) == 0xe220a8397b1dcdafU);
    assert_true(random_next(&random) == 0x6e789e6aa1b965f4U);
    assert_true(random_next(&random) == 0x06c45d188009454fU);
}

static void test_split(void **state)
{
    Random a = random_split(1, 1), b = random_split(1, 2), c = random_split(2, 1), d = random_split(1, 1);
    uint64_t first = random_next(&a);

    assert_true(first == random_next(&d));
    assert_true(first != random_next(&b));
    assert_true(first != random_next(&c));
}

static void test_below(void **state)
{
    Random random = {7};
    unsigned seen[10] = {0};

    for (unsigned i = 0; i < N; i++)
        seen[random_below(&random, 10)]++;
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(seen[i], N / 10 - N / 100, N / 10 + N / 100);
    assert_int_equal(random_below(&random, 0), 0);
    assert_int_equal(random_below(&random, 1), 0);
}

typedef struct Spread {
    uint64_t low, high, mean_usec, above_mean;
} Spread;

static Spread spread(const SimDist *dist)
{
    Random random = {11};
    Spread s = {.low = UINT64_MAX};
    uint64_t sum = 0;

    for (unsigned i = 0; i < N; i++) {
        uint64_t t = random_time(&random, dist);

        s.low = MIN(s.low, t);
        s.high = MAX(s.high, t);
        s.above_mean += t > dist->a_usec * 1000;
        sum += t / 1000;
    }
    s.mean_usec = sum / N;
    return s;
}

/* An exponential variate is above its mean with probability 1/e, and above ten times its mean with
 * probability 1/22026. */
static void test_time(void **state)
{
    Spread s = spread(&(SimDist){.kind = SIM_DIST_CONSTANT, .a_usec = 3});

    assert_true(s.low == 3000 && s.high == 3000);
    s = spread(&(SimDist){.kind = SIM_DIST_UNIFORM, .a_usec = 1000, .b_usec = 5000});
    assert_in_range(s.low, 1000000, 1001000);
    assert_in_range(s.high, 4999000, 5000000);
    assert_in_range(s.mean_usec, 2980, 3020);
    s = spread(&(SimDist){.kind = SIM_DIST_EXPONENTIAL, .a_usec = 1000});
    assert_in_range(s.mean_usec, 990, 1010);
    assert_in_range(s.above_mean, 36400, 37200);
    assert_in_range(s.high, 8000000, 25000000);
    assert_true(s.low >= 1);
    s = spread(&(SimDist){.kind = SIM_DIST_CONSTANT});
    assert_int_equal(s.high, 0);
}

#define ITEMS 50U

/* The first item, found by comparing all. */
static uint32_t first_of(const uint64_t when[ITEMS])
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < ITEMS; i++)
        if (when[i] < when[best])
            best = i;
    return best;
}

static void test_heap(void **state)
{
    uint64_t when[ITEMS];
    Random random = {3};
    Heap heap;

    assert_int_equal(heap_init(&heap, ITEMS), 0);
    for (uint32_t i = 0; i < ITEMS; i++)
        when[i] = HEAP_NEVER;
    for (unsigned n = 0; n < 20000; n++) {
        uint32_t item = random_below(&random, ITEMS), first;

        when[item] = random_below(&random, 4) == 0 ? HEAP_NEVER : random_below(&random, 100);
        heap_set(&heap, item, when[item]);
        if (random_below(&random, 3) > 0)
            continue;
        first = first_of(when);
        item = first;
        assert_true(heap_pop(&heap, &item) == when[first]);
        assert_int_equal(item, first);
        when[first] = HEAP_NEVER;
    }
    heap_done(&heap);
}

TEST_MAIN(NULL, NULL, test_known, test_split, test_below, test_time, test_heap)
