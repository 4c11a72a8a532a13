/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sample.h"

#define HEAD                                            \
    "format version=1\n"                                \
    "topology origin=synthetic source=\"two CPUs\"\n"   \
    "node os=0 memory_bytes=0 distances=10\n"           \
    "cpu cpu=0 node=0 llc=0 core=0\n"                   \
    "cpu cpu=1 node=0 llc=0 core=1\n"                   \
    "domain numa=no distance=10 span=2 imb_numa_nr=1\n" \
    "world now_usec=9 next_group_id=2\n" /* seven lines: bodies start in line 8 */
#define WORKLOAD "workload name=\"w\"\n"
#define GROUP    "group id=1 workload=0 key=\"\"\n"
#define PROCESS  "process pid=5 comm=\"p\" cgroup=\"/\" workload=0 group=0\n"
#define TASK     "task pid=5 tid=5 original=0-1\n"

/* Every member gets a distinct value, so that a forgotten or swapped member is found. */
static World *odd_world(void)
{
    World *world = sample_world();

    world->tick = 51;
    world->interval_usec = 52;
    world->action_cost_usec = 53;
    world->idle_permille = 83;
    world->own_permille = 84;
    world->partial = true;
    world->cross_node = (Bucket){54, 55};
    world->cpus[2] = (CpuLoad){true, false, true, 1, 2, 3, 4, 5, 6, 7, 8};
    world->nodes[1] = (NodeLoad){76, true, 77, 78};
    world->workloads[1].paused = true;
    world->workloads[1].cross_node = (Bucket){56, 57};
    world->workloads[1].n_lends = 58;
    world->workloads[1].n_recalls = 59;
    world->groups[1].first_seen_usec = 60;
    world->groups[1].last_home_usec = 61;
    world->groups[1].n_vetoes = 62;
    world->groups[1].backoff_ticks = 63;
    world->groups[1].backoff_until_tick = 64;
    world->processes[1].first_seen_usec = 65;
    world->processes[1].uid = UINT32_MAX;
    world->processes[1].unit = intern_string(world->pool, "u.service");
    world->processes[1].slice = intern_string(world->pool, "s.slice");
    world->processes[1].shared = intern_string(world->pool, "0:1:77");
    world->processes[1].cpuset = sample_mask(world, "");
    world->processes[1].rss_bytes = UINT64_MAX;
    assert_int_equal(world_set_process_memory(world, &world->processes[1], (uint64_t[]){73, 74}, 75), 0);
    world->processes[1].n_threads = 66;
    world->processes[1].cpu_permille = 67;
    world->processes[1].yielded = true;
    world->tasks[2].task_class = TASK_CLASS_EXT;
    world->tasks[2].hands = TASK_HANDS_PER_CPU;
    world->tasks[2].fresh = true;
    world->tasks[2].last_cpu = CPU_NONE;
    world->tasks[2].run_before_permille = 68;
    world->tasks[2].wait_before_permille = 69;
    world->tasks[2].run_ewma_permille = 70;
    world->tasks[2].wait_ewma_permille = 71;
    world->tasks[2].allowed = NULL;
    world->tasks[2].last_move_usec = 72;
    world->tasks[2].home_node = (NodeIx){1};
    assert_int_equal(world_set_task_use(world, &world->tasks[2], (uint64_t[]){77, 78}, 79,
                                        (TaskKey){world->processes[world->tasks[2].process.i].pid, 80, 82},
                                        81),
                     0);
    world->tasks[2].use->stay.node = (NodeIx){1};
    world->tasks[2].use->stay.rounds = 78;
    world->tasks[2].use->stay.since = 79;
    world->tasks[2].use->stay.usec = 80;
    return world;
}

