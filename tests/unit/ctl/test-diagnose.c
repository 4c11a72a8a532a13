/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ctl/diagnose/verdict.h: each verdict at least once, with foreign pins and cpusets, and with work that is
 * already well placed. */

#include "../machine.h"
#include "../temp-tree.h"
#include "ctl-test.h"
#include "ctl/diagnose/pins.h"
#include "ctl/diagnose/survey.h"
#include "ctl/diagnose/verdict.h"

#define GIB (1ULL << 30)

/* Two nodes of four CPUs, at a distance of 21. */
typedef struct Case {
    const char *name;
    DiagnoseVerdict verdict;
    uint64_t run[2], bytes[2], wait;
    uint64_t stays; /* 0: all */
    uint64_t bound;
    uint64_t idle_allowed, idle_cpuset, idle_machine;
    unsigned allowed, cpuset; /* bit per node; 0: both */
    int home;                 /* bit per node */
    bool pinned, unknown, placed, by_cpuset;
    uint32_t gain_least, gain_most; /* for alarms */
} Case;

static const Case cases[] = {
    /* Something is wrong. */
    {.name = "threads on the wrong node",
     .verdict = DIAGNOSE_THREADS_FAR,
     .run = {2000, 0},
     .bytes = {0, 4 * GIB},
     .home = 2,
     .gain_least = 500,
     .gain_most = 530},
    {.name = "memory on the wrong node: the home is where it runs",
     .verdict = DIAGNOSE_MEMORY_FAR,
     .run = {3000, 0},
     .bytes = {GIB / 8, 4 * GIB},
     .home = 1,
     .gain_least = 490,
     .gain_most = 530},
    {.name = "threads that wander",
     .verdict = DIAGNOSE_MEMORY_FAR,
     .run = {1000, 1000},
     .bytes = {2 * GIB, 2 * GIB},
     .stays = 1100,
     .home = 1,
     .gain_least = 340,
     .gain_most = 360},
    {.name = "wider than the node that has its memory",
     .verdict = DIAGNOSE_BANDWIDTH,
     .run = {3800, 3800},
     .bytes = {8 * GIB, 0},
     .gain_least = 500,
     .gain_most = 500},
    {.name = "waits beside idle CPUs",
     .verdict = DIAGNOSE_WAITS,
     .run = {2000, 0},
     .bytes = {GIB, 0},
     .wait = 2000,
     .idle_allowed = 3000,
     .idle_cpuset = 3000,
     .idle_machine = 3000,
     .gain_least = 500,
     .gain_most = 500},
    {.name = "pinned by somebody, waits",
     .verdict = DIAGNOSE_PIN_WAITS,
     .run = {1000, 0},
     .bytes = {GIB, 0},
     .wait = 3000,
     .idle_cpuset = 6000,
     .idle_machine = 6000,
     .pinned = true,
     .allowed = 1,
     .gain_least = 750,
     .gain_most = 750},
    {.name = "in a cpuset, waits",
     .verdict = DIAGNOSE_PIN_WAITS,
     .run = {1000, 0},
     .bytes = {GIB, 0},
     .wait = 1000,
     .idle_machine = 6000,
     .allowed = 1,
     .cpuset = 1,
     .by_cpuset = true,
     .gain_least = 500,
     .gain_most = 500},
    {.name = "pinned away from its memory",
     .verdict = DIAGNOSE_PIN_FAR,
     .run = {1000, 0},
     .bytes = {0, GIB},
     .pinned = true,
     .allowed = 1,
     .gain_least = 500,
     .gain_most = 530},
    {.name = "a cpuset away from its memory",
     .verdict = DIAGNOSE_PIN_FAR,
     .run = {1000, 0},
     .bytes = {GIB / 16, GIB},
     .allowed = 1,
     .cpuset = 1,
     .by_cpuset = true,
     .gain_least = 480,
     .gain_most = 530},
    {.name = "bound to the other node",
     .verdict = DIAGNOSE_BOUND_FAR,
     .run = {1000, 0},
     .bytes = {0, GIB},
     .bound = GIB,
     .home = 2,
     .gain_least = 500,
     .gain_most = 530},
    /* Nothing is wrong. */
    {.name = "at home", .verdict = DIAGNOSE_LOCAL, .run = {3000, 0}, .bytes = {4 * GIB, 0}, .home = 1},
    {.name = "nearly at home",
     .verdict = DIAGNOSE_LOCAL,
     .run = {2800, 200},
     .bytes = {4 * GIB, GIB / 8},
     .home = 1},
    {.name = "pinned beside its memory",
     .verdict = DIAGNOSE_LOCAL,
     .run = {0, 1000},
     .bytes = {0, GIB},
     .pinned = true,
     .allowed = 2},
    {.name = "bound where it runs",
     .verdict = DIAGNOSE_LOCAL,
     .run = {0, 1000},
     .bytes = {0, GIB},
     .bound = GIB},
    {.name = "threads that stay, perhaps each with its own memory",
     .verdict = DIAGNOSE_UNCERTAIN,
     .run = {2000, 2000},
     .bytes = {2 * GIB, 2 * GIB},
     .home = 1},
    {.name = "wide, and memory on both nodes",
     .verdict = DIAGNOSE_UNCERTAIN,
     .run = {3800, 3800},
     .bytes = {4 * GIB, 4 * GIB}},
    {.name = "wide, wandering, and nowhere to go",
     .verdict = DIAGNOSE_NOWHERE,
     .run = {3800, 3800},
     .bytes = {4 * GIB, 4 * GIB},
     .stays = 4200},
    {.name = "asleep", .verdict = DIAGNOSE_IDLE, .run = {10, 0}, .bytes = {0, GIB}, .home = 2},
    {.name = "small", .verdict = DIAGNOSE_SMALL, .run = {1000, 0}, .bytes = {0, GIB / 32}, .home = 2},
    {.name = "unreadable", .verdict = DIAGNOSE_UNREADABLE, .run = {1000, 0}, .unknown = true},
    {.name = "placed",
     .verdict = DIAGNOSE_PLACED,
     .run = {1000, 0},
     .bytes = {0, GIB},
     .pinned = true,
     .allowed = 1,
     .placed = true},
    {.name = "waits, and the machine is full",
     .verdict = DIAGNOSE_FULL,
     .run = {4000, 0},
     .bytes = {GIB, 0},
     .wait = 4000,
     .home = 1},
    {.name = "waits a little",
     .verdict = DIAGNOSE_LOCAL,
     .run = {4000, 0},
     .bytes = {GIB, 0},
     .wait = 400,
     .idle_allowed = 4000,
     .idle_cpuset = 4000,
     .idle_machine = 4000,
     .home = 1},
};

