/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads of one process on different nodes (P11, P14, P15). */

#include "plan/home/thread-known.h"
#include "thread-homes-test.h"

/* A group that needs all nodes is left to the kernel until the use of memory by its threads is known. */
static void test_unknown(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    place(&f);
    assert_true(f.world->groups[0].roams);
    assert_int_equal(f.plan.n_threads, 0);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
}

/* Queries between plans: how many threads' use is known, and whether their nodes have changed. */
static void test_asked(void **state)
{
    const Process *process;
    const Policy *policy;
    uint64_t apart;
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    process = world_process(f.world, 10);
    policy = group_policy(f.world, f.policies, process->workload);
    assert_int_equal(thread_homes_n_known(f.world, policy, process), 0);
    assert_int_equal(thread_homes_digest(f.world, process), 0);
    for (pid_t tid = 10; tid < 14; tid++) {
        /* A thread that shares with all others gets no node. */
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, tid == 11 ? 100 : 1000, 0);
        assert_int_equal(thread_homes_n_known(f.world, policy, process), tid == 10 ? 1 : tid - 10);
    }
    place(&f);
    assert_nodes(&f, (int[]){0, -1, 1, 1});
    apart = thread_homes_digest(f.world, process);
    assert_int_not_equal(apart, 0);
    fixture_find(&f, 10, 13)->home_node.i = 0;
    assert_int_not_equal(thread_homes_digest(f.world, process), apart);
    fixture_find(&f, 10, 13)->home_node.i = 1;
    assert_int_equal(thread_homes_digest(f.world, process), apart);
}

/* If each CPU has a cache of its own, as in guests, as many tasks as caches fill a node: threads that share
 * nothing press on its memory, and get more nodes. */
static void test_caches_fill(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:4 l3:2 core:1 pu:1", AUTO "MinAgeSec=0\n");
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 14; tid++) {
        fixture_task(&f, 10, tid, 0)->last_cpu.i = tid - 10;
        fixture_use(&f, 10, tid, (uint64_t[]){tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 0, 0}, 1000,
                    (TaskKey){0});
    }
    place(&f);
    assert_int_equal(hwloc_bitmap_weight(f.world->groups[0].home_nodes), 4);
}

/* All memory is on one node: the two threads with most of it stay there, and the others get the other node. */
static void test_start(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    place(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, 1000 + (uint64_t)(tid % 2) * 1000, 0, 1000, 0);
    fixture_wait(&f, 2000000);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 4);
    assert_int_equal(fixture_action(&f, PLAN_KIND_SET_HOME, 0)->rule, PLAN_RULE_OWN_NODE);
    place(&f);
    assert_nodes(&f, (int[]){1, 0, 1, 0});
    assert_false(f.world->groups[0].roams);
    assert_ptr_equal(f.world->groups[0].home, fixture_mask(&f, NULL));
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, fixture_mask(&f, "2-3"));
    assert_ptr_equal(fixture_find(&f, 10, 11)->allowed, fixture_mask(&f, "0-1"));
    assert_ptr_equal(fixture_find(&f, 10, 11)->original, fixture_mask(&f, NULL));

    /* When their use is no longer known, they are left to the kernel again. */
    for (pid_t tid = 10; tid < 14; tid++)
        assert_int_equal(world_set_task_use(f.world, fixture_find(&f, 10, tid), NULL, 0, (TaskKey){0}, 0), 0);
    fixture_wait(&f, 20000000);
    place(&f);
    assert_nodes(&f, (int[]){-1, -1, -1, -1});
    assert_ptr_equal(fixture_find(&f, 10, 10)->allowed, fixture_mask(&f, NULL));
}

/* A thread whose node is taken from it again has another home; it did not join. */
static void test_loses_node(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start_apart(&f);
    use(&f, 13, 0, 1000, 100, 0);
    fixture_wait(&f, 20000000);
    fixture_plan(&f, true);
    assert_int_equal(fixture_count(&f, PLAN_KIND_SET_HOME), 1);
    assert_int_equal(fixture_action(&f, PLAN_KIND_SET_HOME, 0)->subject.tid, 13);
    assert_ptr_equal(fixture_action(&f, PLAN_KIND_SET_HOME, 0)->to, fixture_mask(&f, NULL));
    assert_int_equal(fixture_action(&f, PLAN_KIND_SET_HOME, 0)->rule, PLAN_RULE_HOME_CHANGED);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, -1});
}

