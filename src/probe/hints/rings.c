/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rings are sorted by thread or CPU. They wake nobody: they are read when a round ends.
 *
 * A full ring loses samples at the end of a round, so the blocks touched last would never be seen. A longer
 * sampling period thins out small pages evenly instead. It is quadrupled after a round with losses, and
 * halved when the fullest ring was used to less than an eighth. Huge pages, with one fault each, are thinned
 * out too; a process with so many small pages has few of these.
 *
 * What it does badly: inherited events (one for all threads, on each CPU) would need few descriptors, but
 * only threads created later inherit them. */

#include "probe/hints/rings.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define DATA_PAGES_MIN 4U

typedef struct Ring {
    int32_t id; /* tid or CPU */
    int fd;
    struct perf_event_mmap_page *head;
    size_t data_bytes;
} Ring;

struct HintRings {
    HintRingsOptions options;
    HintRingsScope scope;
    Ring *rings; /* ascending id */
    size_t n_rings, capacity;
    uint32_t next_cpu; /* the first without a ring yet */
    size_t page_bytes, data_pages;
    uint32_t period;
};

int hint_rings_open_event(pid_t tid, int cpu, int cgroup_fd, uint32_t period, bool exclude_kernel)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = period,
        .sample_type = FAULT_RING_SAMPLE_TYPE,
        .exclude_kernel = exclude_kernel,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1, /* at the end of the ring: nobody waits */
        .wakeup_watermark = UINT32_MAX,
    };
    unsigned long flags = PERF_FLAG_FD_CLOEXEC;
    long fd;

    if (cgroup_fd >= 0)
        flags |= PERF_FLAG_PID_CGROUP;
    fd = syscall(SYS_perf_event_open, &attr, cgroup_fd >= 0 ? cgroup_fd : tid, cpu, -1, flags);
    return fd < 0 ? -errno : (int)fd;
}

int hint_rings_new(const HintRingsOptions *options, HintRings **ret)
{
    HintRings *rings = calloc(1, sizeof(*rings));

    if (!rings)
        return -ENOMEM;
    rings->options = *options;
    if (rings->options.max_threads == 0)
        rings->options.max_threads = MAX(HINT_RINGS_THREADS, HINT_RINGS_PER_CPU * options->n_cpus);
    rings->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    rings->data_pages = HINT_RING_DATA_PAGES;
    rings->period = 1;
    *ret = rings;
    return 0;
}

static void ring_close(const HintRings *rings, Ring *ring)
{
    if (ring->head)
        (void)munmap(ring->head, ring->data_bytes + rings->page_bytes);
    (void)close(ring->fd);
}

static void close_all(HintRings *rings)
{
    for (size_t i = 0; i < rings->n_rings; i++)
        ring_close(rings, &rings->rings[i]);
    rings->n_rings = 0;
}

HintRings *hint_rings_free(HintRings *rings)
{
    if (rings) {
        close_all(rings);
        free(rings->rings);
        free(rings);
    }
    return NULL;
}

HintRingsScope hint_rings_scope(const HintRings *rings)
{
    return rings->scope;
}

size_t hint_rings_n(const HintRings *rings)
{
    return rings->n_rings;
}

/* The kernel limits what users lock for rings (kernel.perf_event_mlock_kb). With less, rings are smaller. */
static int ring_map(HintRings *rings, Ring *ring)
{
    for (;; rings->data_pages /= 2) {
        void *p;

        ring->data_bytes = rings->data_pages * rings->page_bytes;
        p = mmap(NULL, ring->data_bytes + rings->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
        if (p != MAP_FAILED) {
            ring->head = p;
            return 0;
        }
        if (errno != EPERM || rings->data_pages <= DATA_PAGES_MIN)
            return -errno;
    }
}

/* Whether fewer descriptors than are to be spared can be free: the kernel gives out the lowest one. */
static bool is_spared(const HintRings *rings, int fd)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)fd >= limit.rlim_cur - MIN((rlim_t)rings->options.n_spared, limit.rlim_cur / 2);
}

static int ring_open(HintRings *rings, int32_t id, Ring *ret)
{
    bool of_thread = rings->scope == HINT_RINGS_THREAD;
    int cgroup_fd = rings->scope == HINT_RINGS_CGROUP ? rings->options.cgroup_fd : -1, r;
    Ring ring = {.id = id};

    ring.fd = hint_rings_open_event(of_thread ? id : -1, of_thread ? -1 : id, cgroup_fd, rings->period,
                                    rings->options.exclude_kernel);
    if (ring.fd < 0)
        return ring.fd;
    r = is_spared(rings, ring.fd) ? -EMFILE : ring_map(rings, &ring);
    if (r < 0) {
        (void)close(ring.fd);
        return r;
    }
    *ret = ring;
    return 0;
}

/* Appends a ring. A thread that is gone or a CPU that is offline is no error. */
static int add(HintRings *rings, int32_t id)
{
    int r;

    if (!GROW(rings->rings, rings->capacity, rings->n_rings + 1))
        return -ENOMEM;
    r = ring_open(rings, id, &rings->rings[rings->n_rings]);
    if (r == -ESRCH || r == -ENODEV)
        return 0;
    if (r == 0)
        rings->n_rings++;
    return r;
}

