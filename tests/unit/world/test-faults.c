/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P11: the fault averages of tasks. */

#include "base/util.h"
#include "unit-test.h"
#include "world/faults.h"

static void test_decay(void **state)
{
    const uint64_t expected[] = {1000, 1500, 1750, 1875, 1938, 1969, 1985, 1993};
    Faults f;

    assert_int_equal(faults_init(&f, 2), 0);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        faults_accessed(&f, (NodeIx){1}, FAULTS_KIND_SHARED, 400);
        faults_accessed(&f, (NodeIx){1}, FAULTS_KIND_SHARED, 600);
        faults_fold(&f);
        assert_int_equal(f.nodes[1].memory[FAULTS_KIND_SHARED], expected[i]);
        assert_int_equal(f.n_sequences, i + 1);
    }
    assert_int_equal(faults_memory(&f, (NodeIx){0}), 0);
    assert_int_equal(faults_memory(&f, (NodeIx){1}), 1993);
    assert_int_equal(faults_kind(&f, FAULTS_KIND_PRIVATE), 0);
    assert_int_equal(faults_kind(&f, FAULTS_KIND_SHARED), 1993);

    /* No more faults: decays to 1, which stays. */
    faults_fold(&f);
    assert_int_equal(faults_total(&f), 997);
    f.n_sequences = UINT32_MAX - 1;
    for (unsigned i = 0; i < 20; i++)
        faults_fold(&f);
    assert_int_equal(faults_total(&f), 1);
    assert_int_equal(f.n_sequences, UINT32_MAX);
    faults_done(&f);
    assert_null(f.nodes);
}

/* Whatever came before, the average of a steady rate converges to twice the rate; from above it may stay one
 * higher. */
static void test_converges(void **state)
{
    uint64_t seed = 3;

    for (unsigned round = 0; round < 500; round++) {
        uint64_t rate = lcg_below(&seed, 1000000), start = lcg_below(&seed, 4000000);
        CLEANUP(faults_done) Faults f;

        assert_int_equal(faults_init(&f, 1), 0);
        faults_accessed(&f, (NodeIx){0}, FAULTS_KIND_PRIVATE, start);
        for (unsigned i = 0; i < 40; i++) {
            faults_fold(&f);
            faults_accessed(&f, (NodeIx){0}, FAULTS_KIND_PRIVATE, rate);
        }
        assert_in_range(faults_total(&f), 2 * rate - (rate > 0), 2 * rate + 1);
    }
}

TEST_MAIN(NULL, NULL, test_decay, test_converges)
