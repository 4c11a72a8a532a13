/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that stay open, in a synthetic tree: there, a removed file can still be read through an open descriptor. */

#include "probe/tasks/cgroup.h"
#include "probe/tasks/stat-files.h"

#include "probe-test.h"

static void expect_read(StatFiles *files, const Bench *b, pid_t pid, pid_t tid, const char *expected)
{
    char buf[64];
    ssize_t n = stat_files_read(files, b->root_fd, pid, tid, buf, sizeof(buf));

    if (!expected) {
        assert_int_equal(n, -ENOENT);
        return;
    }
    assert_int_equal(n, strlen(expected));
    assert_string_equal(buf, expected);
}

static void test_kept(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    CLEANUP(stat_files_done) StatFiles files;

    stat_files_init(&files);
    put(&b, "100/stat", "process\n");
    put(&b, "100/task/100/stat", "thread\n");
    expect_read(&files, &b, 100, 0, "process\n");
    expect_read(&files, &b, 100, 100, "thread\n");
    put(&b, "100/stat", "another\n");
    expect_read(&files, &b, 100, 0, "another\n");
    take_away(&b, "100");
    expect_read(&files, &b, 100, 0, "another\n");
    expect_read(&files, &b, 100, 100, "thread\n");
    expect_read(&files, &b, 101, 0, NULL);

    /* One of them is read now and then, the other is not. */
    for (unsigned i = 0; i < 9; i++) {
        stat_files_begin(&files);
        expect_read(&files, &b, 100, 0, "another\n");
    }
    expect_read(&files, &b, 100, 100, NULL);
}

/* The later file takes the place, and both are read correctly. */
static void test_same_place(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    CLEANUP(stat_files_done) StatFiles files;
    char path[32];

    stat_files_init(&files);
    (void)snprintf(path, sizeof(path), "%u/stat", 100 + STAT_FILES);
    put(&b, "100/stat", "one\n");
    put(&b, path, "other\n");
    expect_read(&files, &b, 100, 0, "one\n");
    expect_read(&files, &b, 100 + STAT_FILES, 0, "other\n");
    expect_read(&files, &b, 100, 0, "one\n");
    take_away(&b, path);
    expect_read(&files, &b, 100 + STAT_FILES, 0, NULL);
    expect_read(&files, &b, 100, 0, "one\n");
}

/* A reused PID: the descriptor says that its task is gone, and the path leads to the new task. */
static void test_used_again(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    CLEANUP(stat_files_done) StatFiles files;

    stat_files_init(&files);
    put(&b, "100/stat", "old\n");
    expect_read(&files, &b, 100, 0, "old\n");
    put(&b, "100/stat", "%s", ""); /* empty: no task has such a file */
    take_away(&b, "100/stat");
    put(&b, "100/stat", "new\n");
    expect_read(&files, &b, 100, 0, "new\n");
}

static void expect_cpuset(const Bench *b, const char *path, int *kept, const char *expected)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(cgroup_cpuset(b->root_fd, PROBE_CGROUP_V2, false, path, kept, set), 0);
    assert_list(set, expected);
}

static void test_cpuset(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    CLEANUP_CLOSE int kept = -1;

    put(&b, "sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
    put(&b, "sys/fs/cgroup/a/cpuset.cpus.effective", "0-1\n");
    expect_cpuset(&b, "/a/b", &kept, "0-1");
    assert_true(kept >= 0);
    put(&b, "sys/fs/cgroup/a/cpuset.cpus.effective", "1\n");
    expect_cpuset(&b, "/a/b", &kept, "1");
    /* It has no list any more, so the group above is used. */
    put(&b, "sys/fs/cgroup/a/cpuset.cpus.effective", "\n");
    expect_cpuset(&b, "/a/b", &kept, "0-3");
    take_away(&b, "sys/fs/cgroup/cpuset.cpus.effective");
    expect_cpuset(&b, "/a/b", &kept, "0-3");
}

TEST_MAIN(NULL, NULL, test_kept, test_same_place, test_used_again, test_cpuset)
