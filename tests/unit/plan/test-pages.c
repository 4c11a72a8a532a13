/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P13: which pages may move (S-2STAGE, S-PINGPONG). */

#include "fixture.h"
#include "plan/memory/pages.h"

/* A page of somebody else of the group who is on the same node as we are; both nodes are used alike. */
static PagesAccess settled(void)
{
    return (PagesAccess){
        .last_known = true,
        .last_here = true,
        .to_has_memory = true,
        .has_preferred = true,
        .n_sequences = 5,
        .two_stage = true,
        .has_group = true,
        .cpu_from = 1000,
        .cpu_to = 1000,
        .memory_from = 1000,
        .memory_to = 1000,
    };
}

static void test_early(void **state)
{
    PagesAccess a = settled();

    a.last_known = a.last_here = false;
    assert_int_equal(pages_judge(&a), PAGES_STAY_BALANCED);
    a.n_sequences = PAGES_EARLY_SEQUENCES;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_EARLY);
    a.n_sequences = 5;
    a.has_preferred = false;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_EARLY);

    a.last_known = true; /* somebody else, elsewhere */
    assert_int_equal(pages_judge(&a), PAGES_STAY_OTHER_NODE);
    a.last_own = true; /* ourselves, before we came here */
    assert_int_equal(pages_judge(&a), PAGES_MOVE_EARLY);
    a.to_has_memory = false;
    assert_int_equal(pages_judge(&a), PAGES_STAY_NO_MEMORY);
}

static void test_stages(void **state)
{
    PagesAccess a = settled();

    a.last_own = true;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_PRIVATE);
    a.last_here = false;
    assert_int_equal(pages_judge(&a), PAGES_STAY_OTHER_NODE);
    a.two_stage = false;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_PRIVATE);

    a = settled();
    a.has_group = false;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_NO_GROUP);
    a.last_here = false;
    assert_int_equal(pages_judge(&a), PAGES_STAY_OTHER_NODE);
}

static void test_use(void **state)
{
    PagesAccess a = settled();

    /* More than three times the run time. */
    a.memory_to = 1000000;
    a.cpu_to = 3000;
    assert_int_equal(pages_judge(&a), PAGES_STAY_BALANCED);
    a.cpu_to = 3001;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_MUCH_USED);

    /* cpu(to) * memory(from) * 3 > cpu(from) * memory(to) * 4, so a third more run time for the same memory. */
    a = settled();
    a.cpu_to = 1333;
    assert_int_equal(pages_judge(&a), PAGES_STAY_BALANCED);
    a.cpu_to = 1334;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_BALANCES);
    a = settled();
    a.memory_to = 750;
    assert_int_equal(pages_judge(&a), PAGES_STAY_BALANCED);
    a.memory_to = 749;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_BALANCES);

    /* The largest averages: no overflow. */
    a.cpu_from = a.cpu_to = a.memory_from = a.memory_to = (UINT64_C(1) << 60) - 1;
    assert_int_equal(pages_judge(&a), PAGES_STAY_BALANCED);
    a.memory_to /= 2;
    assert_int_equal(pages_judge(&a), PAGES_MOVE_BALANCES);

    assert_true(pages_moves(PAGES_MOVE_EARLY) && pages_moves(PAGES_MOVE_BALANCES));
    assert_false(pages_moves(PAGES_STAY_NO_MEMORY) || pages_moves(PAGES_STAY_BALANCED));
    assert_false(pages_moves(PAGES_VERDICT_INVALID));
}

/* Of 400 pairs of accesses, one by each of 20 equal tasks after one by each, `n_there` of which are on the node in
 * question: how many move the page to it. The page is of no group, so only the two stages decide. */
static unsigned pairs(unsigned n_there, bool two_stage)
{
    unsigned n = 0;

    for (unsigned before = 0; before < 20; before++) {
        for (unsigned now = 0; now < n_there; now++) { /* the others would not move it there */
            PagesAccess a = settled();

            a.two_stage = two_stage;
            a.has_group = false;
            a.last_own = before == now;
            a.last_here = before < n_there;
            n += pages_moves(pages_judge(&a));
        }
    }
    return n;
}

/* S-2STAGE: the square of the share: 0.0025 of 5 %, 0.0625 of 25 %, 0.81 of 90 %. Without it, the share. */
static void test_s_2stage(void **state)
{
    assert_int_equal(pairs(1, true), 1);
    assert_int_equal(pairs(5, true), 25);
    assert_int_equal(pairs(18, true), 324);
    assert_int_equal(pairs(5, false), 100);
}

/* S-PINGPONG: a page that two nodes use alike, at random, stays where it is; a filter that goes by nothing would
 * move it at every access from the other side. */
static void test_s_pingpong(void **state)
{
    unsigned moved = 0, naive = 0;
    uint64_t random = 17;
    int page = 0, page_naive = 0, last = 0;

    for (unsigned i = 0; i < 10000; i++) {
        int node = (int)fixture_random(&random, 2);
        PagesAccess a = settled();

        a.last_here = last == node;
        if (node != page && pages_moves(pages_judge(&a))) {
            page = node;
            moved++;
        }
        naive += node != page_naive;
        page_naive = node;
        last = node;
    }
    assert_int_equal(moved, 0);
    assert_in_range(naive, 4500, 5500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early),    cmocka_unit_test(test_stages),     cmocka_unit_test(test_use),
        cmocka_unit_test(test_s_2stage), cmocka_unit_test(test_s_pingpong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
