/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes beside threads that somebody else has bound (P15). */

#include "choose-test.h"
#include "plan/ablation.h"
#include "plan/planner.h"

static void bind_all(Fixture *f, pid_t pid, int n_threads, const char *cpus)
{
    for (pid_t tid = pid; tid < pid + n_threads; tid++) {
        fixture_find(f, pid, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(f, pid, tid)->allowed = fixture_mask(f, cpus);
    }
}

/* Somebody else has bound two threads to the node where a new group has its memory. The group goes to the
 * other node at once, although the averages of running threads do not show the bound ones yet. */
static void test_bound(void **state)
{
    for (unsigned bound = 0; bound < 2; bound++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, AUTO);
        add_job(&f, 100, 2, 0, 1);
        add_job(&f, 200, 2, 2, 1);
        set_memory(&f, 100, (uint64_t[]){100, 0});
        set_memory(&f, 200, (uint64_t[]){100, 0});
        for (pid_t tid = 100; tid < 102 && bound; tid++) {
            fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-1");
        }
        if (!bound)
            world_process(f.world, 100)->yielded = true; /* must be left alone, and may run anywhere */
        fixture_place(&f);
        assert_nodes(&f, 100, NULL);
        assert_nodes(&f, 200, bound ? "1" : "0");
        fixture_assert_settled(&f, true);
    }
}

/* Load counted where it is bound is not counted as unplaced load as well. */
static void test_bound_once(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    add_job(&f, 100, 4, 0, 1);
    add_job(&f, 200, 4, 8, 1);
    set_memory(&f, 200, (uint64_t[]){100, 0, 0, 0});
    for (pid_t tid = 100; tid < 104; tid++) {
        fixture_find(&f, 100, tid)->hands = TASK_HANDS_FOREIGN;
        fixture_find(&f, 100, tid)->allowed = fixture_mask(&f, "0-7");
    }
    fixture_home(&f);
    assert_nodes(&f, 200, "0");
}

/* Ten threads bound to two CPUs, for which they wait, leave the other six of the node to a group of five
 * whose memory is there. Two groups bound to these CPUs take no more than one. */
static void test_crowd(void **state)
{
    static const struct {
        bool twice, ablated;
    } cases[] = {{false, false}, {true, false}, {false, true}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, AUTO);
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_REACH : 0;
        for (pid_t pid = 100; pid <= (cases[i].twice ? 300 : 100); pid += 200) {
            add_job(&f, pid, 10, 0, 0);
            set_memory(&f, pid, (uint64_t[]){100, 0, 0, 0});
            bind_all(&f, pid, 10, "0-1");
        }
        add_job(&f, 500, 5, 8, 1);
        set_memory(&f, 500, (uint64_t[]){100, 0, 0, 0});
        fixture_home(&f);
        assert_int_equal(hwloc_bitmap_isset(group_of(&f, 500)->home_nodes, 0), !cases[i].ablated);
    }
}

/* Ten threads bound to one CPU of a node and to five of the next one leave seven CPUs of the first, and three
 * of the second. */
static void test_crowd_apart(void **state)
{
    for (unsigned node = 0; node < 2; node++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, AUTO);
        add_job(&f, 100, 10, 7, 0);
        bind_all(&f, 100, 10, "7-12");
        add_job(&f, 200, 5, 16, 1);
        set_memory(&f, 200, (uint64_t[]){node == 0 ? 100 : 0, node == 1 ? 100 : 0, 0, 0});
        fixture_home(&f);
        assert_nodes(&f, 100, NULL);
        assert_int_equal(hwloc_bitmap_isset(group_of(&f, 200)->home_nodes, node), node == 0);
    }
}

static void add_kept(Fixture *f, pid_t pid, unsigned n_threads, const char *cpuset)
{
    add_job(f, pid, n_threads, hwloc_bitmap_first(fixture_mask(f, cpuset)), 0);
    world_process(f->world, pid)->cpuset = fixture_mask(f, cpuset);
    for (pid_t tid = pid; tid < pid + (pid_t)n_threads; tid++)
        fixture_find(f, pid, tid)->allowed = fixture_mask(f, cpuset);
}

/* The same if a cpuset keeps ten threads, of one group or of two, on two CPUs. */
static void test_cpuset(void **state)
{
    static const struct {
        unsigned n_groups;
        bool ablated;
    } cases[] = {{1, false}, {2, false}, {2, true}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, AUTO);
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_REACH : 0;
        for (unsigned k = 0; k < cases[i].n_groups; k++)
            add_kept(&f, 100 + 100 * (pid_t)k, 10 / cases[i].n_groups, "0-1");
        add_job(&f, 500, 5, 8, 1);
        set_memory(&f, 500, (uint64_t[]){100, 0, 0, 0});
        fixture_place(&f);
        assert_int_equal(hwloc_bitmap_isset(group_of(&f, 500)->home_nodes, 0), !cases[i].ablated);
        fixture_assert_settled(&f, true);
    }
}

