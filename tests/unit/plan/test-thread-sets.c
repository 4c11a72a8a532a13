/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one process that share memory and get one node together (P14). */

#include "plan/ablation.h"
#include "thread-homes-test.h"

#include <string.h>

/* Buddies go together, whatever their private memory; memory that all share belongs to no node. */
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

/* If threads share everything, several have the first one, which has no buddy, as theirs: they are no
 * separate sets. If only two share, both go together. */
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

/* Two sets of three threads on nodes of two CPUs: apart, none of them would have more CPU time, since six
 * want four CPUs. Of three and one each thread could have a CPU, so three are too many for a node. */
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

/* Sets of four and three threads on nodes of two CPUs keep their nodes when they want less, but still more
 * than the CPUs. */
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

/* Knowledge of the use by threads comes and goes. It gives a group that needs all nodes a home of all nodes
 * and takes it away again, but not while the group must stay. */
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

/* A pair shares few blocks, which may be most of its accesses: it stays together, and its first thread, which
 * has no buddy, gets a node through the other. */
static void test_pair_with_little_shared(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 700, tid % 2 ? tid - 1 : 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Neighbours that share a little, each with the next, do not form one set of all: as many go together as a
 * node has CPUs. */
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
    fixture_init_with(f, "numa:2 l3:1 core:4 pu:1 distances=10,20,20,10", AUTO);
    fixture_threads(f, 10, 8);
    fixture_cpus(f, 0, 7, 1000, 0);
}

/* Two sets of four get a node each; of eight threads, five that share fit none. */
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

/* Runs a thread for each character of `sets` on this machine; equal letters share memory, and capitals pause
 * half of the time. All they use is on node 0. Returns their home nodes, a digit each, or '-'. */
static char *live(const char *synthetic, uint32_t n_cpus, const char *sets, uint64_t ablated, char *ret)
{
    size_t n = strlen(sets);
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, synthetic, AUTO);
    fixture_process(&f, 10, "a", NULL);
    f.world->ablated = ablated;
    for (size_t i = 0; i < n; i++) {
        Task *task = fixture_task(&f, 10, 10 + (pid_t)i, 0);

        if (sets[i] < 'a')
            task->run_permille = task->run_before_permille = task->run_ewma_permille = 500;
    }
    fixture_cpus(&f, 0, (int32_t)n_cpus - 1, 1000, 0);
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || sets[i] != sets[i - 1];
        TaskKey key = first ? (TaskKey){0} : world_task_key(f.world, fixture_find(&f, 10, 9 + (pid_t)i));

        fixture_use(&f, 10, 10 + (pid_t)i, (uint64_t[8]){1000}, 0, key);
    }
    f.world->groups[0].roams = true;
    f.world->groups[0].last_home_usec = f.world->now_usec - 1000000;
    for (size_t i = 0; i < n; i++)
        f.world->groups[0].demand_permille += f.world->tasks[i].run_ewma_permille;
    place(&f);
    for (size_t i = 0; i < n; i++) {
        int32_t node = fixture_find(&f, 10, 10 + (pid_t)i)->home_node.i;

        ret[i] = node < 0 ? '-' : (char)('0' + node);
    }
    ret[n] = '\0';
    return ret;
}

static void assert_loads(const char *nodes, const char *loads)
{
    for (char node = '0'; *loads; node++, loads++) {
        char n = '0';

        for (const char *at = nodes; *at; at++)
            n += *at == node;
        assert_int_equal(n, *loads);
    }
}

static unsigned n_nodes_of(const char *nodes, size_t first, size_t n)
{
    uint64_t seen = 0;

    for (size_t i = first; i < first + n; i++)
        seen |= 1ULL << (nodes[i] - '0');
    return (unsigned)__builtin_popcountll(seen);
}

/* Sets of three on nodes of two CPUs are divided: two and one. A set that is most of the process is not
 * divided; nor does one whose threads all pause share a full node while others are free. */
static void test_divided(void **state)
{
    const char *four = "numa:4 l3:1 core:2 pu:1";
    char nodes[32];

    live(four, 8, "aaabbb", 0, nodes);
    assert_null(strchr(nodes, '-'));
    assert_int_equal(n_nodes_of(nodes, 0, 3), 2);
    assert_int_equal(n_nodes_of(nodes, 3, 3), 2);
    assert_string_equal(live(four, 8, "aaabbb", 1ULL << ABLATION_DIVIDED, nodes), "------");
    live(four, 8, "aaaabbb", 0, nodes);
    assert_memory_equal(nodes, "----", 4);
    assert_int_equal(n_nodes_of(nodes, 4, 3), 2);
    live("numa:4 l3:1 core:4 pu:1", 16, "AAAAAAABBBBBBB", 0, nodes);
    assert_int_equal(n_nodes_of(nodes, 0, 7), 2);
    assert_int_equal(n_nodes_of(nodes, 7, 7), 2);
    live("numa:2 l3:1 core:4 pu:1", 8, "AAAAAAABBBBBBB", 0, nodes);
    assert_int_equal(n_nodes_of(nodes, 0, 7), 1);
    assert_int_equal(n_nodes_of(nodes, 7, 7), 1);
}

