/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one process that share memory, and go to one node together (P14). */

#include "thread-homes-test.h"

/* Buddies go together, whatever their own memory says; what all share is of no node. */
static void test_buddies(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    use(&f, 10, 1000, 0, 1000, 0);
    use(&f, 11, 0, 400, 200, 10);
    use(&f, 12, 600, 0, 1000, 0);
    use(&f, 13, 0, 500, 200, 12);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
    fixture_done(&f);

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, 1000, 0, 0, tid > 10 ? tid - 1 : 0);
    place(&f);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
}

/* Of threads that share all, several have the first one for a buddy, who has none: they are no units of their own.
 * Where only two share, both go. */
static void test_all_share(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, 1000, 1000, 0, tid > 10 ? 10 : 0);
    place(&f);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
    fixture_done(&f);

    init(&f);
    use(&f, 10, 1000, 0, 0, 0);
    use(&f, 11, 1000, 0, 0, 10);
    use(&f, 12, 0, 1000, 1000, 0);
    use(&f, 13, 0, 1000, 1000, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Two sets of three threads on nodes of two CPUs: apart none of them would have more of a CPU, since six want four.
 * Three and one could have one each, and so the three are too many for a node. */
static void test_full_machine(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    fixture_task(&f, 10, 14, 0);
    fixture_task(&f, 10, 15, 0);
    for (pid_t tid = 10; tid < 16; tid++)
        use(&f, tid, tid < 13 ? 1000 : 0, tid < 13 ? 0 : 1000, 0,
            tid == 10 || tid == 13 ? 0
            : tid < 13             ? 10
                                   : 13);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 0, 1});
    for (pid_t tid = 14; tid < 16; tid++)
        assert_int_equal(fixture_find(&f, 10, tid)->home_node.i, 1);
    fixture_done(&f);

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 13 ? 1000 : 0, tid < 13 ? 0 : 1000, tid < 13 ? 0 : 1000,
            tid == 11 || tid == 12 ? 10 : 0);
    place(&f);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
}

/* Four and three threads on nodes of two CPUs keep their nodes when they want less, but more than the CPUs still. */
static void test_keeps_full(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 14; tid < 17; tid++)
        fixture_task(&f, 10, tid, 0);
    for (pid_t tid = 10; tid < 17; tid++)
        use(&f, tid, tid < 14 ? 1000 : 0, tid < 14 ? 0 : 1000, 0,
            tid == 10 || tid == 14 ? 0
            : tid < 14             ? 10
                                   : 14);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 0, 0});
    for (size_t i = 0; i < f.world->n_tasks; i++)
        f.world->tasks[i].run_permille = f.world->tasks[i].run_ewma_permille = 700;
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 0, 0});
    for (pid_t tid = 14; tid < 17; tid++)
        assert_int_equal(fixture_find(&f, 10, tid)->home_node.i, 1);
}

/* What is known of threads comes and goes. That gives a group that needs all nodes a home of them and takes it away
 * again, but not while it must stay. */
static void test_known_for_a_while(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 1000, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
    assert_non_null(f.world->groups[0].home);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, 1000, 1000, 0, 0);
    f.world->now_usec += 1000000;
    place(&f);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
    assert_non_null(f.world->groups[0].home);
    f.world->now_usec += 60000000;
    place(&f);
    assert_true(f.world->groups[0].roams);
}

/* What a pair shares is few blocks, and may be most of what it does: it stays together, and its first one, who has no
 * buddy, gets a node by the other. */
static void test_pair_with_little_shared(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 700, tid % 2 ? tid - 1 : 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Neighbours that share a little each with the next are no chain of all: as many go together as a node has CPUs. */
static void test_chain(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 600, tid > 10 ? tid - 1 : 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* The same with eight threads on two nodes of four CPUs. */
static void init_eight(Fixture *f)
{
    fixture_init(f, "numa:2 l3:1 core:4 pu:1 distances=10,20,20,10");
    fixture_policy(f, "a", AUTO);
    fixture_process(f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 18; tid++)
        fixture_task(f, 10, tid, 0);
    fixture_cpus(f, 0, 7, 1000, 0);
}

/* Two sets of four live on a node each; of eight threads five that share fit none. */
static void test_set_of_four(void **state)
{
    for (unsigned size = 4; size <= 5; size++) {
        CLEANUP(fixture_done) Fixture f;

        init_eight(&f);
        for (pid_t tid = 10; tid < 18; tid++)
            use(&f, tid, 1000, 0, 0, (unsigned)(tid - 10) % size ? tid - 1 : 0);
        place(&f);
        for (pid_t tid = 10; tid < 18; tid++) {
            int32_t node = fixture_find(&f, 10, tid)->home_node.i;

            if (size == 4)
                assert_int_equal(node, fixture_find(&f, 10, 10)->home_node.i ^ (tid >= 14));
            else if (tid < 15)
                assert_int_equal(node, -1);
        }
    }
}

/* Of seven who share all three have stopped: the others, who would fit a node, do not become a
 * set, as long as those three may run again. One beside them has memory of its own. */
static void test_set_by_chance(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init_eight(&f);
    for (pid_t tid = 10; tid < 17; tid++)
        use(&f, tid, 1000, 1000, 0, tid > 10 ? tid - 1 : 0);
    use(&f, 17, 1000, 0, 1000, 0);
    place(&f);
    for (pid_t tid = 10; tid < 17; tid++)
        assert_int_equal(fixture_find(&f, 10, tid)->home_node.i, -1);
    for (pid_t tid = 10; tid < 13; tid++) {
        fixture_find(&f, 10, tid)->run_ewma_permille = 0;
        fixture_find(&f, 10, tid)->run_permille = fixture_find(&f, 10, tid)->run_before_permille = 0;
    }
    f.world->groups[0].demand_permille = 8000; /* held */
    f.world->now_usec += 3000000;
    place(&f);
    for (pid_t tid = 10; tid < 17; tid++)
        assert_int_equal(fixture_find(&f, 10, tid)->home_node.i, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buddies),
        cmocka_unit_test(test_all_share),
        cmocka_unit_test(test_full_machine),
        cmocka_unit_test(test_keeps_full),
        cmocka_unit_test(test_known_for_a_while),
        cmocka_unit_test(test_pair_with_little_shared),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_set_of_four),
        cmocka_unit_test(test_set_by_chance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
