/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which runtime directories are believed, and that there is one daemon on each. */

#include "base/util.h"
#include "daemon-test.h"
#include "daemon/runtime-dir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char base[64];

static int setup(void **state)
{
    (void)strcpy(base, "/tmp/test-runtime-XXXXXX");
    return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/run/lock", base);
    (void)remove(path);
    (void)snprintf(path, sizeof(path), "%s/run", base);
    (void)remove(path);
    return rmdir(base);
}

static int open_run(char *path, size_t size, char **ret_error)
{
    (void)snprintf(path, size, "%s/run", base);
    return runtime_dir_open(path, ret_error);
}

static void test_makes_and_reuses(void **state)
{
    CLEANUP_FREE char *error = NULL;
    char path[128];
    struct stat st;

    for (int i = 0; i < 2; i++) {
        CLEANUP_CLOSE int fd = open_run(path, sizeof(path), &error);

        assert_true(fd >= 0);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07022, 0);
}

static void test_refuses_what_others_may_write(void **state)
{
    CLEANUP_FREE char *error = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/run", base);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(open_run(path, sizeof(path), &error), -EPERM);
    assert_non_null(strstr(error, path));
}

static void test_refuses_a_link(void **state)
{
    CLEANUP_FREE char *error = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/run", base);
    assert_int_equal(symlink("/tmp", path), 0);
    assert_true(open_run(path, sizeof(path), &error) < 0);
    assert_non_null(error);
}

static void test_refuses_a_file_and_a_missing_parent(void **state)
{
    CLEANUP_FREE char *error = NULL, *error2 = NULL;
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/run", base);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_true(open_run(path, sizeof(path), &error) < 0);
    assert_int_equal(runtime_dir_open("/nonexistent/a/b", &error2), -ENOENT);
    assert_non_null(strstr(error2, "/nonexistent/a/b"));
}

static void test_one_lock(void **state)
{
    CLEANUP_FREE char *error = NULL, *unused = NULL;
    char path[128], pid[32];
    CLEANUP_CLOSE int fd = open_run(path, sizeof(path), &unused);
    int lock = runtime_dir_lock(fd, path, &unused);

    assert_true(lock >= 0);
    assert_int_equal(runtime_dir_lock(fd, path, &error), -EBUSY);
    (void)snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
    assert_non_null(strstr(error, pid));

    assert_int_equal(close(lock), 0); /* as when its holder dies */
    lock = runtime_dir_lock(fd, path, &unused);
    assert_true(lock >= 0);
    assert_int_equal(close(lock), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_makes_and_reuses), TEST(test_refuses_what_others_may_write),
        TEST(test_refuses_a_link),   TEST(test_refuses_a_file_and_a_missing_parent),
        TEST(test_one_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
