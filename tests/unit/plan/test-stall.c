/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P15: which processes wait for memory, by the processor's counters, and what that decides (S-STALL). */

#include "fixture.h"
#include "pack-test.h"
#include "plan/ablation.h"
#include "plan/scan/stall.h"

#define POLICY "[Placement]\nMode=auto\n"

static const StallCounts busy = {.instructions = 120000000, .cycles = 60000000, .misses = 2000};

static void test_estimate(void **state)
{
    static const struct {
        StallCounts counts;
        int expected;
    } cases[] = {
        {{2000000, 1000000, 100}, 30},
        {{2000000, 1000000, 3333}, 999},
        {{2000000, 1000000, 900000}, 1000},
        {{500000, 1000000, 100}, 30},
        /* It waits for something other than misses. */
        {{499000, 1000000, 100}, 1000},
        /* Too little to tell; and no program works for so long without a miss. */
        {{2000000, 999999, 100}, -ENODATA},
        {{2000000, 1000000, 0}, -ENODATA},
        {{UINT64_MAX, UINT64_MAX, 1}, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(stall_estimate(&cases[i].counts), cases[i].expected);
}

static void test_discount(void **state)
{
    assert_int_equal(stall_discount(0), 1000);
    assert_int_equal(stall_discount(25), 900);
    assert_int_equal(stall_discount(125), 500);
    assert_int_equal(stall_discount(250), 0);
    assert_int_equal(stall_discount(1000), 0);
}

/* Counting goes on until the threads have run for long enough, or for half a second. The second count makes
 * up half of the mean. */
static void test_counted(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Process *process;
    StallCounts counts = {.instructions = 20000000, .cycles = 10000000, .misses = 1000};

    fixture_init_with(&f, TWO_SHARDS, POLICY);
    fixture_process(&f, 100, "a", NULL);
    process = world_process(f.world, 100);
    assert_false(stall_counted(f.world, process, &counts, 400000));
    assert_int_equal(process->stall_usec, 0);
    assert_true(stall_counted(f.world, process, &counts, 500000));
    assert_int_equal(process->stall_permille, 30);
    assert_int_equal(process->ipc_permille, 2000);
    assert_int_equal(process->stall_usec, f.world->now_usec - 500000);
    counts = (StallCounts){.instructions = 60000000, .cycles = 30000000, .misses = 9000};
    assert_true(stall_counted(f.world, process, &counts, 100000));
    assert_int_equal(process->stall_permille, 60);
    assert_int_equal(process->traffic_mb, 0);
    counts.misses = 900000;
    counts.run_usec = 10000;
    assert_true(stall_counted(f.world, process, &counts, 100000));
    assert_int_equal(process->traffic_mb, 90 * STALL_LINE_BYTES);
    process->stall_permille = 60;
    counts = (StallCounts){.instructions = 1, .cycles = 1, .misses = 1};
    assert_true(stall_counted(f.world, process, &counts, 1000000));
    assert_int_equal(process->stall_permille, 60);
}

static void add(Fixture *f, pid_t pid, const char *policy, int n, uint16_t run)
{
    fixture_process(f, pid, policy, NULL);
    world_process(f->world, pid)->cpu_permille = (uint32_t)n * run;
    for (int i = 0; i < n; i++) {
        Task *task = fixture_task(f, pid, pid + i, 0);

        task->run_permille = task->run_ewma_permille = run;
    }
}

/* Chooses in one tick; "100:8 200:2" are processes with their numbers of threads. */
static void assert_chosen(Fixture *f, StallChoice choice, const char *expected)
{
    char text[256] = "";
    pid_t tids[STALL_THREADS];
    const Process *process;
    size_t n;

    while ((process = stall_next(f->world, f->policies, &choice, tids, &n))) {
        size_t at = strlen(text);

        (void)snprintf(text + at, sizeof(text) - at, "%s%d:%zu", at > 0 ? " " : "", process->pid, n);
    }
    assert_string_equal(text, expected);
}

static void test_choice(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, POLICY);
    fixture_policy(&f, "b", "[Placement]\nMode=compress\n");
    fixture_policy(&f, "c", POLICY "[Memory]\nEvidence=residency\n");
    add(&f, 100, "a", 12, 900);
    add(&f, 200, "a", 2, 900);
    add(&f, 300, "b", 2, 900);
    add(&f, 400, "c", 2, 900);
    add(&f, 500, "a", 3, 10);
    add(&f, 600, "a", 7, 900);
    /* As many as may begin in a tick. Sleeping ones are asked again after a second, running ones after ten. */
    assert_chosen(&f, (StallChoice){.n_open = STALL_THREADS_MAX - STALL_THREADS + 1}, "");
    assert_chosen(&f, (StallChoice){0}, "100:8 200:2 600:7");
    assert_chosen(&f, (StallChoice){0}, "");
    fixture_wait(&f, 1000000);
    world_process(f.world, 500)->stall_usec = f.world->now_usec;
    world_task_by_tid(f.world, 500, 501)->run_permille = 900;
    world_process(f.world, 500)->cpu_permille = 920;
    assert_chosen(&f, (StallChoice){0}, "500:3");
    fixture_wait(&f, 9000000);
    world_process(f.world, 100)->stall_usec = f.world->now_usec;
    assert_chosen(&f, (StallChoice){0}, "200:2 600:7 100:8");
}

/* Of very many sleepers only some are asked in a tick, and known sleepers never. */
static void test_sleepers(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    uint32_t n = 0;

    fixture_init_with(&f, TWO_SHARDS, POLICY);
    for (pid_t pid = 100; pid < 500; pid += 10) {
        add(&f, pid, "a", 1, 0);
        if (pid < 400)
            world_process(f.world, pid)->first_seen_usec = f.world->now_usec;
    }
    assert_chosen(&f, (StallChoice){0}, "");
    for (size_t i = 0; i < f.world->n_processes; i++)
        n += f.world->processes[i].stall_due_usec > 0;
    assert_int_equal(n, STALL_THREADS_BY_TICK);
    for (int i = 0; i < 3; i++)
        assert_chosen(&f, (StallChoice){0}, "");
    assert_true(world_process(f.world, 390)->stall_due_usec > 0);
    assert_int_equal(world_process(f.world, 400)->stall_due_usec, 0);
}

/* The threads that run most are counted. */
static void test_threads(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    StallChoice choice = {0};
    pid_t tids[STALL_THREADS];
    size_t n;

    fixture_init_with(&f, TWO_SHARDS, POLICY);
    add(&f, 100, "a", 12, 100);
    world_task_by_tid(f.world, 100, 111)->run_permille = 900;
    world_task_by_tid(f.world, 100, 105)->run_permille = 200;
    world_task_by_tid(f.world, 100, 101)->gone = true;
    assert_non_null(stall_next(f.world, f.policies, &choice, tids, &n));
    assert_int_equal(n, STALL_THREADS);
    assert_int_equal(tids[0], 111);
    assert_int_equal(tids[1], 105);
    assert_int_equal(tids[2], 100);
    assert_int_equal(tids[3], 102);
    assert_int_equal(choice.n_open, STALL_THREADS);
}

/* Distance from memory counts less by the discount, and so do seven eighths of the distance between threads;
 * not under a mode that wants them together. */
static void test_costs(void **state)
{
    Instance in;
    PackCost cost, full;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){0, 3});
    for (uint32_t mode = PACK_MODE_COMPRESS; mode <= PACK_MODE_AUTO; mode++) {
        in.groups[0].mode = (PackMode)mode;
        in.groups[0].stall_discount_permille = 0;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &full), 0);
        in.groups[0].stall_discount_permille = 800;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
        assert_int_equal(cost.remote, mode == PACK_MODE_AUTO ? full.remote / 5 : full.remote);
        /* The second term is far / 128 for one node more. */
        assert_int_equal(cost.split,
                         mode == PACK_MODE_AUTO ? (full.split - 20000) * 3 / 10 + 20000 : full.split);
    }
}

