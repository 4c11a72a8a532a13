/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fence-tree.h"

#include "../machine.h"
#include "../temp-tree.h"
#include "act/fence/place.h"

#include <fcntl.h>

void tree_write(const Tree *t, const char *path, const char *text)
{
    (void)test_write(t->directory, path, text);
}

/* Replaces the whole file, as a write to a cgroup file does. A plain write would leave the end of a longer
 * old text. */
static int set_file(void *context, const char *path, hwloc_const_bitmap_t set)
{
    static const char *const bases[] = {
        [ACT_FENCE_CGROUP1] = TREE_V1,
        [ACT_FENCE_CGROUP2] = TREE_V2,
        [ACT_FENCE_CPUSETFS] = TREE_DEV,
    };
    const TreeList *to = context;
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX), *file = NULL;

    assert_non_null(list);
    file = format_text("%s%s/%s%s", bases[to->kind], path + 1,
                       to->kind == ACT_FENCE_CPUSETFS ? "" : "cpuset.", to->memory ? "mems" : "cpus");
    assert_non_null(file);
    if (faccessat(to->tree->root_fd, file, F_OK, 0) != 0)
        return -ENOENT;
    tree_write(to->tree, file, list);
    return 0;
}

/* Acts as a service manager: writes the cgroup, and a drop-in for this boot. */
static void obey(Tree *t, bool memory, const char *list)
{
    const char *property = memory ? "AllowedMemoryNodes" : "AllowedCPUs";
    char text[256];

    (void)snprintf(text, sizeof(text), "# A comment\n[Service]\n%s=\n%s=%s\n", property, property, list);
    tree_write(t, memory ? TREE_DROPIN "AllowedMemoryNodes.conf" : TREE_DROPIN "AllowedCPUs.conf", text);
    if (faccessat(t->root_fd, "sys/fs/cgroup" TREE_UNIT, F_OK, 0) == 0)
        tree_write(
            t, memory ? "sys/fs/cgroup" TREE_UNIT "/cpuset.mems" : "sys/fs/cgroup" TREE_UNIT "/cpuset.cpus",
            list);
    t->result[memory] = 0;
}

static int set_property(void *context, const char *name, hwloc_const_bitmap_t set)
{
    const TreeList *to = context;
    Tree *t = to->tree;
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);
    size_t len = strlen(t->asked);

    assert_non_null(list);
    (void)snprintf(t->asked + len, sizeof(t->asked) - len, "%s%s=%s;", name, to->memory ? " memory" : "",
                   list);
    if (t->n_lost > 0) {
        t->n_lost--;
        t->result[to->memory] = -ECONNRESET;
        return 0;
    }
    t->result[to->memory] = t->keeps_some && !*list ? -ENOSPC : -EINPROGRESS;
    if (t->obeys && t->result[to->memory] != -ENOSPC)
        obey(t, to->memory, list);
    return 0;
}

static int result_of(void *context, const char *name)
{
    const TreeList *to = context;

    return to->tree->result[to->memory];
}

static const FenceOps ops_file = {.set = set_file};
static const FenceOps ops_unit = {.set = set_property, .result = result_of};

void tree_start(Tree *t)
{
    char *error = NULL;

    assert_int_equal(journal_open(t->journal_path, t->root_fd, &t->journal, &error), 0);
    assert_null(error);
    t->fences = fences_new(t->journal, t->root_fd);
    assert_non_null(t->fences);
    for (int memory = false; memory <= true; memory++)
        for (ActFenceKind kind = ACT_FENCE_UNIT; kind < ACT_FENCE_MAX; kind++) {
            t->lists[memory][kind] = (TreeList){t, kind, memory};
            fences_set_ops(t->fences, kind, memory, kind == ACT_FENCE_UNIT ? &ops_unit : &ops_file,
                           &t->lists[memory][kind]);
        }
}

void tree_crash(Tree *t)
{
    t->fences = fences_free(t->fences);
    t->journal = journal_free(t->journal);
}

void tree_restart(Tree *t)
{
    tree_crash(t);
    tree_start(t);
}

CpuMask tree_mask(const Tree *t, const char *list)
{
    return test_mask(t->world->pool, list);
}

/* Adds a process with one thread, at home on CPUs 0-3 of eight. */
static void add_process(Tree *t, pid_t pid, const char *cgroup, const char *unit)
{
    Process process = {
        .pid = pid,
        .start_ticks = 1,
        .comm = intern_string(t->world->pool, "w"),
        .cgroup = intern_string(t->world->pool, cgroup),
        .unit = intern_string(t->world->pool, unit),
        .cpuset = tree_mask(t, "0-7"),
        .workload = {0},
        .group = {0},
    };
    int at = world_add_process(t->world, &process);

    assert_true(at >= 0);
    assert_true(world_add_task(t->world, &(Task){
                                             .tid = pid,
                                             .process = {at},
                                             .start_ticks = 1,
                                             .hands = TASK_HANDS_FREE,
                                             .allowed = tree_mask(t, "0-3"),
                                             .original = tree_mask(t, "0-7"),
                                             .lease = -1,
                                         }) >= 0);
}

