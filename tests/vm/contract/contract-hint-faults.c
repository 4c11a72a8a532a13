/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Write faults that tell which thread uses which page. "4" in /proc/PID/clear_refs write-protects the present
 * pages, and a software event on page faults reports thread, address and CPU of each write to them. */

#include "memory.h"
#include "threads.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define N_THREADS  2U
#define N_PAGES    512U
#define N_BLOCKS   4U
#define RING_PAGES 64U

typedef enum Work {
    WORK_NONE,
    WORK_WRITE,
    WORK_READ,
} Work;

/* What the child's threads do, shared with them. */
typedef struct Team {
    bool huge;
    volatile uint64_t round; /* incremented to make them work once */
    volatile Work work;
    volatile uint64_t done[N_THREADS];
    volatile pid_t tid[N_THREADS];
    char *volatile buffer[N_THREADS];
    uint64_t cpus;
} Team;

static size_t buffer_bytes(const Team *team)
{
    return team->huge ? N_BLOCKS * HUGE : (size_t)N_PAGES * PAGE;
}

static void work_once(const Team *team, volatile char *p)
{
    /* A thread with huge pages writes to all 512 places of each. */
    for (size_t at = 0; at < buffer_bytes(team); at += PAGE)
        if (team->work == WORK_WRITE)
            p[at]++;
        else
            (void)p[at];
}

static void member_main(void *userdata, unsigned index)
{
    Team *team = userdata;
    char *p = team->huge ? huge_map(N_BLOCKS) : pages_map(N_PAGES);
    uint64_t round = 0;

    memset(p, 1, buffer_bytes(team));
    team->buffer[index] = p;
    team->tid[index] = gettid();
    for (;; nap()) {
        if (team->round == round)
            continue;
        round = team->round;
        work_once(team, p);
        team->done[index] = round;
    }
}

static void team_main(void *userdata)
{
    threads_run(N_THREADS, member_main, userdata);
}

static bool team_ready(void *userdata)
{
    const Team *team = userdata;

    for (unsigned i = 0; i < N_THREADS; i++)
        if (team->tid[i] == 0)
            return false;
    return true;
}

static bool team_done(void *userdata)
{
    const Team *team = userdata;

    for (unsigned i = 0; i < N_THREADS; i++)
        if (team->done[i] != team->round)
            return false;
    return true;
}

static void team_work(Team *team, Work work)
{
    team->work = work;
    team->round++;
    assert_true(eventually(team_done, team));
}

/*
 * Samples
 */

typedef struct Sample {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t address;
    uint32_t cpu, reserved;
} Sample;

typedef struct Ring {
    int fd;
    struct perf_event_mmap_page *head;
    size_t bytes;
} Ring;

static bool ring_open(Ring *ring, pid_t tid, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU,
        .exclude_kernel = 0,
    };

    ring->fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (ring->fd < 0)
        return false;
    ring->bytes = (size_t)RING_PAGES * PAGE;
    ring->head = mmap(NULL, ring->bytes + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    assert_ptr_not_equal(ring->head, MAP_FAILED);
    return true;
}

static void ring_close(Ring *ring)
{
    (void)munmap(ring->head, ring->bytes + PAGE);
    (void)close(ring->fd);
}

static bool ring_next(Ring *ring, Sample *ret)
{
    const char *data = (const char *)ring->head + PAGE;

    for (;;) {
        uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
        uint64_t tail = ring->head->data_tail;
        Sample sample = {0};

        if (tail == head)
            return false;
        for (size_t i = 0; i < sizeof(sample); i++)
            ((char *)&sample)[i] = data[(tail + i) % ring->bytes];
        __atomic_store_n(&ring->head->data_tail, tail + sample.header.size, __ATOMIC_RELEASE);
        assert_int_not_equal(sample.header.type, PERF_RECORD_LOST);
        if (sample.header.type == PERF_RECORD_SAMPLE) {
            *ret = sample;
            return true;
        }
    }
}

/* Counts the samples in each thread's buffer. Each must be by that thread, and no address may come twice. */
static void ring_count(Ring *ring, const Team *team, size_t counts[N_THREADS])
{
    static bool seen[N_THREADS][N_BLOCKS * HUGE / PAGE];
    Sample sample;

    memset(seen, 0, sizeof(seen));
    while (ring_next(ring, &sample))
        for (unsigned i = 0; i < N_THREADS; i++) {
            uint64_t offset = sample.address - (uint64_t)(uintptr_t)team->buffer[i];

            if (offset >= buffer_bytes(team))
                continue;
            assert_int_equal(sample.tid, team->tid[i]);
            assert_true(team->cpus & BIT(sample.cpu));
            assert_false(seen[i][offset / PAGE]);
            seen[i][offset / PAGE] = true;
            counts[i]++;
        }
}

typedef struct Setup {
    Team *team;
    pid_t pid;
    Ring rings[N_THREADS];
} Setup;

/* Skips without soft-dirty bits: the write to clear_refs succeeds all the same, and does nothing. A page just
 * written has the bit. */