/* Two threads exchange what they work on, and therefore nodes, but not before MinResidencySec= nor for less
 * than a tenth. */
static void test_flip(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start_apart(&f);
    use(&f, 11, 0, 1000, 1000, 0);
    use(&f, 12, 1000, 0, 1000, 0);
    fixture_plan(&f, true);
    assert_int_equal(f.plan.n_threads, 2);
    place(&f);
    assert_nodes(&f, (int[]){0, 1, 0, 1});
    assert_int_equal(f.world->groups[0].apart_usec, f.world->now_usec);

    use(&f, 11, 1000, 0, 1000, 0);
    use(&f, 12, 0, 1000, 1000, 0);
    fixture_wait(&f, 500000);
    place(&f);
    assert_nodes(&f, (int[]){0, 1, 0, 1});
    fixture_wait(&f, 500000);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});

    use(&f, 11, 450, 550, 1000, 0);
    use(&f, 12, 550, 450, 1000, 0);
    fixture_wait(&f, 2000000);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Not while memory is in flight: its place will change by itself. */
static void test_moving(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start_apart(&f);
    f.world->processes[0].memory.to = f.world->processes[0].memory.last = fixture_mask(&f, "0-1");
    use(&f, 11, 0, 1000, 1000, 0);
    use(&f, 12, 1000, 0, 1000, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* A node with other load has less room, also for threads whose memory is there. */
static void test_others(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 1000, 0);
    f.world->nodes[1].others_permille = 1000;
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 0});
}

/* Memory that fits the caches is not worth a node. */
static void test_little(void **state)
{
    for (uint64_t mb = 7; mb <= 8; mb++) {
        CLEANUP(fixture_done) Fixture f;

        init(&f);
        world_process(f.world, 10)->rss_bytes = mb << 20;
        for (pid_t tid = 10; tid < 14; tid++)
            use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, 1000, 0);
        place(&f);
        assert_nodes(&f, mb < 8 ? (int[]){-1, -1, -1, -1} : (int[]){0, 0, 1, 1});
    }
}

/* Three threads of a group use private memory, two of them on node 0, where another group has one of two
 * CPUs: only one of the three lives there. */
static void test_beside_others(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    int on_0 = 0;

    fixture_init_with(&f, SMALL, AUTO);
    fixture_threads(&f, 10, 1);
    fixture_threads(&f, 20, 3);
    fixture_cpus(&f, 0, 3, 1000, 0);
    fixture_bytes(&f, 10, (uint64_t[]){1ULL << 30, 0});
    fixture_bytes(&f, 20, (uint64_t[]){1ULL << 30, 1ULL << 29});
    for (pid_t tid = 20; tid < 23; tid++)
        fixture_use(&f, 20, tid, (uint64_t[]){tid < 22 ? 1000 : 0, tid < 22 ? 0 : 1000}, 1000, (TaskKey){0});
    place(&f);
    assert_ptr_equal(f.world->groups[0].home_nodes, fixture_mask(&f, "0"));
    for (pid_t tid = 20; tid < 23; tid++)
        on_0 += fixture_find(&f, 20, tid)->home_node.i == 0;
    assert_int_equal(on_0, 1);
}

/* A thread that has a node and mostly private memory stays when it begins to share a little (I7). */
static void test_stays_beside_its_own(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    start_apart(&f);
    use(&f, 13, 0, 1000, 700, 10);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
}

/* Threads that also share a heap have buddies. They need none if their memory is mostly private; to keep a
 * node, less is enough than to get one. */
static void test_mostly_private(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, tid == 10 ? 749 : 750, tid > 10 ? tid - 1 : 0);
    place(&f);
    assert_nodes(&f, (int[]){-1, 0, 1, 1});
    use(&f, 10, 1000, 0, 750, 0);
    place(&f);
    assert_nodes(&f, (int[]){0, 0, 1, 1});
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, tid < 12 ? 1000 : 0, tid < 12 ? 0 : 1000, tid == 10 ? 499 : 500, 0);
    place(&f);
    assert_nodes(&f, (int[]){-1, 0, 1, 1});
}

