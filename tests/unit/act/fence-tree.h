/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A made-up tree of cgroups on a machine of two nodes with four CPUs each, a World whose one group is at home on the
 * first, and fences that write to the tree. */

#include "../cpu-list.h"
#include "act/fence/fence.h"
#include "act/journal/journal.h"

/* Where cgroups of either version are, below the root, and the cgroup of the unit x.service. */
#define TREE_V2   "sys/fs/cgroup/"
#define TREE_V1   "sys/fs/cgroup/cpuset/"
#define TREE_DEV  "dev/cpuset/"
#define TREE_UNIT "/system.slice/x.service"
/* Where its drop-ins are, up to the name of the property. */
#define TREE_DROPIN "run/systemd/system.control/x.service.d/50-"

/* Whose cpusets are changed, and which of them. */
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
    /* A service manager that answers when it is told to, or does at once what it is asked for. */
    bool obeys;
    bool keeps_some; /* refuses a list of none, as the kernel does where something runs */
    char asked[512];
    int result[2]; /* of the last list of CPUs, and of nodes */
} Tree;

/* cmocka's set-up: processes 100 and 101 in a cpuset of version 1, /a, and a policy that wishes for cpusets; or
 * process 100 in the unit, and a policy that wishes for nothing in particular. */
int tree_setup_v1(void **state);
int tree_setup_cpusetfs(void **state); /* in the cpuset file system at /dev/cpuset */
int tree_setup_unit(void **state);
int tree_teardown(void **state);

/* The fences of a new process, after one that ended without a word. */
void tree_start(Tree *t);
void tree_crash(Tree *t);
void tree_restart(Tree *t); /* both */

/* Writes a file of the tree, and makes the directories above it. */
void tree_write(const Tree *t, const char *path, const char *text);
/* A mask that lives as long as the World. */
CpuMask tree_mask(const Tree *t, const char *list);
void tree_tick(Tree *t);

/* What stands in cpuset.cpus. */
void tree_assert_cpus(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
/* The same of cpuset.mems. */
void tree_assert_memory(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
/* Puts all fences back, which must leave nothing in the journal; this stands in cpuset.cpus then. */
void tree_restore(const Tree *t, ActFenceKind kind, const char *path, const char *expected);
/* How many MB each process has on each of the two nodes. */
void tree_set_memory(Tree *t, uint64_t node_0, uint64_t node_1);
/* Why the group is fenced, or is not. */
void tree_assert_why(const Tree *t, ActWhy expected);
/* After a tick. */
void tree_tick_to(Tree *t, ActWhy expected);
/* What fences_bound() shows; NULL: that there is no fence. */
void tree_assert_bound(const Tree *t, const char *path, const char *expected);