static void need_soft_dirty(void)
{
    char *p = pages_map(1);
    uint64_t entry = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    p[0] = 1;
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)p / PAGE * sizeof(entry))),
                     sizeof(entry));
    (void)close(fd);
    pages_unmap(p, PAGE);
    if (!(entry & BIT(55)))
        contract_skip("no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)");
}

static void begin(Setup *setup, bool huge)
{
    need_soft_dirty();
    setup->team = shared_alloc(sizeof(*setup->team));
    setup->team->huge = huge;
    setup->team->cpus = mask_get(0);
    setup->pid = child_start(team_main, setup->team);
    assert_true(eventually(team_ready, setup->team));
    for (unsigned i = 0; i < N_THREADS; i++)
        if (!ring_open(&setup->rings[i], setup->team->tid[i], -1))
            contract_skip("no page-fault events: %s", strerror(errno));
}

static void end(Setup *setup)
{
    for (unsigned i = 0; i < N_THREADS; i++)
        ring_close(&setup->rings[i]);
}

static void protect(const Setup *setup)
{
    assert_int_equal(file_write("4", "/proc/%d/clear_refs", setup->pid), 0);
}

/* Each thread's ring holds exactly `expected` samples of its own buffer, and none of the other's. */
static void assert_counts(Setup *setup, size_t expected)
{
    for (unsigned i = 0; i < N_THREADS; i++) {
        size_t counts[N_THREADS] = {0};

        ring_count(&setup->rings[i], setup->team, counts);
        for (unsigned k = 0; k < N_THREADS; k++)
            assert_int_equal(counts[k], k == i ? expected : 0);
    }
}

static void test_small_pages(void **state)
{
    Setup setup;

    begin(&setup, false);
    for (unsigned round = 0; round < 3; round++) {
        protect(&setup);
        team_work(setup.team, WORK_WRITE);
        assert_counts(&setup, N_PAGES);
    }
    /* A page reports once, until it is protected again. */
    team_work(setup.team, WORK_WRITE);
    assert_counts(&setup, 0);
    end(&setup);
}

static void test_reads_are_not_seen(void **state)
{
    Setup setup;

    begin(&setup, false);
    protect(&setup);
    team_work(setup.team, WORK_READ);
    assert_counts(&setup, 0);
    team_work(setup.team, WORK_WRITE);
    assert_counts(&setup, N_PAGES);
    end(&setup);
}

/* Huge pages report once each and stay huge. */
static void test_huge_pages(void **state)
{
    uint64_t before = vmstat("thp_fault_alloc"), splits;
    Setup setup;

    begin(&setup, true);
    if (vmstat("thp_fault_alloc") < before + (size_t)N_THREADS * N_BLOCKS)
        contract_skip("no transparent huge pages to be had");
    splits = vmstat("thp_split_pmd");
    for (unsigned round = 0; round < 3; round++) {
        protect(&setup);
        team_work(setup.team, WORK_WRITE);
        assert_counts(&setup, N_BLOCKS);
    }
    assert_int_equal(vmstat("thp_split_pmd"), splits);
    end(&setup);
}

/* One ring for each CPU reports the same as one for each thread. */
static void test_rings_of_cpus(void **state)
{
    size_t counts[N_THREADS] = {0};
    Ring rings[64];
    uint64_t cpus;
    Setup setup;

    begin(&setup, false);
    cpus = setup.team->cpus;
    for (int cpu = 0; cpu < 64; cpu++)
        if (cpus & BIT(cpu))
            assert_true(ring_open(&rings[cpu], -1, cpu));
    protect(&setup);
    team_work(setup.team, WORK_WRITE);
    for (int cpu = 0; cpu < 64; cpu++)
        if (cpus & BIT(cpu)) {
            ring_count(&rings[cpu], setup.team, counts);
            ring_close(&rings[cpu]);
        }
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(counts[i], N_PAGES);
    end(&setup);
}

/* A first touch is a fault, too. It needs no protection. */
static void test_first_touch(void **state)
{
    Sample sample;
    size_t n = 0;
    char *p = pages_map(N_PAGES);
    Ring ring;

    if (!ring_open(&ring, 0, -1))
        contract_skip("no page-fault events: %s", strerror(errno));
    pages_touch(p, N_PAGES);
    while (ring_next(&ring, &sample))
        n += sample.address - (uint64_t)(uintptr_t)p < (uint64_t)N_PAGES * PAGE;
    assert_int_equal(n, N_PAGES);
    ring_close(&ring);
    pages_unmap(p, (size_t)N_PAGES * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_small_pages, children_teardown),
        cmocka_unit_test_teardown(test_reads_are_not_seen, children_teardown),
        cmocka_unit_test_teardown(test_huge_pages, children_teardown),
        cmocka_unit_test_teardown(test_rings_of_cpus, children_teardown),
        cmocka_unit_test(test_first_touch),
    };

    return cmocka_run_group_tests_name("contract-hint-faults", tests, NULL, NULL);
}
