/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What `top` shows, without a terminal or a daemon. */

#include "../machine.h"
#include "base/parse.h"
#include "ctl-test.h"
#include "ctl/top/draw.h"
#include "ctl/top/recording.h"

/* Appends to one of the arrays of GetCpuLoads. */
static void push(json_object *loads, const char *key, unsigned value)
{
    json_object *list = json_object_object_get(loads, key);

    if (!list) {
        list = json_object_new_array();
        assert_int_equal(json_object_object_add(loads, key, list), 0);
    }
    assert_int_equal(json_object_array_add(list, json_object_new_int64(value)), 0);
}

/* A snapshot with that many nodes, CPUs on each, and workloads. */
static TopSnapshot *make(unsigned n_nodes, unsigned n_each, unsigned n_workloads)
{
    CLEANUP_JSON json_object *status =
        test_json("{\"version\":\"1.2.3\",\"state\":\"running\",\"mode\":\"active\",\"idle\":3,"
                  "\"overloaded\":1,\"leases\":1,\"uptime_usec\":61000000,\"cpu_permille\":3,"
                  "\"max_cpu_permille\":10,\"free\":[{\"node\":0,\"bytes\":1073741824}]}");
    CLEANUP_JSON json_object *topology = json_object_new_object(), *loads = json_object_new_object(),
                             *workloads = json_object_new_array(), *moves = NULL;
    json_object *nodes = json_add_array(topology, "nodes");
    TopSnapshot *snapshot;
    char text[512];

    for (unsigned i = 0; i < n_nodes; i++) {
        (void)snprintf(text, sizeof(text), "{\"node\":%u,\"n_cpus\":%u,\"memory_bytes\":4294967296}", i,
                       n_each);
        (void)json_object_array_add(nodes, test_json(text));
    }
    /* Idle, busy, overloaded and lent in turn; one cache per two CPUs. */
    for (unsigned i = 0; i < n_nodes * n_each; i++) {
        push(loads, "cpu", i);
        push(loads, "node", i / n_each);
        push(loads, "llc", i / 2);
        push(loads, "online", 1);
        push(loads, "busy_permille", i % 4 ? 1000 : 0);
        push(loads, "idle", i % 4 == 0);
        push(loads, "wait_permille", i % 4 == 2 ? 500 : 0);
        push(loads, "lent", i % 4 == 3);
    }
    for (unsigned i = 0; i < n_workloads; i++) {
        (void)snprintf(text, sizeof(text),
                       "{\"name\":\"%02u-work\",\"mode\":\"auto\",\"home_nodes\":\"%u\",\"observed\":%s,"
                       "\"would_home_nodes\":\"1\",\"run_permille\":%u,\"wait_permille\":%u,\"tasks\":%u,"
                       "\"memory_bytes\":%u,\"memory_todo_bytes\":%u}",
                       i, i % 2, i == 1 ? "true" : "false", 1000 * ((i * 7) % 5), i, i + 1, 1 << 30,
                       i == 0 ? 1 << 20 : 0);
        (void)json_object_array_add(workloads, test_json(text));
    }
    moves = test_json("[{\"kind\":\"set-home\",\"comm\":\"evil\\u001b[2J\",\"pid\":5,\"outcome\":\"done\","
                      "\"workload\":\"00-work\",\"realtime_usec\":1000000000000}]");
    snapshot = top_snapshot_make(status, topology, loads, workloads, moves);
    assert_non_null(snapshot);
    return snapshot;
}

static char *draw(const TopSnapshot *snapshot, TopChoice *choice, unsigned rows, unsigned columns)
{
    CLEANUP(frame_done) Frame frame = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(top_draw(snapshot, choice, rows, columns, &frame), 0);
    assert_int_equal(frame.rows, rows);
    frame_print(&frame, out);
    assert_int_equal(fclose(out), 0);
    assert_null(strchr(text, '\033'));
    return text;
}

static void test_small(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 2);
    CLEANUP_FREE char *text = NULL;
    TopChoice choice = {0};

    text = draw(snapshot, &choice, 24, 80);
    assert_non_null(
        strstr(text, "numaplaced 1.2.3: running, active; up 1 min 1 s; cost 0.3 of 1.0 % of a CPU\n"));
    assert_non_null(strstr(text, "8 CPUs: 3 idle, 1 overloaded, 1 lent"));
    assert_non_null(strstr(text, "node 0    75 % [||||||||  ] 3.0 GiB of 4.0 GiB    .o #L\n"));
    assert_non_null(strstr(text, "node 1    75 % [||||||||  ] 4.0 GiB               .o #L\n"));
    assert_non_null(
        strstr(text, "WORKLOAD         MODE     NODES      RUN   WAIT LENT THREADS    MEMORY    MOVING\n"));
    assert_non_null(
        strstr(text, "00-work          auto     0         0.00   0.00    0       1   1.0 GiB   1.0 MiB\n"));
    assert_non_null(
        strstr(text, "01-work          observed (1)       2.00   0.00    0       2   1.0 GiB         -\n"));
    assert_non_null(strstr(text, "LAST ACTIONS\n"));
    assert_non_null(strstr(text, "evil\\x1b[2J[5]"));
    assert_non_null(strstr(text, "\nq quit  h help"));
}