/* Both lists ascend. Kept rings move to the front, and new ones are added behind them. Insertion sort
 * suffices, since new ones are few. */
static int follow_threads(HintRings *rings, const pid_t *tids, size_t n_tids)
{
    size_t before = rings->n_rings, kept = 0, old = 0;
    int r = 0;

    for (size_t i = 0; i < n_tids; i++) {
        for (; old < before && rings->rings[old].id < tids[i]; old++)
            ring_close(rings, &rings->rings[old]);
        if (old < before && rings->rings[old].id == tids[i])
            rings->rings[kept++] = rings->rings[old++];
    }
    for (; old < before; old++)
        ring_close(rings, &rings->rings[old]);
    rings->n_rings = kept;

    for (size_t i = 0, k = 0; i < n_tids && r == 0; i++) {
        while (k < kept && rings->rings[k].id < tids[i])
            k++;
        if (k == kept || rings->rings[k].id != tids[i])
            r = add(rings, tids[i]);
    }
    for (size_t i = kept; i < rings->n_rings; i++)
        for (size_t k = i; k > 0 && rings->rings[k - 1].id > rings->rings[k].id; k--) {
            Ring swap = rings->rings[k];

            rings->rings[k] = rings->rings[k - 1];
            rings->rings[k - 1] = swap;
        }
    return r;
}

/* Goes on where it failed before, which need not last: descriptors or memory were short. */
static int open_cpus(HintRings *rings)
{
    for (; rings->next_cpu < rings->options.n_cpus; rings->next_cpu++) {
        int r = add(rings, (int32_t)rings->next_cpu);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Version 1 cgroups have a hierarchy of their own for this; a directory of another one fails with -EBADF. */
static int follow_cpus(HintRings *rings)
{
    int r;

    if (rings->scope == HINT_RINGS_THREAD || rings->n_rings == 0) {
        close_all(rings);
        rings->next_cpu = 0;
        rings->scope = rings->options.cgroup_fd >= 0 ? HINT_RINGS_CGROUP : HINT_RINGS_MACHINE;
    }
    r = open_cpus(rings);
    if (r < 0 && rings->n_rings == 0 && rings->scope == HINT_RINGS_CGROUP) {
        rings->scope = HINT_RINGS_MACHINE;
        rings->next_cpu = 0;
        r = open_cpus(rings);
    }
    return r;
}

int hint_rings_follow(HintRings *rings, const pid_t *tids, size_t n_tids)
{
    if (rings->scope == HINT_RINGS_THREAD && n_tids <= rings->options.max_threads)
        return follow_threads(rings, tids, n_tids);
    return follow_cpus(rings);
}

static int ring_read(const HintRings *rings, Ring *ring, int (*take)(void *, const FaultSample *),
                     void *userdata, HintRingsCount *count)
{
    const FaultRing view = {(const uint8_t *)ring->head + rings->page_bytes, ring->data_bytes};
    uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE), lost = 0;
    uint64_t tail = ring->head->data_tail;
    FaultSample sample;
    int r, taken = 0;

    while (taken >= 0 && (r = fault_ring_next(&view, head, &tail, &sample, &lost)) != FAULT_RING_END) {
        if (r < 0) {
            count->n_bad++;
            tail = head;
        } else if (r == FAULT_RING_LOST) {
            count->n_lost += lost;
        } else {
            count->n_samples++;
            taken = take(userdata, &sample);
        }
    }
    __atomic_store_n(&ring->head->data_tail, tail, __ATOMIC_RELEASE);
    return taken;
}

static void adapt(HintRings *rings, uint64_t n_lost, uint64_t fullest_bytes)
{
    uint64_t period = rings->period;

    if (n_lost > 0)
        period = MIN(period * 4, HINT_RINGS_PERIOD_MAX);
    else if (fullest_bytes < rings->data_pages * rings->page_bytes / 8)
        period = MAX(period / 2, 1);
    if (period == rings->period)
        return;
    rings->period = (uint32_t)period;
    for (size_t i = 0; i < rings->n_rings; i++)
        (void)ioctl(rings->rings[i].fd, PERF_EVENT_IOC_PERIOD, &period);
}

int hint_rings_read(HintRings *rings, int (*take)(void *userdata, const FaultSample *sample), void *userdata,
                    HintRingsCount *ret)
{
    HintRingsCount count = {.period = rings->period};
    uint64_t fullest = 0;
    int r = 0;

    for (size_t i = 0; i < rings->n_rings && r >= 0; i++) {
        uint64_t before = count.n_samples;

        r = ring_read(rings, &rings->rings[i], take, userdata, &count);
        fullest = MAX(fullest, (count.n_samples - before) * FAULT_RING_SAMPLE_SIZE);
    }
    if (r < 0)
        return r;
    adapt(rings, count.n_lost, fullest);
    *ret = count;
    return 0;
}