static void test_round_trip(void **state)
{
    CLEANUP(world_free_p) World *world = odd_world(), *copy = NULL;
    CLEANUP_FREE char *text = NULL, *again = NULL, *error = NULL;

    text = world_dump(world);
    assert_non_null(text);
    if (world_load(text, strlen(text), &copy, &error) < 0)
        fail_msg("%s", error);
    sample_check(copy);
    again = world_dump(copy);
    assert_string_equal(again, text);

    assert_int_equal(copy->tick, 51);
    assert_int_equal(copy->now_usec, 1000000);
    assert_int_equal(copy->idle_permille, 83);
    assert_int_equal(copy->own_permille, 84);
    assert_int_equal(copy->cross_node.updated_usec, 55);
    assert_int_equal(copy->next_group_id, 3);
    assert_int_equal(copy->cpus[2].cooldown_ticks, 8);
    assert_false(copy->cpus[2].usable);
    assert_false(copy->nodes[0].free_known);
    assert_true(copy->nodes[1].free_known);
    assert_int_equal(copy->nodes[1].free_bytes, 76);
    assert_int_equal(copy->nodes[1].others_permille, 77);
    assert_null(copy->tasks[0].use);
    assert_int_equal(copy->tasks[0].home_node.i, -1);
    assert_int_equal(copy->tasks[2].home_node.i, 1);
    assert_int_equal(copy->tasks[2].use->pages[0], 77);
    assert_int_equal(copy->tasks[2].use->pages[1], 78);
    assert_int_equal(copy->tasks[2].use->private_permille, 79);
    assert_int_equal(copy->tasks[2].use->buddy.tid, 80);
    assert_int_equal(copy->tasks[2].use->buddy.start_ticks, 82);
    assert_int_equal(copy->tasks[2].use->buddy.pid, copy->processes[copy->tasks[2].process.i].pid);
    assert_int_equal(copy->tasks[2].use->measured_usec, 81);
    assert_int_equal(copy->tasks[2].use->stay.node.i, 1);
    assert_int_equal(copy->tasks[2].use->stay.rounds, 78);
    assert_int_equal(copy->tasks[2].use->stay.since, 79);
    assert_int_equal(copy->tasks[2].use->stay.usec, 80);
    assert_null(copy->processes[0].node_bytes);
    assert_int_equal(copy->processes[1].node_bytes[0], 73);
    assert_int_equal(copy->processes[1].node_bytes[1], 74);
    assert_int_equal(copy->processes[1].node_bytes_usec, 75);
    assert_string_equal(copy->workloads[1].name, "db");
    assert_int_equal(copy->workloads[0].run_permille, 700);
    assert_int_equal(copy->groups[1].backoff_until_tick, 64);
    assert_null(copy->groups[1].home);
    assert_int_equal(hwloc_bitmap_last(copy->groups[0].home), 3);
    assert_string_equal(copy->processes[1].slice, "s.slice");
    assert_string_equal(copy->processes[1].shared, "0:1:77");
    assert_null(copy->processes[0].unit);
    assert_int_equal(hwloc_bitmap_weight(copy->processes[1].cpuset), 0);
    assert_int_equal(copy->tasks[2].hands, TASK_HANDS_PER_CPU);
    assert_null(copy->tasks[2].allowed);
    assert_int_equal(copy->tasks[1].lease, 0);
    assert_int_equal(copy->leases[0].cpu.i, 4);
    assert_int_equal(copy->topology->n_nodes, 2);
    assert_int_equal(copy->topology->n_cpus, 8);
}

static void test_any_name(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world(), *copy = NULL;
    CLEANUP_FREE char *text = NULL, *error = NULL;
    char every[256];

    /* Every byte except NUL, and a name that a thread may give itself. */
    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    every[255] = '\0';
    world->processes[0].cgroup = intern_string(world->pool, every);
    world->processes[0].comm = intern_string(world->pool, "a b) (\n\"\\");
    memcpy(world->tasks[1].comm, "k\xc3\xb6ln) S 1\n\"\\x", sizeof("k\xc3\xb6ln) S 1\n\"\\x"));

    text = world_dump(world);
    assert_non_null(text);
    for (const char *p = text; *p; p++)
        assert_true(*p == '\n' || (*p >= ' ' && *p <= '~'));
    assert_non_null(strstr(text, "comm=\"a b) (\\x0a\\x22\\x5c\""));
    if (world_load(text, strlen(text), &copy, &error) < 0)
        fail_msg("%s", error);
    assert_string_equal(copy->processes[0].cgroup, every);
    assert_string_equal(copy->processes[0].comm, "a b) (\n\"\\");
    assert_string_equal(copy->tasks[1].comm, "k\xc3\xb6ln) S 1\n\"\\x");
}