/* If the traffic of nodes is measured, it is shown between memory and CPUs. */
static void test_bandwidth(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 2);
    CLEANUP_FREE char *text = NULL;
    TopChoice choice = {0};

    snapshot->nodes[1].bandwidth_known = true;
    snapshot->nodes[1].bandwidth_bytes = 3ULL << 29;
    text = draw(snapshot, &choice, 24, 80);
    assert_non_null(strstr(text, "node 0    75 % [||||||||  ] 3.0 GiB of 4.0 GiB                 .o #L\n"));
    assert_non_null(strstr(text, "node 1    75 % [||||||||  ] 4.0 GiB               1.5 GiB/s    .o #L\n"));
}

/* Every size shows something, whatever the machine, and the selected line is visible. */
static void test_sizes(void **state)
{
    static const unsigned sizes[][2] = {{24, 80}, {60, 200}, {10, 40}, {4, 20}, {1, 1}, {300, 500}};
    static const unsigned machines[][3] = {{2, 4, 0}, {2, 4, 1}, {16, 64, 500}, {1, 1, 3}};

    for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
        CLEANUP(top_snapshot_free_p)
        TopSnapshot *snapshot = make(machines[m][0], machines[m][1], machines[m][2]);

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            TopChoice choice = {.selected = 400};
            CLEANUP_FREE char *text = draw(snapshot, &choice, sizes[i][0], sizes[i][1]);
            const TopWorkload *selected = top_selected(snapshot, &choice);

            assert_true(sizes[i][0] < 4 || *text);
            assert_true(machines[m][2] == 0 || sizes[i][0] < 4 || selected);
            if (selected && sizes[i][0] >= 24)
                assert_non_null(strstr(text, selected->name));
        }
    }
}

static void test_more_nodes_than_room(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(16, 64, 1);
    CLEANUP_FREE char *text = NULL;
    TopChoice choice = {0};

    text = draw(snapshot, &choice, 24, 80);
    assert_non_null(strstr(text, "and 9 more nodes"));
    /* One letter for three CPUs, that of the worst. */
    assert_non_null(strstr(text, " #L###L###L###L###L###L\n"));
}

static void test_sort_and_filter(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 12);
    TopChoice choice = {.sort = TOP_SORT_RUN};
    CLEANUP_FREE char *text = NULL, *filtered = NULL, *none = NULL;

    /* 7 i modulo 5 is 4 for 2 and 7. */
    text = draw(snapshot, &choice, 40, 100);
    assert_string_equal(top_selected(snapshot, &choice)->name, "02-work");
    assert_true(strstr(text, "02-work") < strstr(text, "07-work"));
    assert_true(strstr(text, "07-work") < strstr(text, "04-work"));
    (void)strcpy(choice.filter, "11-W");
    filtered = draw(snapshot, &choice, 40, 100);
    assert_null(strstr(filtered, "02-work"));
    assert_non_null(strstr(filtered, "11-work"));
    (void)strcpy(choice.filter, "zzz");
    none = draw(snapshot, &choice, 40, 100);
    assert_non_null(strstr(none, "no workload has that in its name"));
    assert_null(top_selected(snapshot, &choice));
}

static void test_once_is_all(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(16, 4, 100);
    TopChoice choice = {.once = true};
    CLEANUP_FREE char *text = NULL;

    text = draw(snapshot, &choice, top_rows(snapshot), 80);
    assert_non_null(strstr(text, "node 15"));
    assert_non_null(strstr(text, "99-work"));
    assert_non_null(strstr(text, "LAST ACTIONS"));
    assert_null(strstr(text, "q quit"));
}

/* The longest name, and a set that would read as another one if it were cut. */
static void test_whole(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 200, 1);
    TopChoice choice = {.once = true, .whole = true};
    CLEANUP_FREE char *text = NULL;

    snapshot->workloads[0].bytes = 0; /* not measured */
    memset(snapshot->workloads[0].name, 'x', TOP_NAME_SIZE - 1);
    top_copy(snapshot->workloads[0].nodes, TOP_NODES_SIZE, "0-3,8-11,16");
    memset(snapshot->moves[0], '\\', TOP_MOVE_SIZE - 1);
    (void)strcpy(snapshot->moves[0] + TOP_MOVE_SIZE - 6, "\033 end");
    text = draw(snapshot, &choice, top_rows(snapshot), top_columns(snapshot));
    assert_non_null(strstr(text, "xxx auto     0-3,8-11,16 "));
    assert_non_null(strstr(text, "       1         -   1.0 MiB\n"));
    assert_non_null(strstr(text, "\\\\x1b end\n"));
    assert_non_null(strstr(text, " #L\nnode 1"));
    assert_non_null(strstr(text, "\nWORKLOAD  "));
}

