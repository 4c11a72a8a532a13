/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The file of assigned processes follows them also if it could not be written when they changed. */

#include "../temp-tree.h"
#include "daemon/manager/manager.h"

typedef struct Bench {
    char *tree;
    Log log;
    Manager manager;
} Bench;

/* A daemon that remembers a process, which has ended. */
static void make(Bench *b)
{
    ProbeOptions options = {.max_tasks = 1};

    *b = (Bench){.tree = test_tree_new(), .log = {.level = LOG_EMERG}};
    (void)test_write(b->tree, "proc/stat", "cpu0 0 0 0 0 0 0 0 0 0 0\n");
    b->manager.log = &b->log;
    b->manager.options.runtime_directory = "run";
    b->manager.root_fd = root_open(b->tree);
    b->manager.runtime_fd = root_open(test_mkdir(b->tree, "run"));
    assert_true(b->manager.root_fd >= 0 && b->manager.runtime_fd >= 0);
    options.root_fd = b->manager.root_fd;
    assert_int_equal(probe_new(&options, &(ProbeCallbacks){0}, &b->manager.probe), 0);
    b->manager.assigned = assignments_new();
    assert_non_null(b->manager.assigned);
    assert_int_equal(
        assignments_set(b->manager.assigned, &(Assignment){.pid = 100, .start_ticks = 1, .policy = "a"}), 0);
    (void)test_write(b->tree, "run/assigned", "process pid=100 start=1 policy=a\n");
}

static void done(Bench *b)
{
    assignments_free(b->manager.assigned);
    probe_free(b->manager.probe);
    assert_int_equal(close(b->manager.runtime_fd), 0);
    assert_int_equal(close(b->manager.root_fd), 0);
    test_tree_remove(b->tree);
}

static off_t size_of(const Bench *b)
{
    struct stat st;

    assert_int_equal(stat(test_path(b->tree, "run/assigned"), &st), 0);
    return st.st_size;
}

static void test_written_later(void **state)
{
    Bench b;

    make(&b);
    (void)test_mkdir(b.tree, "run/assigned.new"); /* in the way */
    for (int i = 0; i < 2; i++) {
        manager_assignments_keep(&b.manager);
        assert_int_equal(assignments_count(b.manager.assigned), 0);
        assert_int_not_equal(size_of(&b), 0);
    }
    test_remove(test_path(b.tree, "run/assigned.new"));
    manager_assignments_keep(&b.manager);
    assert_int_equal(size_of(&b), 0);
    /* Nothing more is to be written. */
    test_remove(test_path(b.tree, "run/assigned"));
    manager_assignments_keep(&b.manager);
    assert_int_not_equal(access(test_path(b.tree, "run/assigned"), F_OK), 0);
    done(&b);
}

static void assert_text(const Bench *b, const char *name, const char *expected)
{
    CLEANUP_FREE char *text = NULL;
    size_t len;

    assert_int_equal(root_read_alloc(b->manager.runtime_fd, name, 4096, &text, &len), 0);
    assert_string_equal(text, expected);
}

/* What cannot be read is kept beside what replaces it, also if an earlier one was. */
static void test_kept_aside(void **state)
{
    static const char *const damaged[] = {
        "process pid=100 start=1 policy=\"a\"\nprocess pid=101 sta",
        "nonsense\n",
    };
    Bench b;

    make(&b);
    for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
        (void)test_write(b.tree, "run/assigned", damaged[i]);
        for (int again = 0; again < 2; again++)
            assert_int_equal(manager_assignments_load(&b.manager), 0);
        assert_text(&b, "assigned", damaged[i]);
        assignments_touch(b.manager.assigned);
        manager_assignments_keep(&b.manager);
        assert_text(&b, "assigned", "");
        assert_text(&b, "assigned.corrupt", damaged[i]);
    }
    done(&b);
}

static void test_cannot_be_kept(void **state)
{
    Bench b;

    make(&b);
    (void)test_write(b.tree, "run/assigned", "nonsense\n");
    (void)test_mkdir(b.tree, "run/assigned.corrupt/in-the-way");
    assert_true(manager_assignments_load(&b.manager) < 0);
    assert_text(&b, "assigned", "nonsense\n");
    done(&b);
}

TEST_MAIN(NULL, NULL, test_written_later, test_kept_aside, test_cannot_be_kept)