/* Memory beside its users excuses being apart, whatever the discount. */
static void test_sorted(void **state)
{
    Instance in;
    PackCost cost, full;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, (uint64_t[]){2, 2});
    in.groups[0].private_permille = in.groups[0].sorted_permille = 1000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &full), 0);
    for (uint32_t discount = 200; discount <= 1000; discount += 200) {
        in.groups[0].stall_discount_permille = discount;
        assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
        assert_int_equal(cost.split, full.split);
    }
}

/* All its memory is on a node whose cores it must share: a process that waits for memory stays, another one moves. */
static void test_decides(void **state)
{
    for (int k = 0; k < 3; k++) {
        CLEANUP(fixture_done) Fixture f;
        Process *process;

        fixture_init(&f, "numa:2 l3:1 core:4 pu:2 distances=10,20,20,10");
        fixture_memory(&f);
        fixture_policy(&f, "a", POLICY);
        add(&f, 100, "a", 5, 1000);
        process = world_process(f.world, 100);
        assert_int_equal(world_set_process_memory(f.world, process, (uint64_t[]){1ULL << 30, 0}, 1), 0);
        assert_int_equal(stall_counted(f.world, process, &busy, 100000), 1);
        process->stall_permille = k == 0 ? 10 : 300;
        process->stall_usec = k < 2;
        process->stall_permille *= k < 2;
        fixture_place(&f);
        assert_int_equal(hwloc_bitmap_weight(f.world->groups[0].home_nodes ? f.world->groups[0].home_nodes
                                                                           : fixture_mask(&f, "0-1")),
                         k == 0 ? 2 : 1);
    }
}