/* When the home grows by a node, one of two threads on another node goes there. */
static void test_home_grows(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    int n[4] = {0};

    fixture_init_with(&f, "numa:4 l3:1 core:1 pu:1", AUTO);
    fixture_process(&f, 10, "a", NULL);
    for (pid_t tid = 10; tid < 14; tid++) {
        fixture_task(&f, 10, tid, 0);
        fixture_use(&f, 10, tid, (uint64_t[4]){1000}, 1000, (TaskKey){0});
        fixture_find(&f, 10, tid)->home_node.i = tid < 13 ? tid - 10 : 0;
    }
    fixture_cpus(&f, 0, 3, 1000, 0);
    place(&f);
    for (pid_t tid = 10; tid < 14; tid++)
        n[fixture_find(&f, 10, tid)->home_node.i]++;
    for (size_t i = 0; i < ARRAY_SIZE(n); i++)
        assert_int_equal(n[i], 1);
}

/* Six threads, two on each of three nodes, and a fourth node that another group has left: one of them goes there if
 * they are known to wait for memory, and if there are cores to spare. */
static void test_memory_pressed(void **state)
{
    static const struct {
        uint32_t stall_permille, traffic_mb;
        bool smt;
        int on_last;
    } cases[] = {{300, 5000, false, 1}, {30, 5000, false, 0}, {300, 0, false, 0}, {300, 5000, true, 0}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int n = 0;
        Process *process;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, cases[i].smt ? "numa:4 l3:1 core:1 pu:2" : "numa:4 l3:1 core:2 pu:1", AUTO);
        fixture_process(&f, 10, "a", NULL);
        process = world_process(f.world, 10);
        process->stall_usec = f.world->now_usec;
        process->stall_permille = (uint16_t)cases[i].stall_permille;
        process->traffic_mb = cases[i].traffic_mb;
        process->cpu_permille = 6000;
        for (pid_t tid = 10; tid < 16; tid++) {
            uint64_t pages[4] = {0};

            pages[(tid - 10) / 2] = 1000;
            fixture_task(&f, 10, tid, (unsigned)tid - 10);
            fixture_use(&f, 10, tid, pages, 1000, (TaskKey){0});
            fixture_find(&f, 10, tid)->home_node.i = (tid - 10) / 2;
        }
        fixture_cpus(&f, 0, 7, 1000, 0);
        place(&f);
        for (pid_t tid = 10; tid < 16; tid++)
            n += fixture_find(&f, 10, tid)->home_node.i == 3;
        assert_int_equal(n, cases[i].on_last);
    }
}

/* Five threads on two nodes of two CPUs: the fifth stays where it is, whichever node has slightly more other load. */
static void test_one_too_many(void **state)
{
    int32_t nodes[5];
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    fixture_policy(&f, "n0", "[Placement]\nNodes=0\n");
    fixture_policy(&f, "n1", "[Placement]\nNodes=1\n");
    fixture_process(&f, 20, "n0", NULL);
    fixture_process(&f, 30, "n1", NULL);
    fixture_task(&f, 20, 20, 0);
    fixture_task(&f, 30, 30, 2);
    fixture_task(&f, 10, 14, 0);
    for (pid_t tid = 10; tid < 15; tid++)
        use(&f, tid, tid < 13 ? 1000 : 0, tid < 13 ? 0 : 1000, 1000, 0);
    for (unsigned k = 0; k < 4; k++) {
        for (pid_t i = 0; i < 2; i++) {
            Task *other = fixture_find(&f, 20 + 10 * i, 20 + 10 * i);

            other->run_ewma_permille = other->run_permille =
                (unsigned)i == k % 2 ? 300 + 100 * k : 200 + 100 * k;
        }
        f.world->now_usec += 3000000;
        fixture_place(&f);
        for (pid_t i = 0; i < 5; i++) {
            int32_t node = fixture_find(&f, 10, 10 + i)->home_node.i;

            assert_true(node >= 0);
            if (k > 0)
                assert_int_equal(node, nodes[i]);
            nodes[i] = node;
            use(&f, 10 + i, node == 0 ? 1000 : 0, node == 0 ? 0 : 1000, 1000,
                0); /* its memory has followed */
        }
    }
}

