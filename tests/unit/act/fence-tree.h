/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A fake tree of cgroups on a machine of two nodes with four CPUs each, a World whose one group has its home
 * on the first node, and fences that write to the tree. */

#include "../cpu-list.h"
#include "act/fence/fence.h"
#include "act/journal/journal.h"

/* Roots of the cgroup hierarchies, and the cgroup of the unit x.service. */
#define TREE_V2   "sys/fs/cgroup/"
#define TREE_V1   "sys/fs/cgroup/cpuset/"
#define TREE_DEV  "dev/cpuset/"
#define TREE_UNIT "/system.slice/x.service"
/* Path of its drop-ins, up to the name of the property. */
#define TREE_DROPIN "run/systemd/system.control/x.service.d/50-"

/* Context of one FenceOps: which cpusets it changes. */
typedef struct TreeList {
    struct Tree *tree;
    ActFenceKind kind;
    bool memory;
} TreeList;

typedef struct Tree {
    char *directory;
    char journal_path[128];
    int root_fd;
    Topology *topology;
    World *world;
    Journal *journal;
    Fences *fences;
    TreeList lists[2][ACT_FENCE_MAX];
    ActWish wish;
    bool wish_memory;
    /* A fake service manager. It answers when the test says so, or does at once what it is asked for. */
    bool obeys;
    unsigned n_lost; /* so many requests it neither carries out nor answers: it is being restarted */
    bool keeps_some; /* refuses an empty list, as the kernel does for a cgroup with processes */
    char asked[512];
    int result[2]; /* of the last list of CPUs, and of nodes */
} Tree;

/* cmocka set-up: processes 100 and 101 in a version 1 cpuset, /a, and a policy that wishes for cpusets; or
 * process 100 in the unit, and a policy with no particular wish. */
int tree_setup_v1(void **state);
int tree_setup_cpusetfs(void **state); /* the same in the cpuset file system at /dev/cpuset */
int tree_setup_unit(void **state);
int tree_teardown(void **state);

/* Start the fences of a new process; end them as a crash would; or both. */
void tree_start(Tree *t);
void tree_crash(Tree *t);
void tree_restart(Tree *t);

/* Writes a file of the tree, and creates its directories. */
void tree_write(const Tree *t, const char *path, const char *text);
/* Returns a mask that lives as long as the World. */
CpuMask tree_mask(const Tree *t, const char *list);
void tree_tick(Tree *t);

/* Assert the content of cpuset.cpus, and of cpuset.mems. */
void tree_assert_cpus(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
void tree_assert_memory(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
/* Restores all fences, which must leave none in the journal. Then cpuset.cpus must be `expected`. */
void tree_restore(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
/* Memory of each process on the two nodes, in MB. */
void tree_set_memory(Tree *t, uint64_t node_0, uint64_t node_1);
/* Asserts why the group is fenced, or is not. */
void tree_assert_why(const Tree *t, ActWhy expected);
/* The same after a tick. */
void tree_tick_to(Tree *t, ActWhy expected);
/* Asserts what fences_bound() shows; NULL: there is no fence. */
void tree_assert_bound(const Tree *t, const char *path, const char *expected);