/* Two programs with all their memory on a node that has four fifths of the bandwidth they want: one leaves, also where
 * the bandwidth of both nodes or of the other one is unknown. Both stay if they want half of that, or too little for
 * it to matter what a node gives; if it is unknown what they want; if memory does not follow; or if the rule is off. */
static void test_full_node(void **state)
{
    enum {
        FULL,
        UNKNOWN_NODES,
        UNKNOWN_OTHER,
        LEAVES_MAX = UNKNOWN_OTHER,
        HALF_FULL,
        UNKNOWN_LITTLE,
        NO_FOLLOW,
        UNKNOWN_TRAFFIC,
        SWITCHED_OFF,
        CASES
    };

    for (unsigned k = 0; k < CASES; k++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, "numa:2 l3:1 core:16 pu:1 distances=10,20,20,10");
        fixture_memory(&f);
        fixture_policy(&f, "a", k == NO_FOLLOW ? POLICY "[Memory]\nFollow=no\n" : POLICY);
        f.world->ablated = (uint64_t)(k == SWITCHED_OFF) << ABLATION_TRAFFIC;
        for (unsigned n = 0; n < 2; n++)
            f.world->topology->nodes[n].bandwidth_mb =
                k == UNKNOWN_NODES || k == UNKNOWN_LITTLE || (k == UNKNOWN_OTHER && n == 1) ? 0 : 40000;
        for (pid_t pid = 100; pid <= 200; pid += 100) {
            Process *process;

            add(&f, pid, "a", 6, 1000);
            process = world_process(f.world, pid);
            assert_int_equal(world_set_process_memory(f.world, process, (uint64_t[]){1ULL << 30, 0}, 1), 0);
            assert_true(stall_counted(f.world, process, &busy, 100000));
            process->stall_permille = 1000;
            process->traffic_mb = k == UNKNOWN_TRAFFIC  ? 0
                                  : k == UNKNOWN_LITTLE ? 300
                                  : k == HALF_FULL      ? 1500
                                                        : 3200;
        }
        fixture_place(&f);
        assert_int_equal(hwloc_bitmap_isequal(f.world->groups[0].home_nodes, f.world->groups[1].home_nodes),
                         k > LEAVES_MAX);
        fixture_assert_settled(&f, true);
    }
}

/* Nothing is known of a process that is no longer counted. */
static void test_forgotten(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    StallCounts counts = {.instructions = 60000000, .cycles = 30000000, .misses = 900000, .run_usec = 10000};
    StallChoice choice = {0};
    pid_t tids[STALL_THREADS];
    Process *process;
    size_t n;

    fixture_init_with(&f, TWO_SHARDS, POLICY);
    add(&f, 100, "a", 1, 1000);
    process = world_process(f.world, 100);
    assert_true(stall_counted(f.world, process, &counts, 100000));
    process->stall_due_usec = UINT64_MAX;
    assert_null(stall_next(f.world, f.policies, &choice, tids, &n));
    assert_int_equal(process->traffic_mb, 90 * STALL_LINE_BYTES);
    process->yielded = true;
    assert_null(stall_next(f.world, f.policies, &choice, tids, &n));
    assert_int_equal(process->traffic_mb + process->stall_permille + process->stall_usec, 0);
}

