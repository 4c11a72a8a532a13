/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The CPUs or nodes of the machine have changed, and it cannot be read for a while. */

#include "../temp-tree.h"
#include "base/root.h"
#include "base/time.h"
#include "daemon/manager/manager.h"

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

TEST_MAIN(NULL, NULL, test_tried_again, test_changed_again)
