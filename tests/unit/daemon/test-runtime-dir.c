/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which runtime directories are trusted, that each has one daemon, and that one daemon places on a host. */

#include "../temp-tree.h"
#include "base/util.h"
#include "daemon/runtime-dir.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOST_PATH_LEN 4095U /* PATH_MAX, without the NUL */

static char *base;
static char path[128]; /* of a directory in it that does not exist yet */

static int setup(void **state)
{
    base = test_tree_new();
    (void)snprintf(path, sizeof(path), "%s/run", base);
    return 0;
}

static int teardown(void **state)
{
    test_tree_remove(base);
    return 0;
}

static void test_makes_and_reuses(void **state)
{
    CLEANUP_FREE char *error = NULL;
    struct stat st;

    for (int i = 0; i < 2; i++) {
        CLEANUP_CLOSE int fd = runtime_dir_open(path, &error);

        assert_true(fd >= 0);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07022, 0);
}

static void test_refuses_what_others_may_write(void **state)
{
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(runtime_dir_open(path, &error), -EPERM);
    assert_non_null(strstr(error, path));
}

static void test_refuses_a_link(void **state)
{
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(symlink("/tmp", path), 0);
    assert_true(runtime_dir_open(path, &error) < 0);
    assert_non_null(strstr(error, "is a link: expected a directory"));
}

static void test_refuses_a_file_and_a_missing_parent(void **state)
{
    CLEANUP_FREE char *error = NULL, *error2 = NULL;

    (void)test_write(base, "run", "");
    assert_true(runtime_dir_open(path, &error) < 0);
    assert_int_equal(runtime_dir_open("/nonexistent/a/b", &error2), -ENOENT);
    assert_non_null(strstr(error2, "/nonexistent/a/b"));
}

static void test_one_lock(void **state)
{
    CLEANUP_FREE char *error = NULL, *unused = NULL;
    char pid[32];
    CLEANUP_CLOSE int fd = runtime_dir_open(path, &unused);
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

static void test_find_makes_nothing(void **state)
{
    CLEANUP_FREE char *error = NULL;
    int fd;

    assert_int_equal(runtime_dir_find(path, &error), -ENOENT);
    assert_null(error);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mkdir(path, 0755), 0);
    fd = runtime_dir_find(path, &error);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(runtime_dir_find(path, &error), -EPERM);
}

/* Only those who can open a lock can hold it. */
static void test_lock_is_for_nobody_else(void **state)
{
    CLEANUP_FREE char *error = NULL;
    const char *file;
    CLEANUP_CLOSE int fd = runtime_dir_open(path, &error);
    mode_t before = umask(0);
    struct stat st;
    int lock;

    file = test_write(path, "lock", "");
    assert_int_equal(chmod(file, 0666), 0);
    lock = runtime_dir_lock(fd, path, &error);
    assert_true(lock >= 0);
    assert_int_equal(fstat(lock, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(close(lock), 0);
    lock = host_lock_take(path, &error);
    assert_true(lock >= 0);
    assert_int_equal(fstat(lock, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(close(lock), 0);
    (void)umask(before);
}

static void test_one_on_the_host(void **state)
{
    CLEANUP_FREE char *error = NULL, *error2 = NULL, *unused = NULL, *last = NULL;
    char who[64];
    int lock, pass, pass2;

    assert_int_equal(host_lock_pass(path, &unused), -ENOENT);
    assert_int_equal(access(path, F_OK), -1);
    lock = host_lock_take(path, &unused);
    assert_true(lock >= 0);
    host_lock_sign(lock, "/elsewhere");
    assert_int_equal(host_lock_take(path, &error), -EBUSY);
    (void)snprintf(who, sizeof(who), "(pid %d, on /elsewhere)", (int)getpid());
    assert_non_null(strstr(error, who));
    assert_int_equal(host_lock_pass(path, &error2), -EBUSY);
    assert_string_equal(error, error2);
    assert_int_equal(close(lock), 0);

    pass = host_lock_pass(path, &unused);
    pass2 = host_lock_pass(path, &unused);
    assert_true(pass >= 0 && pass2 >= 0);
    free(error);
    assert_int_equal(host_lock_take(path, &error), -EBUSY);
    assert_int_equal(close(pass), 0);
    assert_int_equal(close(pass2), 0);
    lock = host_lock_take(path, &unused);
    assert_true(lock >= 0);
    last = host_lock_last(lock);
    assert_string_equal(last, "/elsewhere");
    assert_int_equal(close(lock), 0);
    assert_null(unused);
}

static void check_last(int lock, const char *expected)
{
    CLEANUP_FREE char *last = host_lock_last(lock);

    assert_string_equal(last, expected);
}

/* What the last holder has written is read back in whole lines, and stays if nothing else can be written. */
static void test_last_of_the_host(void **state)
{
    static const char *const odd[] = {"", "x", "1", "1\n", "1\n/a"};
    CLEANUP_FREE char *unused = NULL, *path_max = malloc(HOST_PATH_LEN + 1);
    struct rlimit limit, none;
    int lock = host_lock_take(path, &unused);

    assert_true(lock >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        assert_int_equal(ftruncate(lock, 0), 0);
        assert_int_equal(pwrite(lock, odd[i], strlen(odd[i]), 0), strlen(odd[i]));
        check_last(lock, "");
    }
    memset(path_max, '/', HOST_PATH_LEN);
    path_max[HOST_PATH_LEN] = '\0';
    host_lock_sign(lock, path_max);
    check_last(lock, path_max);
    host_lock_sign(lock, "/one\n/two");
    check_last(lock, "/one\n/two");

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    host_lock_sign(lock, "/three");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    check_last(lock, "/one\n/two");
    assert_int_equal(close(lock), 0);
}

/* What a former holder has written identifies no process. */
static void test_holder_is_gone(void **state)
{
    static const char *const odd[] = {"", "x", "1", "-1\n/a", "99999999\n/gone\n"};
    CLEANUP_FREE char *unused = NULL;
    int lock;

    lock = host_lock_take(path, &unused);
    assert_true(lock >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        CLEANUP_FREE char *error = NULL;

        assert_int_equal(ftruncate(lock, 0), 0);
        assert_int_equal(pwrite(lock, odd[i], strlen(odd[i]), 0), strlen(odd[i]));
        assert_int_equal(host_lock_take(path, &error), -EBUSY);
        assert_string_equal(error, "another numaplaced places tasks on this host, or puts them back");
    }
    assert_int_equal(close(lock), 0);
}

TEST_MAIN(setup, teardown, test_makes_and_reuses, test_refuses_what_others_may_write, test_refuses_a_link,
          test_refuses_a_file_and_a_missing_parent, test_one_lock, test_find_makes_nothing,
          test_lock_is_for_nobody_else, test_one_on_the_host, test_last_of_the_host, test_holder_is_gone)