/* Bandwidth used by a process that somebody else has pinned is not available to others. */
static void test_others_move(void **state)
{
    for (unsigned others = 0; others < 2; others++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init(&f, "numa:2 l3:1 core:16 pu:1 distances=10,20,20,10");
        fixture_memory(&f);
        fixture_policy(&f, "a", POLICY);
        fixture_policy(&f, "b", POLICY);
        for (unsigned n = 0; n < 2; n++)
            f.world->topology->nodes[n].bandwidth_mb = 40000;
        for (pid_t pid = 100; pid <= 200; pid += 100) {
            Process *process;

            add(&f, pid, pid == 100 ? "a" : "b", 6, 1000);
            process = world_process(f.world, pid);
            assert_int_equal(world_set_process_memory(f.world, process, (uint64_t[]){1ULL << 30, 0}, 1), 0);
            assert_true(stall_counted(f.world, process, &busy, 100000));
            process->stall_permille = 1000;
            process->traffic_mb = pid == 100 ? 3200 : others ? 5000 : 0;
        }
        for (pid_t tid = 200; tid < 206; tid++) {
            fixture_find(&f, 200, tid)->hands = TASK_HANDS_FOREIGN;
            fixture_find(&f, 200, tid)->allowed = fixture_mask(&f, "0-15");
        }
        fixture_place(&f);
        assert_int_equal(hwloc_bitmap_first(f.world->groups[0].home_nodes), others);
        assert_int_equal(hwloc_bitmap_weight(f.world->groups[0].home_nodes), 1);
    }
}

/* Two fifths of three CPUs wait for traffic beyond four fifths of the node's bandwidth; not so on two nodes. */
static void test_starved(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, NULL);
    in.groups[0].stall_discount_permille = 250;
    in.groups[0].traffic_mb = 40000;
    for (uint32_t node = 0; node < 2; node++)
        in.nodes[node].traffic_mb = 30000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.starved, 3000 * 400 / 1000 * 2 * 64 * 10);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){3}, &cost), 0);
    assert_int_equal(cost.starved, 0);
    in.groups[0].mode = PACK_MODE_COMPRESS;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.starved, 0);
}

/* A node of unknown bandwidth has its share of the traffic by its size, a quarter and three quarters, and 4 GB/s at
 * least. */
static void test_unknown_bandwidth(void **state)
{
    Instance in;
    PackCost cost;

    instance_init(&in, 2, 8000, 20);
    add_group(&in, 4000, NULL);
    in.groups[0].stall_discount_permille = 250;
    in.groups[0].traffic_mb = 40000;
    in.nodes[1].capacity_permille = in.nodes[1].size_permille = 24000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.starved, 3000 * 750 / 1000 * 2 * 64 * 10);
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){2}, &cost), 0);
    assert_int_equal(cost.starved, 3000 * 250 / 1000 * 2 * 64 * 10);
    in.groups[0].traffic_mb = 4000;
    assert_int_equal(pack_cost(&in.problem, (PackNodes[]){1}, &cost), 0);
    assert_int_equal(cost.starved, 0);
}

/* The largest traffic of as many groups as there may be is shared as well. */
static void test_largest_traffic(void **state)
{
    static PackGroup groups[PACK_GROUPS_MAX];
    static PackNodes sets[PACK_GROUPS_MAX];
    Instance in;
    PackCost cost;

    instance_init(&in, 2, PACK_DEMAND_MAX, 20);
    add_group(&in, 1000, NULL);
    for (uint32_t i = 0; i < PACK_GROUPS_MAX; i++) {
        groups[i] = in.groups[0];
        groups[i].id = i + 1;
        groups[i].memory_bytes = NULL;
        groups[i].traffic_mb = PACK_TRAFFIC_MAX;
        sets[i] = (PackNodes)1 << i % 2;
    }
    in.problem.groups = groups;
    in.problem.n_groups = PACK_GROUPS_MAX;
    assert_int_equal(pack_cost(&in.problem, sets, &cost), 0);
    assert_int_equal(cost.starved, 0);
}

TEST_MAIN(NULL, NULL, test_estimate, test_discount, test_counted, test_choice, test_threads, test_costs,
          test_decides, test_sorted, test_sleepers, test_full_node, test_starved, test_others_move,
          test_forgotten, test_unknown_bandwidth, test_largest_traffic)