static void test_defaults(void **state)
{
    static const char text[] =
        "# by hand\n\n" HEAD WORKLOAD GROUP "  process  cgroup=\"/\" pid=5 comm=\"p\"\n"
        "task tid=6 pid=5";
    CLEANUP(world_free_p) World *world = NULL;
    CLEANUP_FREE char *error = NULL;

    if (world_load(text, strlen(text), &world, &error) < 0)
        fail_msg("%s", error);
    assert_int_equal(world->n_tasks, 1);
    assert_int_equal(world->processes[0].group.i, -1);
    assert_int_equal(world->processes[0].workload.i, -1);
    assert_int_equal(world->tasks[0].last_cpu.i, -1);
    assert_int_equal(world->tasks[0].lease, -1);
    assert_null(world->tasks[0].allowed);
    assert_false(world->cpus[1].online);
}

static const struct {
    const char *text, *error;
} bad_cases[] = {
    {"", "line 1: expected a line \"format version=1\""},
    {"world now_usec=1\n", "line 1: expected a line \"format version=1\""},
    {"format version=2\n", "line 1: expected version=1, the only one known"},
    {"format version=1\n", "line 1: expected a line \"topology ...\""},
    {"format\n", "line 1: expected version="},
    {HEAD "group id=1 workload=0 key=\"\"\n",
     "line 8: expected workload= one of the 0 workloads listed above"},
    {HEAD WORKLOAD WORKLOAD, "line 9: expected each name= only once"},
    {HEAD "workload name=-\n", "line 8: expected at most 4096 workloads, with a name"},
    {HEAD "workload name=w\n", "line 8: expected name= a string in double quotes"},
    {HEAD "workload name=\"w\n", "line 8: expected name=\"...\", with special characters written as \\xNN"},
    {HEAD "workload name=\"\\x0\"\n",
     "line 8: expected name=\"...\", with special characters written as \\xNN"},
    {HEAD "workload name=\"\\x00\"\n",
     "line 8: expected name=\"...\", with special characters written as \\xNN"},
    {HEAD "workload name=\"\\n\"\n",
     "line 8: expected name=\"...\", with special characters written as \\xNN"},
    {HEAD "workload name=\"w\"policy=0\n",
     "line 8: expected name=\"...\", with special characters written as \\xNN"},
    {HEAD "workload name=\"w\" policy=-1\n",
     "line 8: expected policy= a number up to 4294967295, not \"-1\""},
    {HEAD "workload name=\"w\" policy=4294967296\n",
     "line 8: expected policy= a number up to 4294967295, not \"4294967296\""},
    {HEAD "workload name=\"w\" policy=\n", "line 8: expected policy= a number up to 4294967295, not \"\""},
    {HEAD "workload name=\"w\" policy\n", "line 8: expected key=value, not \"policy\""},
    {HEAD "workload name=\"w\" paused=1\n", "line 8: expected paused=yes or paused=no, not \"1\""},
    {HEAD "workload name=\"w\" color=1\n", "line 8: expected a key of \"workload\", not color="},
    {HEAD "workload name=\"w\" name=\"v\"\n", "line 8: expected name= at most once per line"},
    {HEAD "workload policy=1\n", "line 8: expected name="},
    {HEAD "workload name=\"\xc3\xb6\"\n",
     "line 8: expected printable ASCII; write other bytes as \\xNN inside quotes"},
    {HEAD WORKLOAD "\r\n", "line 9: expected printable ASCII; write other bytes as \\xNN inside quotes"},
    {HEAD "memory node=1 free_bytes=1\n", "line 8: expected node= one of the 1 nodes of the topology"},
    {HEAD "memory node=0 free_known=yes free_bytes=35184372088833\n",
     "line 8: expected a consistent world before this line, but node 0 has more free memory than is "
     "possible"},
    {HEAD "process pid=5 comm=\"\" cgroup=\"/\" node_bytes=1,2 node_bytes_usec=1\n",
     "line 8: expected node_bytes= of 1 numbers with node_bytes_usec=, or neither"},
    {HEAD WORKLOAD GROUP PROCESS "task pid=5 tid=5 use_pages=1,2 use_usec=1\n",
     "line 11: expected use_pages= of 1 numbers with use_usec=, or neither"},
    {HEAD WORKLOAD GROUP PROCESS "task pid=5 tid=5 home_node=1\n",
     "line 11: expected a consistent world before this line, but the home node of task 5 is out of range"},
    {HEAD "process pid=5 comm=\"\" cgroup=\"/\" node_bytes=1\n",
     "line 8: expected node_bytes= of 1 numbers with node_bytes_usec=, or neither"},
    {HEAD "process pid=5 comm=\"\" cgroup=\"/\" node_bytes_usec=1\n",
     "line 8: expected node_bytes= of 1 numbers with node_bytes_usec=, or neither"},
    {HEAD "process pid=5 comm=\"\" cgroup=\"/\" node_bytes=1 node_bytes_usec=10\n",
     "line 8: expected a consistent world before this line, but the residency of process 5 and its time do "
     "not match, or the time is after now"},
    {HEAD "load cpu=2\n", "line 8: expected cpu= a CPU of the topology"},
    {HEAD "load cpu=1 usable=yes\n",
     "line 8: expected a consistent world before this line, but CPU 1 is usable but not online"},
    {HEAD WORKLOAD "load cpu=1\n",
     "line 9: expected load, memory, workload, group, process, task, lease in this order, not \"load\""},
    {HEAD "nonsense\n",
     "line 8: expected load, memory, workload, group, process, task, lease in this order, not \"nonsense\""},
    {HEAD WORKLOAD GROUP GROUP, "line 10: expected groups in ascending order of id="},
    {HEAD WORKLOAD "group id=2 workload=0 key=\"\"\n",
     "line 9: expected a consistent world before this line, but group id 2 was never assigned"},
    {HEAD WORKLOAD "group id=1 workload=0 key=\"\" home=1-0\n",
     "line 9: expected home= a list such as 0-3,8 of numbers up to 65535, or empty, not \"1-0\""},
    {HEAD WORKLOAD "group id=1 workload=0 key=\"\" home=\n",
     "line 9: expected home= a list such as 0-3,8 of numbers up to 65535, or empty, not \"\""},
    {HEAD WORKLOAD "group id=1 workload=0 key=\"\" home=65536\n",
     "line 9: expected home= a list such as 0-3,8 of numbers up to 65535, or empty, not \"65536\""},
    {HEAD WORKLOAD GROUP PROCESS PROCESS, "line 11: expected processes in ascending order of pid="},
    {HEAD PROCESS, "line 8: expected workload= and group= of earlier lines, or -1"},
    {HEAD "process pid=5 comm=- cgroup=\"/\"\n",
     "line 8: expected at most 262144 processes, with comm and cgroup"},
    {HEAD "process pid=5 comm=\"\" cgroup=\"/\" group=-2\n",
     "line 8: expected group= a number from -1 to 2147483647, not \"-2\""},
    {HEAD WORKLOAD GROUP PROCESS TASK TASK, "line 12: expected tasks in ascending order of pid= and tid="},
    {HEAD TASK, "line 8: expected pid= a process of an earlier line"},
    {HEAD WORKLOAD GROUP PROCESS "task pid=5 tid=5 class=fair\n",
     "line 11: expected class= a name such as normal, not \"fair\""},
    {HEAD WORKLOAD GROUP PROCESS "task pid=5 tid=5 comm=\"1234567890123456\"\n",
     "line 11: expected comm= at most 15 bytes, not 16"},
    {HEAD WORKLOAD GROUP PROCESS "task pid=5 tid=5 run_permille=65536\n",
     "line 11: expected run_permille= a number up to 65535, not \"65536\""},
    {HEAD WORKLOAD GROUP PROCESS TASK "lease cpu=1 pid=5 tid=6 group_id=1\n",
     "line 12: expected pid=, tid= and start_ticks= of an earlier task line"},
    {HEAD WORKLOAD GROUP PROCESS TASK
     "lease cpu=0 pid=5 tid=5 group_id=1\nlease cpu=1 pid=5 tid=5 group_id=1\n",
     "line 13: expected at most one lease for a task"},
    {HEAD WORKLOAD GROUP PROCESS TASK
     "lease cpu=1 pid=5 tid=5 group_id=1\nlease cpu=1 pid=5 tid=5 group_id=1\n",
     "line 13: expected leases in ascending order of cpu="},
};