/* A set of nodes that does not fit is not cut to another set. */
static void test_many_home_nodes(void **state)
{
    static const struct {
        const char *nodes, *placed, *observed;
    } rows[] = {
        {"0-1,3-5", " auto     0-1,3-5 ", " observed (...)   "},
        {"0-3,8-11", " auto     0-3,... ", " observed (...)   "},
        {"0,2,4,6,8", " auto     0,2,... ", " observed (0,...) "},
        {"0,2,4,6,8,10,12,14,16,18", " auto     0,2,... ", " observed (0,...) "},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 2);
        CLEANUP_FREE char *text = NULL;

        for (unsigned k = 0; k < 2; k++)
            top_copy_set(snapshot->workloads[k].nodes, TOP_NODES_SIZE, rows[i].nodes);
        text = draw(snapshot, &(TopChoice){0}, 24, 80);
        if (!strstr(text, rows[i].placed) || !strstr(text, rows[i].observed))
            fail_msg("%s: %s", rows[i].nodes, text);
        assert_string_equal(snapshot->workloads[0].nodes, i < 3 ? rows[i].nodes : "0,2,4,6,8,10,12,14,...");
    }
}

/* A terminal of 80 columns shows the whole help. */
static void test_help(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 1);
    TopChoice choice = {.help = true};
    CLEANUP_FREE char *narrow = draw(snapshot, &choice, 24, 80);
    CLEANUP_FREE char *wide = draw(snapshot, &choice, 24, 200);

    assert_string_equal(narrow, wide);
    assert_non_null(strstr(narrow, "this help\n"));
}

static void test_as_json(void **state)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = make(2, 4, 3);
    CLEANUP_JSON json_object *object = top_snapshot_json(snapshot);
    json_object *list;

    assert_non_null(object);
    assert_true(json_object_object_get_ex(object, "cpus", &list));
    assert_int_equal(json_object_array_length(list), 8);
    assert_true(json_object_object_get_ex(object, "workloads", &list));
    assert_int_equal(json_object_array_length(list), 3);
}

/* A mask for a World as a recording has it. */

static CpuMask mask(World *world, unsigned from, unsigned to)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(hwloc_bitmap_set_range(set, from, (int)to), 0);
    return intern_mask(world->pool, set);
}

static PolicySet *make_policies(const char *text)
{
    ConfReport report = {0};
    PolicySet *policies = NULL;
    Policy *policy = NULL;

    assert_int_equal(policy_parse("10-work", text, strlen(text), "test", NULL, &policy, &report), 0);
    assert_int_equal(policy_set_new(&policy, 1, &policies), 0);
    policy_free(policy);
    conf_report_done(&report);
    return policies;
}

/* Four CPUs on nodes 0 and 1: one idle, one waited for, one offline, one lent to a thread of the only process. */
static World *make_world(void)
{
    const uint64_t bytes[] = {1 << 20, 3 << 20};
    CLEANUP(topology_unref_p) Topology *topology = test_machine("pack:2 [numa] l3:1 core:2 pu:1");
    World *world = NULL;

    assert_int_equal(world_new(topology, &world), 0);
    world->now_usec = 5000000;
    world->cpus[0] = (CpuLoad){.online = true, .usable = true, .idle_since_usec = 4000000};
    world->cpus[1] = (CpuLoad){.online = true, .usable = true, .busy_permille = 1000, .wait_permille = 500};
    world->cpus[3] = (CpuLoad){.online = true, .usable = true, .busy_permille = 455};
    assert_int_equal(world_add_workload(world, "10-work", 0), 0);
    assert_int_equal(world_add_group(world, (WorkloadIx){0}, ""), 0);
    world->groups[0].wish_nodes = mask(world, 1, 1);
    assert_int_equal(world_add_process(world, &(Process){.pid = 10,
                                                         .start_ticks = 1,
                                                         .comm = intern_string(world->pool, "a"),
                                                         .cgroup = intern_string(world->pool, "/"),
                                                         .workload = {0},
                                                         .group = {0}}),
                     0);
    assert_int_equal(world_set_process_memory(world, &world->processes[0], bytes, 1), 0);
    world->processes[0].memory = (MemoryMove){.to = mask(world, 1, 1), .todo_bytes = 1 << 20};
    assert_int_equal(world_add_task(world, &(Task){.tid = 10,
                                                   .process = {0},
                                                   .start_ticks = 1,
                                                   .home_node = NODE_NONE,
                                                   .last_cpu = CPU_NONE,
                                                   .comm = "a"}),
                     0);
    assert_int_equal(world_add_lease(world, &(Lease){.task = {10, 10, 1}, .group_id = 1, .cpu = {3}}), 0);
    world_sum(world);
    return world;
}

