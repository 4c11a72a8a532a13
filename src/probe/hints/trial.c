/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The child of a process with threads may only make system calls: no allocation, no stdio. It writes its
 * findings to a page shared with the daemon.
 *
 * The trial needs a child because somebody may use the daemon's soft-dirty bits, and because a kernel that
 * behaves unexpectedly then harms only the child.
 *
 * The daemon may be killed while the child lives. So the child closes the descriptors it inherited, the lock
 * of the runtime directory among them, and ends with its parent. */

#include "probe/hints/trial.h"

#include "base/time.h"
#include "base/util.h"
#include "probe/hints/fault-ring.h"
#include "probe/hints/rings.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Samples of all pages fit into the ring. */
#define N_PAGES    1024U
#define RING_PAGES 16U

/* Bit of a pagemap entry. */
#define SOFT_DIRTY (1ULL << 55)

static void fail(HintTrial *trial, HintTrialOutcome outcome, int error)
{
    trial->outcome = outcome;
    trial->error = error;
    _exit(0);
}

static void touch(volatile char *pages, size_t page)
{
    for (size_t i = 0; i < N_PAGES; i++)
        pages[i * page]++;
}

static void need_soft_dirty(HintTrial *trial, const char *pages, size_t page)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entry = 0;
    ssize_t n =
        fd < 0 ? -1 : pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)pages / page * sizeof(entry)));

    if (n != (ssize_t)sizeof(entry))
        fail(trial, HINT_TRIAL_NO_PROC, n < 0 ? errno : 0); /* a short read sets no errno */
    (void)close(fd);
    /* The page has just been written. */
    if (!(entry & SOFT_DIRTY))
        fail(trial, HINT_TRIAL_NO_SOFT_DIRTY, 0);
}

static uint64_t protect(HintTrial *trial)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    uint64_t begin = time_now_usec();

    if (fd < 0 || write(fd, "4", 1) != 1)
        fail(trial, HINT_TRIAL_NO_PROC, errno);
    (void)close(fd);
    return time_now_usec() - begin;
}

static struct perf_event_mmap_page *open_ring(HintTrial *trial, size_t page)
{
    int fd = hint_rings_open_event(0, -1, -1, 1, false);
    void *p;

    if (fd == -EACCES || fd == -EPERM) {
        trial->exclude_kernel = true;
        fd = hint_rings_open_event(0, -1, -1, 1, true);
    }
    if (fd < 0)
        fail(trial, HINT_TRIAL_NO_EVENT, -fd);
    p = mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        fail(trial, HINT_TRIAL_NO_RING, errno);
    return p;
}

/* Empties the ring. Returns how many of its samples are of these pages. */
static size_t count(struct perf_event_mmap_page *head, const char *pages, size_t page)
{
    const FaultRing ring = {(const uint8_t *)head + page, RING_PAGES * page};
    uint64_t tail = head->data_tail, lost, end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE);
    FaultSample sample;
    size_t n = 0;
    int r;

    while ((r = fault_ring_next(&ring, end, &tail, &sample, &lost)) > 0)
        n += r == FAULT_RING_SAMPLE && sample.address - (uintptr_t)pages < (uint64_t)N_PAGES * page;
    __atomic_store_n(&head->data_tail, end, __ATOMIC_RELEASE);
    return n;
}

static void child(HintTrial *trial)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, N_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct perf_event_mmap_page *head;
    uint64_t begin, usec;

    if (pages == MAP_FAILED)
        fail(trial, HINT_TRIAL_NO_CHILD, errno);
    (void)madvise(pages, N_PAGES * page, MADV_NOHUGEPAGE);
    touch(pages, page);
    need_soft_dirty(trial, pages, page);
    head = open_ring(trial, page);
    (void)protect(trial);
    begin = time_now_usec();
    touch(pages, page);
    usec = time_now_usec() - begin;
    /* Some writes may be part of a larger fault, but not most of them. */
    if (count(head, pages, page) < N_PAGES / 2)
        fail(trial, HINT_TRIAL_NO_SAMPLES, 0);
    trial->fault_nsec = (uint32_t)MIN(usec * NSEC_PER_USEC / N_PAGES + 1, UINT32_MAX);
    /* The child's other pages take part of the time, so this is an upper bound. */
    trial->protect_nsec = (uint32_t)MIN(protect(trial) * NSEC_PER_USEC / N_PAGES + 1, UINT32_MAX);
    fail(trial, HINT_TRIAL_WORKS, 0);
}

void hint_trial_detach(pid_t parent)
{
    closefrom(STDERR_FILENO + 1);
    /* The second call detects a parent that ended before the first. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(0);
}

static void run(HintTrial *shared)
{
    pid_t parent = getpid(), pid = fork();
    int status;

    if (pid == 0) {
        hint_trial_detach(parent);
        child(shared);
    }
    if (pid < 0) {
        shared->error = errno;
        return;
    }
    (void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
}

void hint_trial(HintTrial *ret)
{
    HintTrial *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *ret = (HintTrial){.outcome = HINT_TRIAL_NO_CHILD};
    if (shared == MAP_FAILED) {
        ret->error = errno;
        return;
    }
    *shared = *ret;
    run(shared);
    *ret = *shared;
    (void)munmap(shared, sizeof(*shared));
}
