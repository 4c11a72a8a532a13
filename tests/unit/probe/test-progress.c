/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counting threads with the real perf_event_open(2), by software events, which every kernel has. */

#include "probe-test.h"

#include "probe/progress.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define N_PAGES 200U

/* First touches of pages stand in for instructions. Those that are read from a disk, of which there are none,
 * stand in for cycles, and the others for misses. */
static const ProgressEvents faults = {
    .type = PERF_TYPE_SOFTWARE,
    .instructions = PERF_COUNT_SW_PAGE_FAULTS,
    .cycles = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
    .misses = PERF_COUNT_SW_PAGE_FAULTS_MIN,
};

static size_t n_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void work(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *pages =
        mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED);
    (void)madvise((void *)pages, N_PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < N_PAGES; i++)
        pages[i * page] = 1;
    assert_int_equal(munmap((void *)pages, N_PAGES * page), 0);
}

static void test_counts(void **state)
{
    CLEANUP(progress_free_p) Progress *progress = NULL;
    const pid_t tids[] = {getpid(), INT32_MAX}; /* the second does not exist */
    size_t before = n_open();
    ProgressCounts first, second;
    int r = progress_begin(&faults, tids, 2, &progress);

    if (r == -EACCES || r == -EPERM || r == -ENOSYS)
        skip(); /* a sandbox that forbids it to all */
    assert_int_equal(r, 0);
    assert_int_equal(n_open(), before + 3);
    work();
    first = progress_read(progress);
    assert_int_equal(first.n_threads, 1);
    assert_in_range(first.instructions, N_PAGES, N_PAGES + 100);
    work();
    second = progress_read(progress);
    assert_in_range(second.instructions, first.instructions + N_PAGES, first.instructions + N_PAGES + 100);
    assert_true(second.cycles < N_PAGES);
    assert_true(second.misses_known);
    assert_int_equal(second.misses, second.instructions - second.cycles);
    assert_true(first.run_usec > 0);
    assert_true(second.run_usec > first.run_usec);
    progress = progress_free(progress);
    assert_int_equal(n_open(), before);
}

/* A processor that does not count misses. */
static void test_no_misses(void **state)
{
    ProgressEvents events = faults;
    CLEANUP(progress_free_p) Progress *progress = NULL;
    const pid_t self = getpid();
    size_t before = n_open();
    ProgressCounts counts;
    int r;

    events.misses = 9999;
    r = progress_begin(&events, &self, 1, &progress);
    if (r == -EACCES || r == -EPERM || r == -ENOSYS)
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(n_open(), before + 2);
    work();
    counts = progress_read(progress);
    assert_int_equal(counts.n_threads, 1);
    assert_in_range(counts.instructions, N_PAGES, N_PAGES + 100);
    assert_false(counts.misses_known);
    assert_int_equal(counts.misses, 0);
}

/* That there are too few descriptors says nothing of what the processor counts. */
static void test_no_descriptors(void **state)
{
    CLEANUP(progress_free_p) Progress *progress = NULL;
    const pid_t self = getpid();
    size_t before = n_open();
    struct rlimit limit, two;
    int fds[2], r = progress_begin(&faults, &self, 1, &progress);

    if (r == -EACCES || r == -EPERM || r == -ENOSYS)
        skip();
    progress = progress_free(progress);
    assert_int_equal(pipe(fds), 0); /* the two lowest free ones */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    two = limit;
    two.rlim_cur = (rlim_t)fds[1] + 1;
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &two), 0);
    r = progress_begin(&faults, &self, 1, &progress);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, -EMFILE);
    assert_int_equal(n_open(), before);
}

static void test_why_not(void **state)
{
    static const ProgressEvents none = {.type = PERF_TYPE_SOFTWARE, .instructions = 9999, .cycles = 9999};
    CLEANUP(progress_free_p) Progress *progress = NULL;
    const pid_t gone = INT32_MAX, self = getpid();
    size_t before = n_open();
    int r;

    /* Without a thread to count, as of a process that sleeps. */
    assert_int_equal(progress_begin(&faults, &self, 0, &progress), -ESRCH);
    assert_non_null(strstr(progress_explain(ESRCH), "none of its threads ran"));
    r = progress_begin(&faults, &gone, 1, &progress);
    if (r == -EACCES || r == -EPERM || r == -ENOSYS)
        skip();
    assert_int_equal(r, -ESRCH);
    assert_int_equal(progress_begin(&none, &self, 1, &progress), -ENOENT);
    assert_null(progress);
    assert_int_equal(n_open(), before);
}

TEST_MAIN(NULL, NULL, test_counts, test_no_misses, test_no_descriptors, test_why_not)