static void test_bad(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
        CLEANUP_FREE char *error = NULL;
        World *world = NULL;

        assert_int_equal(world_load(bad_cases[i].text, strlen(bad_cases[i].text), &world, &error), -EINVAL);
        assert_null(world);
        assert_non_null(error);
        assert_string_equal(error, bad_cases[i].error);
    }
}

static void test_nul_byte(void **state)
{
    static const char text[] = "format version=1\n\0";
    CLEANUP_FREE char *error = NULL;
    World *world = NULL;

    assert_int_equal(world_load(text, sizeof(text) - 1, &world, &error), -EINVAL);
    assert_string_equal(error, "line 2: expected text, not a NUL byte");
}

/* Every prefix of a good text is either good, or bad with a message: truncation is noticed or harmless, and
 * never crashes. */
static void test_truncated(void **state)
{
    CLEANUP(world_free_p) World *world = sample_world();
    CLEANUP_FREE char *text = world_dump(world);

    assert_non_null(text);
    for (size_t len = 0; len < strlen(text); len++) {
        CLEANUP(world_free_p) World *copy = NULL;
        CLEANUP_FREE char *error = NULL;
        int r = world_load(text, len, &copy, &error);

        assert_true(r == 0 || r == -EINVAL);
        assert_true((r == 0) == !!copy && (r == 0) == !error);
        if (error)
            assert_int_equal(strncmp(error, "line ", 5), 0);
    }
}