static hwloc_bitmap_t nodes_of(unsigned bits)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

    assert_non_null(nodes);
    assert_int_equal(hwloc_bitmap_from_ulong(nodes, bits ? bits : 3), 0);
    return nodes;
}

static void run_case(const Case *c, const Topology *topology, Diagnosis *ret)
{
    hwloc_bitmap_t allowed = nodes_of(c->allowed), cpuset = nodes_of(c->cpuset),
                   home = nodes_of((unsigned)c->home);
    const DiagnoseFacts facts = {
        .topology = topology,
        .run = c->run[0] + c->run[1],
        .wait = c->wait,
        .run_node = c->run,
        .run_stays = c->stays ? c->stays : c->run[0] + c->run[1],
        .node_bytes = c->unknown ? NULL : c->bytes,
        .bound_bytes = c->bound,
        .idle_allowed = c->idle_allowed,
        .idle_cpuset = c->idle_cpuset,
        .idle_machine = c->idle_machine,
        .allowed_nodes = allowed,
        .cpuset_nodes = cpuset,
        .pinned = c->pinned,
        .confined = c->cpuset != 0,
        .placed = c->placed,
        .home_nodes = c->home ? home : NULL,
    };

    diagnose(&facts, ret);
    hwloc_bitmap_free(allowed);
    hwloc_bitmap_free(cpuset);
    hwloc_bitmap_free(home);
}

static Topology *two_nodes(void)
{
    return test_machine("node:2 core:4 pu:1 distances=10,21,21,10");
}

