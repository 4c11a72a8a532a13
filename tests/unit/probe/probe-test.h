/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A Probe over a captured or synthetic tree, with a World of four CPUs in two nodes, and a policy that takes
 * the processes the test names. */

#include "../cpu-list.h"
#include "../machine.h"
#include "../temp-tree.h"
#include "base/root.h"
#include "probe/probe.h"
#include "world/world.h"

#include <fcntl.h>

#define SEC  1000000ULL
#define TICK 100000ULL

typedef struct Bench {
    int root_fd;
    char *path; /* of a synthetic tree; NULL otherwise */
    World *world;
    Probe *probe;
    uint64_t now;

    /* The policy. */
    ProbeDecision decision; /* for all but `except` */
    pid_t except;
    ProbeDecision except_decision;
    unsigned n_asked, n_asked_except;
    ProbeSubject last; /* about `except`; strings are copied below */
    char comm[64], exe[256], command_line[256], cgroup[256], unit[256], slice[256], environment[256];
} Bench;

static inline const char *bench_copy(char *to, size_t size, const char *from)
{
    if (!from)
        return NULL;
    (void)snprintf(to, size, "%s", from);
    return to;
}

static inline ProbeDecision bench_decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy)
{
    Bench *b = userdata;

    b->n_asked++;
    *ret_policy = 0;
    if (subject->pid != b->except)
        return b->decision;

    b->n_asked_except++;
    b->last = *subject;
    b->last.comm = bench_copy(b->comm, sizeof(b->comm), subject->comm);
    b->last.exe = bench_copy(b->exe, sizeof(b->exe), subject->exe);
    b->last.command_line = bench_copy(b->command_line, sizeof(b->command_line), subject->command_line);
    b->last.cgroup = bench_copy(b->cgroup, sizeof(b->cgroup), subject->cgroup);
    b->last.unit = bench_copy(b->unit, sizeof(b->unit), subject->unit);
    b->last.slice = bench_copy(b->slice, sizeof(b->slice), subject->slice);
    if (subject->environment)
        memcpy(b->environment, subject->environment, MIN(subject->environment_len, sizeof(b->environment)));
    return b->except_decision;
}

/* One group per process, without a home. */
static inline int bench_assign(void *userdata, World *world, Process *process, size_t policy)
{
    char key[16];
    int group;

    process->workload.i = 0;
    if (process->group.i >= 0)
        return 0;
    (void)snprintf(key, sizeof(key), "%d", (int)process->pid);
    group = world_add_group(world, process->workload, key);
    if (group < 0)
        return group;
    process->group.i = group;
    return 0;
}

static inline World *bench_world(void)
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine("numa:2 core:2 pu:1");
    World *world = NULL;

    assert_int_equal(world_new(topology, &world), 0);
    assert_int_equal(world_add_workload(world, "test", 0), 0);
    return world;
}

static inline void bench_start(Bench *b, const ProbeOptions *options)
{
    ProbeOptions o = options ? *options : (ProbeOptions){0};

    o.root_fd = b->root_fd;
    o.max_tasks = o.max_tasks ? o.max_tasks : 10000000; /* whatever else runs on this machine */
    b->world = bench_world();
    b->now = 10 * SEC;
    b->decision = PROBE_DECISION_TAKE;
    assert_int_equal(
        probe_new(&o, &(ProbeCallbacks){.decide = bench_decide, .assign = bench_assign, .userdata = b},
                  &b->probe),
        0);
}

static inline void bench_open(Bench *b, const char *tree, const ProbeOptions *options)
{
    *b = (Bench){.root_fd = test_fixture("probe", tree)};
    bench_start(b, options);
}

static inline void bench_check(Bench *b)
{
    CLEANUP_FREE char *what = NULL;

    if (world_check(b->world, &what) < 0)
        fail_msg("%s", what);
}

static inline void bench_discover(Bench *b)
{
    b->now += SEC;
    assert_int_equal(probe_discover(b->probe, b->world, b->now), 0);
    bench_check(b);
}

static inline void bench_sample(Bench *b)
{
    b->now += TICK;
    assert_int_equal(probe_sample(b->probe, b->world, b->now), 0);
    bench_check(b);
}

static inline void bench_close(Bench *b)
{
    b->probe = probe_free(b->probe);
    b->world = world_free(b->world);
    if (b->root_fd >= 0)
        (void)close(b->root_fd);
    if (b->path)
        test_tree_remove(b->path);
}