/* A small text could ask for much memory by distinct large sets. */
static void test_hostile(void **state)
{
    CLEANUP_FREE char *text = NULL, *error = NULL;
    World *world = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fputs(HEAD WORKLOAD, out);
    for (int i = 0; i < 10000; i++)
        (void)fprintf(out, "process pid=%d comm=\"\" cgroup=\"/\" cpuset=%d,65535\n", i + 1, i);
    assert_int_equal(fclose(out), 0);
    assert_true(size < 1 << 20);
    assert_int_equal(world_load(text, size, &world, &error), -EINVAL);
    assert_non_null(strstr(error, "expected distinct strings and sets of at most 67108864 bytes in total"));
}

/* A copy is complete, and needs nothing of the original. */
static void test_copy(void **state)
{
    World *world = odd_world(), *copy = NULL;
    CLEANUP_FREE char *before = world_dump(world);
    CLEANUP_FREE char *after = NULL;

    world->ablated = 77;
    assert_int_equal(world_copy(world, &copy), 0);
    world_free(world);
    after = world_dump(copy);
    assert_string_equal(before, after);
    assert_int_equal(copy->ablated, 77);
    assert_int_equal(world_check(copy, NULL), 0);
    world_free(copy);
}

TEST_MAIN(NULL, NULL, test_copy, test_round_trip, test_any_name, test_defaults, test_bad, test_nul_byte,
          test_truncated, test_hostile)