/* A cpuset has one CPU of the first node and two of the second. Three threads live on both nodes, also as
 * three processes; two live on the second, although their memory is on the first. */
static void test_cpuset_parts(void **state)
{
    static const struct {
        unsigned n_groups, n_threads;
        bool ablated;
    } cases[] = {{1, 3, false}, {1, 3, true}, {3, 1, false}, {1, 2, false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;
        int n = 0;

        fixture_init_with(&f, FOUR, AUTO);
        f.world->ablated = cases[i].ablated ? 1ULL << ABLATION_REACH : 0;
        for (unsigned k = 0; k < cases[i].n_groups; k++) {
            add_kept(&f, 100 + 100 * (pid_t)k, cases[i].n_threads, "7-9");
            set_memory(&f, 100 + 100 * (pid_t)k, (uint64_t[]){100, 0, 0, 0});
        }
        fixture_place(&f);
        for (unsigned k = 0; k < cases[i].n_groups; k++)
            n += hwloc_bitmap_isset(group_of(&f, 100 + 100 * (pid_t)k)->home_nodes, 0);
        assert_int_equal(n, cases[i].n_threads != 2);
        if (cases[i].n_groups == 1)
            assert_int_equal(hwloc_bitmap_isset(group_of(&f, 100)->home_nodes, 1), !cases[i].ablated);
        fixture_assert_settled(&f, true);
    }
}

/* When all CPUs are wanted by more than one thread, CPUs to which four threads are bound still have room for
 * others: as many as makes them as full as the rest. */
static void test_crowd_everywhere(void **state)
{
    size_t n_beside = 0;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:2 l3:1 core:4 pu:1 distances=10,20,20,10", AUTO);
    f.world->ablated = 1ULL << ABLATION_IN_VAIN;
    add_job(&f, 100, 4, 4, 1);
    bind_all(&f, 100, 4, "4-7");
    for (pid_t pid = 200; pid < 200 + 24 * 10; pid += 10) {
        add_job(&f, pid, 1, 0, 0);
        set_memory(&f, pid, (uint64_t[]){100, 100});
    }
    seconds(&f, 3);
    fixture_home(&f);
    for (pid_t pid = 200; pid < 200 + 24 * 10; pid += 10)
        n_beside += group_of(&f, pid)->home_nodes && hwloc_bitmap_isset(group_of(&f, pid)->home_nodes, 1);
    assert_in_range(n_beside, 8, 12);
}

/* Bound threads leave few CPUs free, and want far more than there are: the mean is found all the same. */
static void test_mean(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:2 l3:1 core:32 pu:1 distances=10,20,20,10", AUTO);
    add_job(&f, 100, 480, 0, 0);
    bind_all(&f, 100, 480, "0-59");
    add_job(&f, 1000, 1, 60, 0);
    set_memory(&f, 1000, (uint64_t[]){0, 100});
    fixture_home(&f);
    assert_nodes(&f, 1000, "1");
    assert_in_range(f.plan.scratch->bound_given, 59900, 60000);
    assert_in_range(f.plan.scratch->bound_permille[1], 27900, 28000);
}

/* Threads bound elsewhere than where their policy sends them are counted there, once; so is their pressure on
 * the memory there. */
static void test_bound_elsewhere(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    fixture_policy(&f, "b", "[Workload]\nGroupBy=process\n[Placement]\nMode=fixed\nNodes=0\n");
    fixture_process(&f, 100, "b", NULL);
    for (pid_t tid = 100; tid < 103; tid++)
        fixture_task(&f, 100, tid, 0)->last_cpu.i = (int)(8 + tid - 100);
    bind_all(&f, 100, 3, "8-15");
    add_job(&f, 200, 5, 16, 1);
    set_memory(&f, 200, (uint64_t[]){0, 100, 0, 0});
    fixture_home(&f);
    assert_nodes(&f, 200, "1");
}

/* Four streaming threads are bound to a node: their pressure on it keeps away four more whose memory is there. */
static void test_bound_presses(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, FOUR, AUTO);
    for (pid_t pid = 100; pid <= 400; pid += 100) {
        add_job(&f, pid, 1, pid / 100 - 1, 0);
        set_memory(&f, pid, (uint64_t[]){100, 0, 0, 0});
        bind_all(&f, pid, 1, "0-7");
    }
    for (pid_t pid = 500; pid <= 800; pid += 100) {
        add_job(&f, pid, 1, pid / 100 - 1, 0);
        set_memory(&f, pid, (uint64_t[]){100, 0, 0, 0});
    }
    seconds(&f, 3);
    fixture_home(&f);
    for (pid_t pid = 500; pid <= 800; pid += 100)
        assert_false(hwloc_bitmap_isset(group_of(&f, pid)->home_nodes, 0));
}

TEST_MAIN(NULL, NULL, test_bound, test_bound_once, test_crowd, test_crowd_apart, test_cpuset,
          test_cpuset_parts, test_crowd_everywhere, test_mean, test_bound_elsewhere, test_bound_presses)
