/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes beside threads that somebody else has bound (P15). */

#include "choose-test.h"
#include "plan/ablation.h"

/* Somebody else has bound two threads to the node on which the memory of a new group is: that goes to the other one, at
 * once, though what runs where on average does not show them yet. */
static void test_bound(void **state)
{
    for (unsigned bound = 0; bound < 2; bound++) {
        Fixture f;

        fixture_init(&f, SMALL);
        fixture_policy(&f, "a", AUTO);
        add_job(&f, 100, 2, 0, 1);
        add_job(&f, 200, 2, 2, 1);
        set_memory(&f, 100, (uint64_t[]){100, 0});
        set_memory(&f, 200, (uint64_t[]){100, 0});
        for (pid_t tid = 100; tid < 102 && bound; tid++) {
            fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-1");
        }
        if (!bound)
            world_process(f.world, 100)->yielded = true; /* to be left alone, and it may be anywhere */
        fixture_plan(&f, true);
        fixture_commit(&f, NULL);
        assert_nodes(&f, 100, NULL);
        assert_nodes(&f, 200, bound ? "1" : "0");
        fixture_assert_settled(&f, true);
        fixture_done(&f);
    }
}

/* What is counted where it is bound is not among the others as well. */
static void test_bound_once(void **state)
{
    Fixture f;

    fixture_init(&f, FOUR);
    fixture_policy(&f, "a", AUTO);
    add_job(&f, 100, 4, 0, 1);
    add_job(&f, 200, 4, 8, 1);
    set_memory(&f, 200, (uint64_t[]){100, 0, 0, 0});
    for (pid_t tid = 100; tid < 104; tid++) {
        fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-7");
    }
    f.world->nodes[0].others_permille = 4000;
    for (size_t i = 0; i < f.world->n_groups; i++)
        f.world->groups[i].first_seen_usec -= 15000000; /* so long it takes to be all of the average */
    fixture_home(&f);
    assert_nodes(&f, 200, "0");
    fixture_done(&f);
}

/* Ten threads that wait for two CPUs, by their masks or by their cpuset, leave the other six of their node to a group
 * of five whose memory is there. Two groups that are bound to them have no more than both together. */
static void test_crowd(void **state)
{
    static const struct {
        bool by_cpuset, twice, ablated;
        const char *nodes;
    } cases[] = {
        {false, false, false, "0"}, {true, false, false, "0"}, {false, true, false, "0"},
        {false, false, true, NULL}, {true, false, true, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture f;

        fixture_init(&f, FOUR);
        fixture_policy(&f, "a", AUTO);
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_REACH : 0;
        for (pid_t pid = 100; pid <= (cases[i].twice ? 300 : 100); pid += 200) {
            add_job(&f, pid, 10, 0, 0);
            set_memory(&f, pid, (uint64_t[]){100, 0, 0, 0});
            for (pid_t tid = pid; tid < pid + 10; tid++) {
                fixture_find(&f, pid, tid)->allowed = fixture_mask(&f, "0-1");
                if (!cases[i].by_cpuset)
                    fixture_find(&f, pid, tid)->hands = TASK_HANDS_FOREIGN;
            }
            if (cases[i].by_cpuset)
                world_process(f.world, pid)->cpuset = fixture_mask(&f, "0-1");
        }
        add_job(&f, 500, 5, 8, 1);
        set_memory(&f, 500, (uint64_t[]){100, 0, 0, 0});
        fixture_home(&f);
        if (cases[i].nodes)
            assert_nodes(&f, 500, cases[i].nodes);
        else
            assert_false(hwloc_bitmap_isset(group_of(&f, 500)->home_nodes, 0));
        fixture_done(&f);
    }
}

/* Ten threads that are bound to one CPU of a node and to five of the next one leave seven of the first, and three of
 * the second. */
static void test_crowd_apart(void **state)
{
    for (unsigned node = 0; node < 2; node++) {
        Fixture f;

        fixture_init(&f, FOUR);
        fixture_policy(&f, "a", AUTO);
        add_job(&f, 100, 10, 7, 0);
        for (pid_t tid = 100; tid < 110; tid++) {
            fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "7-12");
        }
        add_job(&f, 200, 5, 16, 1);
        set_memory(&f, 200, (uint64_t[]){node == 0 ? 100 : 0, node == 1 ? 100 : 0, 0, 0});
        fixture_home(&f);
        assert_nodes(&f, 100, NULL);
        assert_int_equal(hwloc_bitmap_isset(group_of(&f, 200)->home_nodes, node), node == 0);
        fixture_done(&f);
    }
}

/* Where all CPUs are wanted by more than two, those to which somebody is bound are no emptier than the others. */
static void test_crowd_everywhere(void **state)
{
    Fixture f;

    fixture_init(&f, "numa:2 l3:1 core:1 pu:1 distances=10,20,20,10");
    fixture_policy(&f, "a", AUTO);
    add_job(&f, 100, 3, 1, 0);
    add_job(&f, 200, 2, 0, 0);
    add_job(&f, 300, 2, 0, 0);
    set_memory(&f, 200, (uint64_t[]){50, 50});
    set_memory(&f, 300, (uint64_t[]){50, 50});
    for (pid_t tid = 100; tid < 103; tid++) {
        fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "1");
    }
    fixture_home(&f);
    assert_nodes(&f, 200, "0");
    assert_nodes(&f, 300, "0");
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_once),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_crowd_apart),
        cmocka_unit_test(test_crowd_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
