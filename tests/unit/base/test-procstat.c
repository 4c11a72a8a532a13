/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/root.h"
#include "base/util.h"
#include "kernel/procstat.h"
#include "unit-test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define TAIL                                                                      \
    " S 1 22 33 0 -1 4194560 100 200 3 4 55 66 7 8 20 -5 9 0 424242 1000000 345 " \
    "18446744073709551615 1 1 0 0 0 0 671173123 4096 1260 0 0 0 17 3 0 6 0 0 0 0 0 0 0 0 0 0 0\n"

static void test_fields(void **state)
{
    ProcStat s;

    assert_int_equal(procstat_parse("4711 (bash)" TAIL, &s), 0);
    assert_int_equal(s.pid, 4711);
    assert_string_equal(s.comm, "bash");
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.ppid, 1);
    assert_int_equal(s.pgrp, 22);
    assert_int_equal(s.session, 33);
    assert_int_equal(s.flags, 4194560);
    assert_int_equal(s.utime_ticks, 55);
    assert_int_equal(s.stime_ticks, 66);
    assert_int_equal(s.num_threads, 9);
    assert_int_equal(s.start_ticks, 424242);
    assert_int_equal(s.rss_pages, 345);
    assert_int_equal(s.processor, 3);
    assert_int_equal(s.policy, 6);
}

static void test_names(void **state)
{
    ProcStat s;

    assert_int_equal(procstat_parse("1 ()" TAIL, &s), 0);
    assert_string_equal(s.comm, "");
    assert_int_equal(procstat_parse("1 (a) S 1 (b) \n(\xc3\xa9)" TAIL, &s), 0);
    assert_string_equal(s.comm, "a) S 1 (b) \n(\xc3\xa9");
    assert_int_equal(s.start_ticks, 424242);
    assert_int_equal(procstat_parse("1 (kworker/u16:1-events_unbound)" TAIL, &s), 0);
    assert_string_equal(s.comm, "kworker/u16:1-e");
}

/* What the kernel prints for a task whose signal handlers are already gone. */
static void test_exiting(void **state)
{
    ProcStat s;

    assert_int_equal(
        procstat_parse("5 (x) X 0 -1 -1 0 -1 4194564 0 0 0 0 0 0 0 0 20 0 0 0 77 0 0 0 0 0 0 0 0 0 0 0 "
                       "0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                       &s),
        0);
    assert_int_equal(s.pgrp, -1);
    assert_int_equal(s.session, -1);
    assert_int_equal(s.start_ticks, 77);
}

static void test_garbage(void **state)
{
    static const char *const texts[] = {
        "",
        "1",
        "1 (a",
        "1 a)",
        ")(",
        "x (a)" TAIL,
        "99999999999 (a)" TAIL,
        "1 (a) S",
        "1 (a) S 1 2 3 4 5 6 7",
        "1 (a)  S 1" TAIL,
        "1 (a) S 1 x" TAIL,
        "1 (a) S -2 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0\n",
        "1 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 99999999999999999999 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        ProcStat s = {.pid = 12};

        assert_int_equal(procstat_parse(texts[i], &s), -EINVAL);
        assert_int_equal(s.pid, 12);
    }
}

static void test_self(void **state)
{
    CLEANUP_CLOSE int root = root_open("/");
    char text[PROCSTAT_TEXT_SIZE];
    ProcStat s;

    assert_true(root >= 0);
    assert_true(root_read(root, "proc/self/stat", text, sizeof(text)) > 0);
    assert_int_equal(procstat_parse(text, &s), 0);
    assert_int_equal(s.pid, getpid());
    assert_int_equal(s.ppid, getppid());
    assert_int_equal(s.pgrp, getpgrp());
    assert_int_equal(s.session, getsid(0));
    assert_int_equal(s.num_threads, 1);
}

/* A lack of descriptors, one for each of the directory, the thread and its file, does not look like threads that have
 * ended. */
static void test_no_descriptors(void **state)
{
    CLEANUP_CLOSE int self = root_open("/proc/self");
    struct rlimit limit, few;
    ProcStat stat;
    int next = fcntl(self, F_DUPFD_CLOEXEC, 0), fd = -1;

    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    for (int n = 0; n <= 3; n++) {
        few.rlim_cur = (rlim_t)(next + n);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        fd = procstat_open_living(self, &stat);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (n < 3)
            assert_int_equal(fd, -EMFILE);
    }
    assert_true(fd >= 0);
    assert_int_equal(stat.pid, getpid());
    (void)close(fd);
}

TEST_MAIN(NULL, NULL, test_fields, test_names, test_exiting, test_garbage, test_self, test_no_descriptors)