static Tree *setup(void **state)
{
    Tree *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->directory = test_tree_new();
    (void)snprintf(t->journal_path, sizeof(t->journal_path), "%s/journal", t->directory);
    t->root_fd = open(t->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(t->root_fd >= 0);
    tree_write(t, "proc/sys/kernel/random/boot_id", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\n");
    tree_write(t, "proc/sys/kernel/osrelease", "6.12.1-test\n");
    tree_write(t, "sys/devices/system/cpu/possible", "0-7\n");

    t->topology = test_machine("numa:2(memory=1GB) pu:4");
    assert_int_equal(world_new(t->topology, &t->world), 0);
    for (unsigned i = 0; i < t->topology->cpu_limit; i++)
        t->world->cpus[i].online = t->world->cpus[i].usable = true;
    assert_int_equal(world_add_workload(t->world, "w", 0), 0);
    assert_int_equal(world_add_group(t->world, (WorkloadIx){0}, ""), 0);
    t->world->groups[0].home = tree_mask(t, "0-3");
    t->world->groups[0].home_nodes = tree_mask(t, "0");
    t->wish = ACT_WISH_AUTO;
    *state = t;
    return t;
}

static void add_processes(Tree *t)
{
    for (pid_t pid = 100; pid <= 101; pid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
        tree_write(t, path, "4:cpuset:/a\n0::/\n");
        add_process(t, pid, "/", NULL);
    }
    t->wish = ACT_WISH_CPUSET;
    tree_start(t);
}

int tree_setup_v1(void **state)
{
    Tree *t = setup(state);

    tree_write(t, TREE_V1 "cpuset.cpus", "0-7\n");
    tree_write(t, TREE_V1 "a/cpuset.cpus", "0-7\n");
    tree_write(t, TREE_V1 "a/cgroup.procs", "100\n101\n");
    add_processes(t);
    return 0;
}

int tree_setup_cpusetfs(void **state)
{
    Tree *t = setup(state);

    tree_write(t, "proc/self/mountinfo", "44 25 0:41 / /dev/cpuset rw - cgroup none rw,cpuset,noprefix\n");
    tree_write(t, TREE_DEV "cpus", "0-7\n");
    tree_write(t, TREE_DEV "mems", "0-1\n");
    tree_write(t, TREE_DEV "a/cpus", "0-7\n");
    tree_write(t, TREE_DEV "a/effective_cpus", "0-7\n");
    tree_write(t, TREE_DEV "a/mems", "0-1\n");
    tree_write(t, TREE_DEV "a/cgroup.procs", "100\n101\n");
    add_processes(t);
    return 0;
}

int tree_setup_unit(void **state)
{
    Tree *t = setup(state);

    tree_write(t, "run/systemd/system/x", "");
    tree_write(t, TREE_V2 "cgroup.controllers", "cpuset cpu io\n");
    tree_write(t, TREE_V2 "cpuset.cpus.effective", "0-7\n");
    tree_write(t, "sys/fs/cgroup" TREE_UNIT "/cgroup.procs", "100\n");
    add_process(t, 100, TREE_UNIT, "x.service");
    tree_start(t);
    return 0;
}

int tree_teardown(void **state)
{
    CLEANUP_FREE Tree *t = *state;

    tree_crash(t);
    world_free(t->world);
    topology_unref(t->topology);
    (void)close(t->root_fd);
    test_tree_remove(t->directory);
    return 0;
}

static ActWish wish_of(void *userdata, const World *world, WorkloadIx workload, bool *ret_memory)
{
    const Tree *t = userdata;

    *ret_memory = t->wish_memory;
    return t->wish;
}

void tree_tick(Tree *t)
{
    fences_sense(t->fences);
    assert_int_equal(fences_follow(t->fences, t->world, wish_of, t), 0);
}

void tree_assert_cpus(const Tree *t, ActFenceKind kind, const char *path, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(fence_read(t->root_fd, kind, path, "cpuset.cpus", set), 0);
    assert_list(set, expected);
}

void tree_assert_memory(const Tree *t, ActFenceKind kind, const char *path, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(fence_read(t->root_fd, kind, path, "cpuset.mems", set), 0);
    assert_list(set, expected);
}

void tree_restore(const Tree *t, ActFenceKind kind, const char *path, const char *expected)
{
    assert_int_equal(fences_restore(t->fences), 0);
    tree_assert_cpus(t, kind, path, expected);
    assert_int_equal(t->journal->n_fences, 0);
}

void tree_set_memory(Tree *t, uint64_t node_0, uint64_t node_1)
{
    for (size_t i = 0; i < t->world->n_processes; i++) {
        const uint64_t bytes[] = {node_0 << 20, node_1 << 20};

        assert_int_equal(world_set_process_memory(t->world, &t->world->processes[i], bytes, 1), 0);
    }
}

void tree_assert_why(const Tree *t, ActWhy expected)
{
    assert_string_equal(act_why_name(fences_means(t->fences, t->world->groups[0].id).why),
                        act_why_name(expected));
}

void tree_tick_to(Tree *t, ActWhy expected)
{
    tree_tick(t);
    tree_assert_why(t, expected);
}

void tree_assert_bound(const Tree *t, const char *path, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(fences_bound(t->fences, path, set), expected != NULL);
    if (expected)
        assert_list(set, expected);
}