static void test_record(void **state)
{
    static const char text[] =
        "plan tick=9 now=4500000us pressed=yes overloaded=1 idle=1\n\nset-home rule=first-home P15 pid=10\n"
        "refused reason=x P2\nplan tick=10 now=5000000us pressed=no overloaded=3 idle=2\n";
    CLEANUP(policy_set_free_p) PolicySet *acts = make_policies("[Match]\nComm=a\n[Placement]\nMode=auto\n");
    CLEANUP(world_free_p) World *world = make_world();
    CLEANUP(top_snapshot_free_p) TopSnapshot *first = NULL, *second = NULL;
    CLEANUP_FREE char *shown = NULL;
    TopChoice choice = {0};

    first = top_snapshot_of_world(world, acts, &(PlanLimits){0}, NULL, strdup(text));
    assert_non_null(first);
    assert_int_equal(first->n_cpus, 4);
    assert_int_equal(first->cpus[0].state, TOP_CPU_IDLE);
    assert_int_equal(first->cpus[1].state, TOP_CPU_OVERLOADED);
    assert_int_equal(first->cpus[2].state, TOP_CPU_ABSENT);
    assert_int_equal(first->cpus[3].state, TOP_CPU_LENT);
    assert_int_equal(first->nodes[1].busy_permille, 455);
    assert_int_equal(first->n_overloaded, 3);
    assert_int_equal(first->n_idle, 2);
    assert_string_equal(first->workloads[0].nodes, "");
    assert_int_equal(first->workloads[0].bytes, 4 << 20);
    assert_int_equal(first->workloads[0].together_permille, 750);
    assert_int_equal(first->workloads[0].moving_bytes, 1 << 20);
    assert_int_equal(first->workloads[0].leases, 1);
    assert_string_equal(first->moves[0], "    0.0 s  set-home rule=first-home P15 pid=10");
    assert_string_equal(first->moves[1], "");

    /* A daemon that may not change anything observes all workloads. Its actions are in order of time. */
    world->now_usec = 7000000;
    second =
        top_snapshot_of_world(world, acts, &(PlanLimits){.observe = true}, first,
                              strdup("plan tick=12 now=6500000us\nlend rule=y P2 pid=10\nrecall rule=z"));
    assert_non_null(second);
    assert_true(second->workloads[0].observed);
    assert_string_equal(second->workloads[0].nodes, "1");
    assert_int_equal(second->uptime_usec, 2000000);
    assert_string_equal(second->moves[0], "    1.5 s  recall rule=z");
    assert_string_equal(second->moves[2], first->moves[0]);
    shown = draw(second, &choice, 24, 80);
    assert_non_null(strstr(shown, "a record; 2.0 s from its beginning\n"));
    assert_non_null(strstr(shown, "observed (1) "));
    assert_non_null(strstr(shown, "Enter plans"));
}

/* An action is shown as far as it fits, and a part of it does not look whole. */
static void test_long_action(void **state)
{
    static const char usual[] =
        "move-pages rule=go-back P17 pid=2 workload=auto group=1 from-nodes=0 to-nodes=0,1,2,3 help-nodes=0 "
        "bytes=471859200 reserve=0 headroom=10% rate=0 nice=-10 shared=no stripe=yes value=450 limit=12";
    CLEANUP(policy_set_free_p) PolicySet *acts = make_policies("[Match]\nComm=a\n[Placement]\nMode=auto\n");
    CLEANUP(world_free_p) World *world = make_world();
    CLEANUP(top_snapshot_free_p) TopSnapshot *snapshot = NULL;
    CLEANUP_FREE char *plan = format_text("plan tick=9 now=5000000us\n%s\nlend rule=%0*d\n", usual, 600, 7);
    const char *end = usual + strlen(usual) - strlen("value=450 limit=12");

    assert_non_null(plan);
    snapshot = top_snapshot_of_world(world, acts, &(PlanLimits){0}, NULL, TAKE_PTR(plan));
    assert_non_null(snapshot);
    assert_non_null(strstr(snapshot->moves[1], end));
    assert_int_equal(strlen(snapshot->moves[0]), TOP_MOVE_SIZE - 1);
    assert_string_equal(snapshot->moves[0] + TOP_MOVE_SIZE - 1 - strlen("00..."), "00...");
}

TEST_MAIN(NULL, NULL, test_small, test_record, test_long_action, test_sizes, test_more_nodes_than_room,
          test_sort_and_filter, test_once_is_all, test_as_json, test_bandwidth, test_whole,
          test_many_home_nodes, test_help)