/* Two pairs on nodes of one CPU, which form near pairs: each pair of threads goes to two near nodes. */
static void test_divided_over_near_nodes(void **state)
{
    for (unsigned off = 0; off < 2; off++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(
            &f, "numa:4 l3:1 core:1 pu:1 distances=10,12,32,32,12,10,32,32,32,32,10,12,32,32,12,10", AUTO);
        fixture_process(&f, 10, "a", NULL);
        f.world->ablated = (uint64_t)off << ABLATION_DISTANCES;
        for (pid_t tid = 10; tid < 14; tid++)
            fixture_task(&f, 10, tid, 0);
        fixture_cpus(&f, 0, 3, 1000, 0);
        for (pid_t tid = 10; tid < 14; tid++) {
            TaskKey key = world_task_key(f.world, fixture_find(&f, 10, tid - tid % 2));

            fixture_use(&f, 10, tid, (uint64_t[]){tid < 12 ? 0 : 1000, 0, tid < 12 ? 1000 : 0, 0}, 0,
                        tid % 2 ? key : (TaskKey){0});
        }
        f.world->groups[0].roams = true;
        f.world->groups[0].last_home_usec = f.world->now_usec - 1000000;
        place(&f);
        assert_nodes(&f, off ? (int[]){2, 1, 0, 3} : (int[]){2, 3, 0, 1});
    }
}

/* Three sets of five are two threads too many for two nodes of eight CPUs if each set is kept together. */
static void test_spills(void **state)
{
    const char *two = "numa:2 l3:1 core:8 pu:1";
    char nodes[32];

    live(two, 16, "aaaaabbbbbccccc", 0, nodes);
    assert_true(strcspn(nodes, "-") == 15);
    assert_in_range(n_nodes_of(nodes, 0, 5) + n_nodes_of(nodes, 5, 5) + n_nodes_of(nodes, 10, 5), 4, 4);
    assert_loads(nodes, nodes[0] == nodes[5] || nodes[0] == nodes[10] ? nodes[0] == '0' ? "87" : "78"
                        : nodes[0] == '0'                             ? "78"
                                                                      : "87");
    live(two, 16, "aaaaabbbbbccccc", 1ULL << ABLATION_SPILL, nodes);
    assert_int_equal(n_nodes_of(nodes, 0, 5) + n_nodes_of(nodes, 5, 5) + n_nodes_of(nodes, 10, 5), 3);
    /* Threads of two sets go where there is most room, those of each set to another node. */
    live("numa:3 l3:1 core:4 pu:1", 12, "aaabbbcccddd", 0, nodes);
    assert_loads(nodes, "444");
}

/* Four sets of four, which want more than the cores of the node with all their memory, need not be together;
 * sixteen threads that share everything must. */
static void test_few_need_not_be_together(void **state)
{
    enum {
        SETS,
        SWITCHED_OFF,
        ALL,
        CASES
    };

    for (unsigned c = 0; c < CASES; c++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, "numa:2 l3:1 core:8 pu:2", AUTO "MinAgeSec=0\n");
        fixture_process(&f, 10, "a", NULL);
        f.world->ablated = c == SWITCHED_OFF ? 1ULL << ABLATION_FEW : 0;
        for (pid_t tid = 10; tid < 26; tid++) {
            Task *task = fixture_task(&f, 10, tid, 0);

            task->run_permille = task->run_before_permille = task->run_ewma_permille = 650;
        }
        fixture_cpus(&f, 0, 31, 0, 0);
        fixture_bytes(&f, 10, (uint64_t[]){1 << 30, 0});
        for (pid_t tid = 10; tid < 26; tid++)
            use(&f, tid, 1000, 0, 0, tid == 10 || (c != ALL && (tid - 10) % 4 == 0) ? 0 : tid - 1);
        place(&f);
        assert_int_equal(hwloc_bitmap_weight(f.world->groups[0].home_nodes), c == SETS ? 2 : 1);
    }
}

/* Of seven threads that share everything three have stopped. The others would fit a node, but do not become a
 * set while the three may run again. One further thread has private memory. */
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

TEST_MAIN(NULL, NULL, test_buddies, test_all_share, test_full_machine, test_keeps_full,
          test_known_for_a_while, test_pair_with_little_shared, test_chain, test_set_of_four, test_divided,
          test_divided_over_near_nodes, test_spills, test_few_need_not_be_together, test_set_by_chance)
