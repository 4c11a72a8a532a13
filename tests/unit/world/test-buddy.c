/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P14: buddies, and the class of a task's memory. */

#include "unit-test.h"
#include "world/buddy.h"

#define TID(n) ((TaskKey){.pid = 100, .tid = (n), .start_ticks = 7})

static void test_decay(void **state)
{
    const uint64_t expected[] = {750, 562, 421, 315, 236, 177};
    Buddy b = {0};

    buddy_accessed(&b, TID(102), TID(101), 400);
    buddy_accessed(&b, TID(102), TID(101), 600);
    buddy_fold(&b, 0, 1000);
    assert_int_equal(b.buddy.tid, 101);
    assert_int_equal(b.faults, 1000);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        buddy_fold(&b, 0, 0);
        assert_int_equal(b.faults, expected[i]);
    }

    /* A smaller sample moves the value a quarter of the way there, a larger one at once. */
    buddy_accessed(&b, TID(102), TID(101), 101);
    buddy_fold(&b, 0, 0);
    assert_int_equal(b.faults, (3 * 177 + 101) / 4);
    buddy_accessed(&b, TID(102), TID(101), 5000);
    buddy_fold(&b, 0, 0);
    assert_int_equal(b.faults, 5000);
}

/* A rival with half the accesses takes over once it has more than what is still remembered: 1000 750 562 421. */
static void test_rival(void **state)
{
    Buddy b = {0};

    buddy_accessed(&b, TID(105), TID(101), 1000);
    buddy_fold(&b, 0, 0);
    for (unsigned scan = 0; scan < 4; scan++) {
        assert_int_equal(b.buddy.tid, 101);
        buddy_accessed(&b, TID(105), TID(103), 500);
        buddy_fold(&b, 0, 0);
    }
    assert_int_equal(b.buddy.tid, 103);
    assert_int_equal(b.faults, 500);

    /* The same number is not more. */
    buddy_accessed(&b, TID(105), TID(104), 500);
    buddy_fold(&b, 0, 0);
    assert_int_equal(b.buddy.tid, 103);
    assert_int_equal(b.faults, 375);
}

/* Four tasks that all access the same memory form a chain, whichever is seen first. */
static void test_chain(void **state)
{
    for (int first = 0; first < 4; first++) {
        Buddy b[4] = {0};

        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 4; k++)
                buddy_accessed(&b[i], TID(101 + i), TID(101 + (first + k) % 4), 2000);
        for (int i = 0; i < 4; i++) {
            buddy_fold(&b[i], 0, 2000);
            assert_int_equal(b[i].buddy.tid, i == 0 ? 0 : 100 + i);
            assert_int_equal(b[i].faults, i == 0 ? 0 : 2000);
        }
    }
}

static void test_average(void **state)
{
    Buddy b = {0};

    for (unsigned scan = 1; scan <= 32; scan++) {
        buddy_fold(&b, 0, 1000);
        if (scan == 1)
            assert_int_equal(b.shared_average, 62);
        else if (scan == 11)
            assert_int_equal(b.shared_average, 505);
        else if (scan == 32)
            assert_int_equal(b.shared_average, 867);
        assert_int_equal(b.class, BUDDY_CLASS_SHARED);
    }
}

static void test_classify(void **state)
{
    assert_int_equal(buddy_classify(BUDDY_CLASS_UNKNOWN, 0, 0), BUDDY_CLASS_UNKNOWN);
    assert_int_equal(buddy_classify(BUDDY_CLASS_UNKNOWN, 5, 5), BUDDY_CLASS_SHARED);
    assert_int_equal(buddy_classify(BUDDY_CLASS_UNKNOWN, 5, 4), BUDDY_CLASS_PRIVATE);
    assert_int_equal(buddy_classify(BUDDY_CLASS_PRIVATE, 1000, 1999), BUDDY_CLASS_PRIVATE);
    assert_int_equal(buddy_classify(BUDDY_CLASS_PRIVATE, 1000, 2000), BUDDY_CLASS_SHARED);
    assert_int_equal(buddy_classify(BUDDY_CLASS_SHARED, 1999, 1000), BUDDY_CLASS_SHARED);
    assert_int_equal(buddy_classify(BUDDY_CLASS_SHARED, 2000, 1000), BUDDY_CLASS_PRIVATE);
    assert_int_equal(buddy_classify(BUDDY_CLASS_PRIVATE, 0, 0), BUDDY_CLASS_PRIVATE); /* asleep: unchanged */
    assert_int_equal(buddy_classify(BUDDY_CLASS_SHARED, 0, 0), BUDDY_CLASS_SHARED);
}

/* S-CLASS: a ratio that swings between 0.8 and 1.25 never flips the class; one that reaches 2 flips it once. */
static void test_s_class(void **state)
{
    for (BuddyClass start = BUDDY_CLASS_PRIVATE; start <= BUDDY_CLASS_SHARED; start++) {
        bool private_first = start == BUDDY_CLASS_PRIVATE;
        Buddy b = {0};
        BuddyClass class = start;
        unsigned flips = 0;

        buddy_fold(&b, private_first ? 1250 : 1000, private_first ? 1000 : 1250);
        for (unsigned scan = 0; scan < 600; scan++) {
            bool high = scan / 20 % 2; /* slowly enough for the averages to follow */

            assert_int_equal(b.class, start);
            assert_int_equal(class, start);
            buddy_fold(&b, high ? 1000 : 1250, high ? 1250 : 1000);
            class = buddy_classify(class, high ? 1000 : 1250, high ? 1250 : 1000);
        }
        for (unsigned scan = 0; scan < 300; scan++) {
            BuddyClass before = b.class;

            buddy_fold(&b, private_first ? 1000 : 2100, private_first ? 2100 : 1000);
            flips += b.class != before;
        }
        assert_int_equal(flips, 1);
        assert_int_equal(b.class, private_first ? BUDDY_CLASS_SHARED : BUDDY_CLASS_PRIVATE);
        class = buddy_classify(class, private_first ? 1000 : 2000, private_first ? 2000 : 1000);
        assert_int_equal(class, b.class);
    }
}

TEST_MAIN(NULL, NULL, test_decay, test_rival, test_chain, test_average, test_classify, test_s_class)
