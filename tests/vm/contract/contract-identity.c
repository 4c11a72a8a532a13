/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What identifies tasks: PIDs, start times, and handles of their directories. Relied on by
 * act/masks/ops-affinity.c, act/masks/passage.c and probe (readers, subjects, discovery). */

#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define FIRST_AGAIN 300 /* the PID after the largest one */

static uint64_t boot_ticks(void)
{
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec ts;

    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
    return (uint64_t)ts.tv_sec * hz + (uint64_t)ts.tv_nsec / (UINT64_C(1000000000) / hz);
}

/* Start times are CLOCK_BOOTTIME in units of USER_HZ, rounded down. */
static void test_start_time(void **state)
{
    assert_int_equal(sysconf(_SC_CLK_TCK), 100);
    for (unsigned i = 0; i < 50; i++) {
        uint64_t before = boot_ticks(), after;
        TaskStat stat;
        pid_t pid = child_sleep(mask_get(0));

        after = boot_ticks();
        assert_true(task_stat(pid, &stat));
        assert_true(before <= stat.start_ticks && stat.start_ticks <= after);
        child_end(pid);
    }
}

/* The start time is that of the fork. exec does not change it. */
static void exec_main(void *userdata)
{
    (void)execl("/bin/sleep", "sleep", "1000", NULL);
}

static bool is_sleep(void *userdata)
{
    const char *text = file_read("/proc/%d/comm", *(pid_t *)userdata);

    return text && strcmp(text, "sleep\n") == 0;
}

static void test_exec_keeps_start(void **state)
{
    pid_t pid = child_start(exec_main, NULL);
    TaskStat before, after;

    assert_true(task_stat(pid, &before));
    assert_true(eventually(is_sleep, &pid));
    assert_true(task_stat(pid, &after));
    assert_int_equal(before.start_ticks, after.start_ticks);
}

/* The last word of /proc/loadavg is the last PID that was assigned. */
static pid_t last_number(void)
{
    const char *text = file_read("/proc/loadavg"), *word = text ? strrchr(text, ' ') : NULL;

    return word ? (pid_t)strtol(word + 1, NULL, 10) : -1;
}

static void test_last_number(void **state)
{
    pid_t before = last_number(), pid = child_sleep(mask_get(0)), after = last_number();

    if (after < before)
        contract_skip("the numbers began anew just now");
    assert_true(before < pid && pid <= after);
}

/* PIDs wrap around, in a PID namespace of its own */

typedef struct Round {
    volatile int error;
    volatile pid_t ahead, last_ahead, max, numbers[8], last_round;
} Round;

static pid_t number_of_a_child(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    return pid;
}

static void go_round(Round *round)
{
    char text[16];

    round->ahead = number_of_a_child();
    round->last_ahead = last_number();
    round->max = (pid_t)file_number("/proc/sys/kernel/pid_max"); /* a namespace may have its own */
    (void)snprintf(text, sizeof(text), "%d", round->max - 3);
    round->error = file_write(text, "/proc/sys/kernel/ns_last_pid");
    for (size_t i = 0; round->error == 0 && i < ARRAY_SIZE(round->numbers); i++)
        round->numbers[i] = number_of_a_child();
    round->last_round = last_number();
}

