/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The CPUs or nodes of the machine have changed, and it cannot be read for a while. */

#include "../temp-tree.h"
#include "base/root.h"
#include "base/time.h"
#include "daemon/manager/manager.h"

#include <fcntl.h>
#include <sys/resource.h>

#define BEFORE "numa:1 core:4 pu:1"
#define AFTER  "numa:2 core:2 pu:1"

/* What manager_new() makes before it makes a World, on a tree without processes. */
static Manager *make(char *tree, Log *log)
{
    static const char *const no_policies[] = {NULL};
    const ManagerOptions options = {
        .policy_directories = no_policies, .root = tree, .topology.synthetic = BEFORE, .dry_run = true};
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    Manager *manager = manager_alloc(&options, log);
    char *error = NULL;

    (void)test_write(tree, "proc/stat", "cpu0 0 0 0 0 0 0 0 0 0 0\n");
    assert_non_null(manager);
    manager->mode = MANAGER_MODE_DRY_RUN;
    assert_int_equal(manager_open_root(manager), 0);
    assert_int_equal(config_new(&manager->config), 0);
    assert_int_equal(policy_set_new(NULL, 0, &manager->policies), 0);
    manager->users = user_cache_new();
    manager->released = task_set_new();
    manager->assigned = assignments_new();
    manager->moves = moves_new();
    assert_true(manager->users && manager->released && manager->assigned && manager->moves);
    assert_int_equal(manager_open_act(manager), 0);
    assert_int_equal(topology_load(&options.topology, &topology, &error), 0);
    assert_int_equal(manager_rebuild(manager, topology), 0);
    return manager;
}

static uint32_t n_nodes(const Manager *manager)
{
    return manager->world->topology->n_nodes;
}

/* It is tried again although nothing else changes, after 1 s, 2 s, ... 600 s, and used as soon as it can be read. */
static void test_tried_again(void **state)
{
    static const uint64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
    char *tree = test_tree_new();
    Log log = {.level = LOG_EMERG};
    Manager *manager = make(tree, &log);
    uint64_t now = USEC_PER_SEC;

    manager->options.topology.synthetic = "nonsense";
    assert_int_equal(manager_follow_topology(manager, true, now), 0);
    for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
        /* Too early to be noticed. */
        manager->options.topology.synthetic = AFTER;
        assert_int_equal(manager_follow_topology(manager, false, now + pauses[i] * USEC_PER_SEC - 1), 0);
        assert_int_equal(n_nodes(manager), 1);
        manager->options.topology.synthetic = "nonsense";
        now += pauses[i] * USEC_PER_SEC;
        assert_int_equal(manager_follow_topology(manager, false, now), 0);
        assert_int_equal(n_nodes(manager), 1);
        assert_int_equal(manager->statistics.n_topology_reloads, 0);
    }
    manager->options.topology.synthetic = AFTER;
    assert_int_equal(manager_follow_topology(manager, false, now + 600 * USEC_PER_SEC), 0);
    assert_int_equal(n_nodes(manager), 2);
    assert_int_equal(manager->statistics.n_topology_reloads, 1);
    /* That was it. */
    assert_int_equal(manager_follow_topology(manager, false, now + 6000 * USEC_PER_SEC), 0);
    assert_int_equal(manager->statistics.n_topology_reloads, 1);
    manager_free(manager);
    test_tree_remove(tree);
}

/* A further change may be what makes it readable. */
static void test_changed_again(void **state)
{
    char *tree = test_tree_new();
    Log log = {.level = LOG_EMERG};
    Manager *manager = make(tree, &log);

    manager->options.topology.synthetic = "nonsense";
    assert_int_equal(manager_follow_topology(manager, true, USEC_PER_SEC), 0);
    manager->options.topology.synthetic = AFTER;
    assert_int_equal(manager_follow_topology(manager, true, USEC_PER_SEC + 1), 0);
    assert_int_equal(n_nodes(manager), 2);
    manager_free(manager);
    test_tree_remove(tree);
}

/* The number of the next descriptor, below which all are taken. */
static rlim_t next_descriptor(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)close(fd);
    return (rlim_t)fd;
}

static bool has_all(const Manager *manager)
{
    const ProbeFeatures *features = probe_features(manager->probe);

    return features->schedstat && features->task_schedstat && features->numa;
}

/* Calls what reads the machine with no descriptor left, then with one, and so on until it has worked. Returns how many
 * it needs. */
static rlim_t try_with_few(Manager *manager, bool (*works)(Manager *manager, rlim_t n))
{
    struct rlimit limit, few;
    rlim_t next = next_descriptor(), n = 0;
    bool worked;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    do {
        few.rlim_cur = next + n;
        assert_true(few.rlim_cur < limit.rlim_cur);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        worked = works(manager, n++);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_true(has_all(manager));
    } while (!worked);
    return n - 1;
}

static bool follows(Manager *manager, rlim_t n)
{
    assert_int_equal(manager_follow_topology(manager, n == 0, (n + 1) * 600 * USEC_PER_SEC), 0);
    assert_int_equal(manager->statistics.n_topology_reloads, n_nodes(manager) - 1);
    return n_nodes(manager) == 2;
}

static bool reloads(Manager *manager, rlim_t n)
{
    CLEANUP_FREE char *error = NULL;
    const World *world = manager->world;
    int r = manager_reload(manager, &error);

    assert_int_equal(manager->config->max_tasks == 77, r == 0);
    assert_int_equal(manager->world != world, r == 0);
    return r == 0;
}

/* While descriptors are exhausted, however many are left, the old World and Probe stay in force, with their
 * configuration. What replaces them lacks nothing. */
static void test_no_descriptors(void **state)
{
    char *tree = test_tree_new();
    Log log = {.level = LOG_EMERG};
    Manager *manager;

    (void)test_write(tree, "proc/schedstat", "version 15\ncpu0 0 0 0 0 0 0 0 0 0\n");
    (void)test_write(tree, "proc/self/schedstat", "1 1 1\n");
    (void)test_write(tree, "sys/devices/system/node/online", "0-1\n");
    manager = make(tree, &log);
    assert_true(has_all(manager));
    manager->options.topology.synthetic = AFTER;
    assert_true(try_with_few(manager, follows) > 3);
    manager->options.config_path = test_write(tree, "conf", "[Daemon]\nMaxTasks=77\n");
    assert_true(try_with_few(manager, reloads) > 3);
    manager_free(manager);
    test_tree_remove(tree);
}

TEST_MAIN(NULL, NULL, test_tried_again, test_changed_again, test_no_descriptors)