static void test_verdicts(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = two_nodes();
    unsigned met = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const Case *c = &cases[i];
        Diagnosis d;

        run_case(c, topology, &d);
        if (d.verdict != c->verdict)
            fail_msg("%s: %s, expected %s", c->name, diagnose_verdict_name(d.verdict),
                     diagnose_verdict_name(c->verdict));
        assert_int_equal(d.by_cpuset, c->by_cpuset);
        assert_int_equal(diagnose_is_alarm(d.verdict), c->gain_most > 0);
        if (c->gain_most > 0 && (d.gain_most < c->gain_least || d.gain_most > c->gain_most))
            fail_msg("%s: gains %u", c->name, d.gain_most);
        met |= 1U << d.verdict;
    }
    met |= 1U << DIAGNOSE_ONE_NODE;
    assert_int_equal(met, (1U << DIAGNOSE_MAX) - 1);
}

static void test_one_node(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine("node:1 core:4 pu:1");
    Diagnosis d;

    run_case(&(Case){.run = {1000, 0}, .bytes = {GIB, 0}}, topology, &d);
    assert_int_equal(d.verdict, DIAGNOSE_ONE_NODE);
    /* Waiting is the same with a pin. */
    run_case(&(Case){.run = {1000, 0}, .bytes = {GIB, 0}, .wait = 1000, .idle_cpuset = 2000, .pinned = true},
             topology, &d);
    assert_int_equal(d.verdict, DIAGNOSE_PIN_WAITS);
}

/* A node without CPUs, such as CXL memory, has no room for any thread. That alone does not make a thread that wanders
 * need more than one node. */
static void test_memory_without_cpus(void **state)
{
    static const struct {
        uint64_t run;
        DiagnoseVerdict verdict;
    } rows[] = {{500, DIAGNOSE_NOWHERE}, {2000, DIAGNOSE_NOWHERE}, {2500, DIAGNOSE_BANDWIDTH}};
    CLEANUP(topology_unref_p)
    Topology *topology = test_machine("node:3 core:4 pu:1 distances=10,21,31,21,10,31,31,31,10");

    topology->nodes[2].n_cpus = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const uint64_t run[] = {rows[i].run, rows[i].run, 0}, bytes[] = {0, 0, 4 * GIB};
        const DiagnoseFacts facts = {.topology = topology,
                                     .run = 2 * rows[i].run,
                                     .run_stays = rows[i].run,
                                     .run_node = run,
                                     .node_bytes = bytes};
        Diagnosis d;

        diagnose(&facts, &d);
        assert_string_equal(diagnose_verdict_name(d.verdict), diagnose_verdict_name(rows[i].verdict));
    }
}

/* Half of the time of its threads and half of its memory are on each node: local may be all or nothing, and
 * is a half on average. */
static void test_bounds(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = two_nodes();
    Diagnosis d;

    run_case(&(Case){.run = {1000, 1000}, .bytes = {GIB, GIB}}, topology, &d);
    assert_int_equal(d.local_least, 0);
    assert_int_equal(d.local, 500);
    assert_int_equal(d.local_most, 1000);
    run_case(&(Case){.run = {900, 100}, .bytes = {4 * GIB, GIB}}, topology, &d);
    assert_int_equal(d.local_least, 700);
    assert_int_equal(d.local, 740);
    assert_int_equal(d.local_most, 900);
    run_case(&(Case){.run = {1000, 1000}, .bytes = {GIB, GIB}, .stays = 1200}, topology, &d);
    assert_int_equal(d.local_most, 600);
    run_case(&(Case){.run = {1000, 0}, .unknown = true}, topology, &d);
    assert_int_equal(d.local, DIAGNOSE_UNKNOWN);
}

/* For any measurement, the bounds are in order and the gain is a share. */
static void test_property(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = two_nodes();
    uint64_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        uint64_t x[8];
        Diagnosis d;

        for (size_t k = 0; k < ARRAY_SIZE(x); k++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            x[k] = seed >> 33;
        }
        run_case(&(Case){.run = {x[0] % 5000, x[1] % 5000},
                         .bytes = {(x[2] % 64) << 26, (x[3] % 64) << 26},
                         .wait = x[4] % 4000,
                         .stays = 1 + x[5] % 10000,
                         .idle_allowed = x[6] % 1000,
                         .idle_cpuset = x[6] % 3000,
                         .idle_machine = x[6] % 8000,
                         .allowed = (unsigned)x[7] % 4,
                         .home = (int)(x[7] >> 2) % 4,
                         .pinned = x[7] & 16},
                 topology, &d);
        assert_true(d.verdict < DIAGNOSE_MAX);
        assert_true(d.gain_most < 1000 && d.waits <= 1000);
        if (d.local != DIAGNOSE_UNKNOWN)
            assert_true(d.local_least <= d.local && d.local <= d.local_most && d.local_most <= 1000);
    }
}