static void round_main(void *userdata)
{
    Round *round = userdata;
    pid_t pid;

    if (unshare(CLONE_NEWPID) < 0) {
        round->error = -errno;
        return;
    }
    pid = fork();
    if (pid == 0) {
        go_round(round);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
}

/* PIDs ascend, and start again at 300. */
static void test_numbers_ascend(void **state)
{
    Round *round = shared_alloc(sizeof(*round));
    pid_t pid = child_start(round_main, round);

    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (round->error)
        contract_skip("numbers cannot be set in a namespace of our own: %s", strerror(-round->error));
    assert_int_equal(round->ahead, 2);
    assert_int_equal(round->last_ahead, 2);
    assert_int_equal(round->numbers[0], round->max - 2);
    assert_int_equal(round->numbers[1], round->max - 1);
    for (int i = 2; i < (int)ARRAY_SIZE(round->numbers); i++)
        assert_int_equal(round->numbers[i], FIRST_AGAIN + i - 2);
    assert_int_equal(round->last_round, round->numbers[ARRAY_SIZE(round->numbers) - 1]);
}

/*
 * Handles
 */

static ssize_t read_at(int fd, const char *name, char *buf, size_t size)
{
    int file = openat(fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (file < 0)
        return -errno;
    n = read(file, buf, size);
    n = n < 0 ? -errno : n;
    (void)close(file);
    return n;
}

/* An open file stays up to date when it is read from its start again. It fails with ESRCH when its task is
 * gone, and so does a handle of the directory (on some kernels with ENOENT). */
static void test_handles(void **state)
{
    pid_t pid = child_spin(mask_get(0));
    char path[64], first[128] = "", second[128] = "";
    int directory, file;

    (void)snprintf(path, sizeof(path), "/proc/%d", pid);
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory >= 0);
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
        file = open(path, O_RDONLY | O_CLOEXEC);
    }
    assert_true(file >= 0);

    assert_true(pread(file, first, sizeof(first) - 1, 0) > 0);
    do
        assert_true(pread(file, second, sizeof(second) - 1, 0) > 0);
    while (strcmp(first, second) == 0);

    child_end(pid);
    assert_int_equal(pread(file, first, sizeof(first), 0), -1);
    assert_int_equal(errno, ESRCH);
    {
        ssize_t r = read_at(directory, "stat", first, sizeof(first));

        assert_true(r == -ESRCH || r == -ENOENT);
    }
    (void)close(file);
    (void)close(directory);
}

/* /proc lists processes in ascending order, so a reader that reads it piece by piece still meets the
 * successor of a process. */
static void test_listing_ascends(void **state)
{
    char buf[512];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n, last = 0;

    assert_true(fd >= 0);
    while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
        for (long at = 0; at < n;) {
            const unsigned char *entry = (const unsigned char *)buf + at;
            const char *name = (const char *)entry + 19;

            if (*name >= '1' && *name <= '9') {
                assert_true(strtol(name, NULL, 10) > last);
                last = strtol(name, NULL, 10);
            }
            at += entry[16] | entry[17] << 8;
        }
    assert_int_equal(n, 0);
    assert_true(last > 0);
    (void)close(fd);
}

static void *thread_main(void *userdata)
{
    *(volatile pid_t *)userdata = gettid();
    for (;;)
        (void)pause();
    return NULL;
}

static void threads_main(void *userdata)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_main, userdata) == 0)
        (void)pthread_join(thread, NULL);
}

static bool has_number(void *userdata)
{
    return *(volatile pid_t *)userdata > 0;
}

static bool is_listed(pid_t number)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    bool found = false;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        found |= strtol(entry->d_name, NULL, 10) == number;
    (void)closedir(dir);
    return found;
}

/* A thread that leads no process also has a directory in /proc, which is not listed. TIDs and PIDs are
 * assigned from one sequence. */
static void test_threads_have_directories(void **state)
{
    volatile pid_t *tid = shared_alloc(sizeof(*tid));
    pid_t pid = child_start(threads_main, (void *)tid);
    int64_t leader = 0;
    TaskStat stat;

    assert_true(eventually(has_number, (void *)tid));
    assert_true(*tid > pid && *tid <= last_number());
    assert_true(task_stat(*tid, &stat));
    assert_int_equal(stat.parent, getpid());
    assert_true(text_number(file_read("/proc/%d/status", *tid), "Tgid", &leader));
    assert_int_equal(leader, pid);
    assert_true(is_listed(pid));
    assert_false(is_listed(*tid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_start_time, children_teardown),
        cmocka_unit_test_teardown(test_exec_keeps_start, children_teardown),
        cmocka_unit_test_teardown(test_last_number, children_teardown),
        cmocka_unit_test_teardown(test_numbers_ascend, children_teardown),
        cmocka_unit_test_teardown(test_handles, children_teardown),
        cmocka_unit_test(test_listing_ascends),
        cmocka_unit_test_teardown(test_threads_have_directories, children_teardown),
    };

    return cmocka_run_group_tests_name("contract-identity", tests, NULL, NULL);
}