static inline Task *bench_task(Bench *b, pid_t pid, pid_t tid)
{
    Task *task = world_task_by_tid(b->world, pid, tid);

    if (!task)
        fail_msg("no task %d/%d", (int)pid, (int)tid);
    return task;
}

static inline Process *bench_process(Bench *b, pid_t pid)
{
    Process *process = world_process(b->world, pid);

    if (!process)
        fail_msg("no process %d", (int)pid);
    return process;
}

/* Synthetic trees */

__attribute__((format(printf, 3, 4))) static inline void put(Bench *b, const char *path, const char *format,
                                                             ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    (void)test_write(b->path, path, text);
}

static inline void take_away(Bench *b, const char *path)
{
    test_remove(test_path(b->path, path));
}

typedef struct FakeTask {
    pid_t pid, tid, parent;
    const char *comm, *cgroup, *mask;
    unsigned n_threads, start, flags, cpu, policy, ticks;
} FakeTask;

static inline void put_stat(Bench *b, const char *path, pid_t id, const FakeTask *t)
{
    put(b, path,
        "%d (%s) S %d 1 1 0 -1 %u 0 0 0 0 %u 0 0 0 20 0 %u 0 %u 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 17 %u 0 %u 0 0 0\n",
        (int)id, t->comm ? t->comm : "worker", (int)t->parent, t->flags, t->ticks,
        t->n_threads ? t->n_threads : 1, t->start ? t->start : (unsigned)t->pid * 10, t->cpu, t->policy);
}

static inline void put_status(Bench *b, const char *path, const FakeTask *t)
{
    put(b, path, "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t%s\n",
        t->mask ? t->mask : "0-3");
}

static inline void put_thread(Bench *b, const FakeTask *t)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/stat", (int)t->pid, (int)t->tid);
    put_stat(b, path, t->tid, t);
    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/status", (int)t->pid, (int)t->tid);
    put_status(b, path, t);
    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", (int)t->pid, (int)t->tid);
    put(b, path, "0 0 1\n");
}

/* The process and its first thread. */
static inline void put_process(Bench *b, const FakeTask *t)
{
    FakeTask first = *t;
    char path[128];

    (void)snprintf(path, sizeof(path), "proc/%d/stat", (int)t->pid);
    put_stat(b, path, t->pid, t);
    (void)snprintf(path, sizeof(path), "proc/%d/status", (int)t->pid);
    put_status(b, path, t);
    (void)snprintf(path, sizeof(path), "proc/%d/cgroup", (int)t->pid);
    put(b, path, "0::%s\n", t->cgroup ? t->cgroup : "/app.slice/app.service");
    first.tid = t->pid;
    put_thread(b, &first);
}

static inline void put_schedstat(Bench *b, pid_t pid, pid_t tid, uint64_t run_msec, uint64_t wait_msec)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    put(b, path, "%llu %llu 1\n", (unsigned long long)run_msec * 1000000,
        (unsigned long long)wait_msec * 1000000);
}

/* Sets the idle times of the four CPUs, in units of 10 ms. */
static inline void put_cpus(Bench *b, unsigned i0, unsigned i1, unsigned i2, unsigned i3)
{
    put(b, "proc/stat",
        "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 %u 0 0 0 0 0 0\ncpu1 0 0 0 %u 0 0 0 0 0 0\n"
        "cpu2 0 0 0 %u 0 0 0 0 0 0\ncpu3 0 0 0 %u 0 0 0 0 0 0\nintr 1\n",
        i0, i1, i2, i3);
}

/* A tree with four idle CPUs on control groups of version 2, without processes. */
static inline Bench bench_make(void)
{
    Bench bench = {.path = test_tree_new()}, *b = &bench;

    put_cpus(b, 1000, 1000, 1000, 1000);
    put(b, "proc/self/schedstat", "1 1 1\n");
    put(b, "sys/devices/system/cpu/online", "0-3\n");
    put(b, "sys/devices/system/node/online", "0-1\n");
    put(b, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    put(b, "sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
    put(b, "sys/fs/cgroup/app.slice/cpuset.cpus.effective", "0-3\n");
    b->root_fd = root_open(b->path);
    assert_true(b->root_fd >= 0);
    return bench;
}