/* A node takes its share of the demand, not a share of the threads; six threads on four CPUs are three each. */
static void test_shares(void **state)
{
    int n[2] = {0};
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    fixture_task(&f, 10, 14, 0);
    fixture_task(&f, 10, 15, 0);
    for (pid_t tid = 10; tid < 16; tid++)
        use(&f, tid, 1000, 0, 1000, 0);
    place(&f);
    for (pid_t tid = 10; tid < 16; tid++)
        n[fixture_find(&f, 10, tid)->home_node.i]++;
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 3);
    fixture_done(&f);

    init(&f);
    for (pid_t tid = 11; tid < 14; tid++) {
        fixture_find(&f, 10, tid)->run_ewma_permille = 300;
        fixture_find(&f, 10, tid)->run_permille = 300;
    }
    for (pid_t tid = 10; tid < 14; tid++)
        use(&f, tid, 1000 + (uint64_t)tid, 0, 1000, 0);
    f.world->groups[0].roams = true; /* 1.9 CPUs would fit one node */
    f.world->groups[0].last_home_usec = f.world->now_usec - 1000000;
    fixture_place(&f);
    assert_nodes(&f, (int[]){0, 1, 1, 1}); /* this one has most to lose, but less memory than the others */
}

/* One thread too many on the node of its memory does not displace others from theirs, one after the other. */
static void test_no_chain(void **state)
{
    int n = 0;
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, "numa:3 l3:1 core:2 pu:1", AUTO);
    fixture_threads(&f, 10, 4);
    fixture_cpus(&f, 0, 5, 1000, 0);
    for (pid_t tid = 10; tid < 14; tid++) {
        uint64_t pages[3] = {0};

        pages[tid < 12 ? 0 : tid - 11] = 1000;
        fixture_use(&f, 10, tid, pages, 1000, (TaskKey){0});
    }
    place(&f);
    assert_int_equal(hwloc_bitmap_weight(f.world->groups[0].home_nodes), 3);
    for (pid_t tid = 10; tid < 14; tid++)
        n += fixture_find(&f, 10, tid)->home_node.i == 0;
    assert_int_equal(fixture_find(&f, 10, 12)->home_node.i, 1);
    assert_int_equal(fixture_find(&f, 10, 13)->home_node.i, 2);
    assert_true(n >= 1);
}

/* A thread that waits on its own node is lent an idle CPU of the home's other node: that crosses nodes. */
static void test_lend(void **state)
{
    const PlanAction *lend;
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    fixture_task(&f, 10, 14, 0);
    for (pid_t tid = 10; tid < 15; tid++)
        use(&f, tid, tid < 13 ? 1000 : 0, tid < 13 ? 0 : 1000, 1000, 0);
    f.policies->policies[0]->nice_tries = 0;
    place(&f);
    assert_int_equal(fixture_find(&f, 10, 12)->home_node.i, 0);
    fixture_wait(&f, 2000000);
    fixture_cpu(&f, 3, 0, 0);
    for (pid_t tid = 10; tid < 13; tid++) {
        Task *task = fixture_find(&f, 10, tid);

        task->wait_permille = task->wait_before_permille = 333;
        task->run_permille = 667;
    }
    fixture_find(&f, 10, 14)->run_permille = 0;
    fixture_plan(&f, false);
    assert_int_equal(fixture_count(&f, PLAN_KIND_LEND), 1);
    lend = fixture_action(&f, PLAN_KIND_LEND, 0);
    assert_int_equal(lend->cpu.i, 3);
    assert_true(lend->cross_node);
    assert_int_equal(lend->distance, 20);
}

/* In the text nodes have the numbers of the operating system, which may have gaps. */
static void test_text(void **state)
{
    PlanThread threads[] = {{.task = {.pid = 10, .tid = 11}, .home_node = {1}},
                            {.task = {.pid = 10, .tid = 12}, .home_node = NODE_NONE}};
    const Plan plan = {.threads = threads, .n_threads = ARRAY_SIZE(threads)};
    CLEANUP(fixture_done) Fixture f;
    CLEANUP_FREE char *text = NULL;

    init(&f);
    f.world->topology->nodes[1].os_index = 8;
    text = plan_format(f.world, &plan);
    assert_non_null(text);
    assert_non_null(strstr(text, "\nthread pid=10 tid=11 node=8\nthread pid=10 tid=12 node=-1\n"));
}

TEST_MAIN(NULL, NULL, test_unknown, test_asked, test_caches_fill, test_start, test_flip, test_moving,
          test_little, test_others, test_home_grows, test_memory_pressed, test_beside_others,
          test_stays_beside_its_own, test_mostly_private, test_one_too_many, test_shares, test_no_chain,
          test_lend, test_text, test_loses_node)