/* A path of PATH_MAX whose bytes are escaped makes a line of 16 KiB, with the numbers at its end. */
static void test_bound_to_a_long_path(void **state)
{
    static char path[4 * PATH_MAX], text[sizeof(path) + 256];
    CLEANUP(topology_unref_p) Topology *topology = two_nodes();
    char *directory = test_tree_new();
    CLEANUP_CLOSE int root_fd = -1;
    const uint64_t run_node[] = {1000, 0};
    const DiagnoseFacts facts = {.topology = topology, .run = 1000, .run_node = run_node};

    for (size_t i = 0; i + 4 < sizeof(path); i += 4)
        memcpy(path + i, "\\040", 4);
    assert_true(snprintf(text, sizeof(text),
                         "7f0000000000 bind:1 file=/%s anon=3 dirty=3 N1=3 kernelpagesize_kB=4\n"
                         "7f1000000000 bind:1 anon=5 dirty=5 N1=5 kernelpagesize_kB=4\n"
                         "7f2000000000 bind:0 anon=7 dirty=7 N0=7 kernelpagesize_kB=4\n",
                         path) < (int)sizeof(text));
    (void)test_write(directory, "proc/100/numa_maps", text);
    root_fd = root_open(directory);
    assert_int_equal(survey_bound_bytes(root_fd, 100, &facts), (3 + 5) * 4096);
    assert_int_equal(survey_bound_bytes(root_fd, 101, &facts), 0);
    test_tree_remove(directory);
}

/* The limit is that of the highest group with the same CPUs, which in a container may be its root. */
static void test_cpuset_origin(void **state)
{
    static const struct {
        const char *root, *cgroup, *origin;
    } rows[] = {
        {"0-7\n", "/a", "/a"},
        {"0-7\n", "/a/b", "/a"},
        {"0-7\n", "/a/b/none", "/a"},
        {"0-3\n", "/a/b", "/"},
        {"0-3\n", "/a", "/"},
        {"0-3\n", "/", "/"},
        {"0-7\n", "/c", "/"},
        {NULL, "/a/b", "/a"},
        {NULL, "/none", "/none"},
        /* As libvirt has them: not the group of the emulator thread. */
        {"0-7\n", "/a/emulator", "/a"},
        {"0-7\n", "/threaded", "/"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *directory = test_tree_new();
        CLEANUP_CLOSE int root_fd = -1;
        CLEANUP_FREE char *origin = NULL;

        (void)test_write(directory, "sys/fs/cgroup/a/cpuset.cpus.effective", "0-3\n");
        (void)test_write(directory, "sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-3\n");
        (void)test_write(directory, "sys/fs/cgroup/a/emulator/cpuset.cpus.effective", "0\n");
        (void)test_write(directory, "sys/fs/cgroup/a/emulator/cgroup.type", "threaded\n");
        (void)test_write(directory, "sys/fs/cgroup/threaded/cpuset.cpus.effective", "0\n");
        (void)test_write(directory, "sys/fs/cgroup/threaded/cgroup.type", "threaded\n");
        (void)test_write(directory, "sys/fs/cgroup/c/cpuset.cpus.effective", "0-7\n");
        if (rows[i].root)
            (void)test_write(directory, "sys/fs/cgroup/cpuset.cpus.effective", rows[i].root);
        root_fd = root_open(directory);
        origin = pins_cpuset_origin(root_fd, rows[i].cgroup);
        assert_string_equal(origin, rows[i].origin);
        test_tree_remove(directory);
    }
}

TEST_MAIN(NULL, NULL, test_verdicts, test_one_node, test_memory_without_cpus, test_bounds, test_property,
          test_bound_to_a_long_path, test_cpuset_origin)
