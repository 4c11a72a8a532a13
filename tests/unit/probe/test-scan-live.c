/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P9, completing scans: a real process that has a region for each reason to skip it or to scan it all the
 * same, read from this machine's own /proc. Only the time is simulated. */

#include "probe-test.h"

#include "plan/scan/scan.h"
#include "probe/memory/region-maps.h"

#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SIZE (UINT64_C(8) << 20)

/* A child that maps one more region for each byte it gets, and returns its address. */
typedef struct Child {
    pid_t pid;
    int dir_fd;
    int order_fd, answer_fd;
} Child;

/* Memory between two guards, so that it cannot be merged with a neighbour. */
static char *map_apart(int protection)
{
    char *address = mmap(NULL, 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (address == MAP_FAILED)
        return NULL;
    address += SIZE;
    return mprotect(address, SIZE, protection) == 0 ? address : NULL;
}

static _Noreturn void child_run(int order_fd, int answer_fd)
{
    char byte;

    while (read(order_fd, &byte, 1) == 1) {
        char *address = map_apart(PROT_READ | PROT_WRITE);

        if (address)
            memset(address, 1, SIZE);
        if (write(answer_fd, &address, sizeof(address)) != sizeof(address))
            break;
    }
    _exit(0);
}

static Child child_start(void)
{
    int orders[2], answers[2];
    char path[64];
    Child child;

    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    child = (Child){.pid = fork(), .dir_fd = -1, .order_fd = orders[1], .answer_fd = answers[0]};
    if (child.pid == 0) {
        (void)close(orders[1]);
        (void)close(answers[0]);
        child_run(orders[0], answers[1]);
    }
    assert_true(child.pid > 0);
    (void)close(orders[0]);
    (void)close(answers[1]);
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)child.pid);
    child.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(child.dir_fd >= 0);
    return child;
}

static void child_stop(Child *child)
{
    (void)close(child->order_fd);
    (void)close(child->answer_fd);
    (void)close(child->dir_fd);
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
}

static uint64_t child_map(const Child *child)
{
    char *address = NULL;

    assert_int_equal(write(child->order_fd, "m", 1), 1);
    assert_int_equal(read(child->answer_fd, &address, sizeof(address)), sizeof(address));
    assert_non_null(address);
    return (uintptr_t)address;
}

typedef struct Look {
    MemoryRegions regions;
    Scan scan;
    ScanRules rules;
    ScanWindow window;
    uint64_t now_usec;
} Look;

static void look_done(Look *look)
{
    regions_done(&look->regions);
    scan_window_done(&look->window);
}

/* Sanitizers reserve terabytes, which a scan takes long for. */
#define VAST (UINT64_C(1) << 30)

static void drop_vast(MemoryRegions *regions)
{
    size_t n = 0;

    for (size_t i = 0; i < regions->n; i++)
        if (regions->list[i].end - regions->list[i].start < VAST)
            regions->list[n++] = regions->list[i];
    regions->n = n;
}

static void look_at(Look *look, const Child *child)
{
    MemoryRegions before = look->regions;

    look->regions = (MemoryRegions){0};
    assert_int_equal(region_maps_read(child->dir_fd, true, &before, &look->regions), 0);
    regions_done(&before);
    drop_vast(&look->regions);
}

static void look_step(Look *look, const Child *child, uint64_t after_usec)
{
    look_at(look, child);
    look->now_usec += after_usec;
    assert_int_equal(scan_step(&look->scan, &look->regions, &look->rules, look->now_usec, &look->window), 0);
}

static bool covers(const ScanWindow *window, uint64_t address)
{
    for (size_t i = 0; i < window->n_ranges; i++)
        if (window->ranges[i].start <= address && address < window->ranges[i].end)
            return true;
    return false;
}

static bool bind_to_node_0(char *address)
{
    unsigned long mask = 1;

    return syscall(SYS_mbind, address, SIZE, MPOL_BIND, &mask, 64, 0) == 0;
}

/* How often a region gets a reason in a step by itself. */
static uint32_t reasons_of(const Look *look, uint64_t address, ScanReason reason)
{
    MemoryRegion *region = regions_find(&look->regions, address);
    MemoryRegions one = {.list = region, .n = 1, .capacity = 1};
    Scan scan = look->scan;
    ScanWindow window = {0};
    uint32_t n;

    assert_non_null(region);
    scan.offset = 0;
    assert_int_equal(scan_step(&scan, &one, &look->rules, look->now_usec, &window), 0);
    n = window.n[reason];
    scan_window_done(&window);
    return n;
}

/* Regions that are never scanned, by their nature. */
static void test_nature(void **state)
{
    char *guard = map_apart(PROT_NONE), *bound = map_apart(PROT_READ | PROT_WRITE),
         *plain = map_apart(PROT_READ | PROT_WRITE);
    bool is_bound;
    CLEANUP(look_done) Look look = {.rules = {.window_bytes = UINT64_MAX}, .now_usec = SEC};

    assert_true(guard && bound && plain);
    is_bound = bind_to_node_0(bound);
    memset(bound, 1, SIZE);
    memset(plain, 1, SIZE);
    {
        CLEANUP(child_stop) Child child = child_start();

        look_step(&look, &child, 0);
        assert_true(look.window.n[SCAN_REASON_UNSUITABLE] > 0);
        assert_true(look.window.n[SCAN_REASON_SHARED_RO] > 0);
        assert_true(look.window.n[SCAN_REASON_INACCESSIBLE] > 0);
        assert_int_equal(reasons_of(&look, (uintptr_t)guard, SCAN_REASON_INACCESSIBLE), 1);
        /* The code of this program is a file that is only read. */
        assert_int_equal(reasons_of(&look, (uintptr_t)&test_nature, SCAN_REASON_SHARED_RO), 1);
        if (is_bound)
            assert_int_equal(reasons_of(&look, (uintptr_t)bound, SCAN_REASON_UNSUITABLE), 1);
        else
            print_message("# no mbind(2) here: a region with a policy was not seen\n");
        assert_true(covers(&look.window, (uintptr_t)plain));
        assert_false(covers(&look.window, (uintptr_t)guard));
        assert_false(covers(&look.window, (uintptr_t)&test_nature));
        assert_int_equal(covers(&look.window, (uintptr_t)bound), !is_bound);
    }
    (void)munmap(guard - SIZE, 3 * SIZE);
    (void)munmap(bound - SIZE, 3 * SIZE);
    (void)munmap(plain - SIZE, 3 * SIZE);
}

/* Regions that are scanned at some times and not at others. */
static void test_time(void **state)
{
    CLEANUP(child_stop) Child child = child_start();
    CLEANUP(look_done) Look look = {.rules = {.window_bytes = UINT64_MAX}, .now_usec = SEC};
    uint64_t used = child_map(&child), idle = child_map(&child), young, n_steps = 0;

    for (int i = 0; i < 2; i++) {
        look_step(&look, &child, 2 * SEC);
        assert_true(look.window.ended && covers(&look.window, used) && covers(&look.window, idle));
    }

    young = child_map(&child);
    scan_note_access(&look.regions, used, child.pid);
    look_step(&look, &child, 2 * SEC);
    assert_int_equal(look.window.n[SCAN_REASON_SCAN_DELAY], 1);
    assert_true(look.window.n[SCAN_REASON_PID_INACTIVE] > 0);
    assert_true(covers(&look.window, used));
    assert_false(covers(&look.window, idle) || covers(&look.window, young));

    /* By force, in windows smaller than the region: a part now, a part in the next step. */
    look.rules = (ScanRules){.window_bytes = SIZE / 4, .force_complete = true};
    do {
        look_step(&look, &child, SEC / 10);
        n_steps++;
    } while (!look.window.ended && n_steps < 1000);
    assert_true(look.window.ended);
    assert_true(look.scan.n[SCAN_REASON_FORCED] > 0);
    assert_true(look.scan.n[SCAN_REASON_IGNORE_PID] >= 3);
    assert_true(look.scan.n[SCAN_REASON_SEQ_COMPLETED] > 0);
    assert_int_equal(scan_coverage_permille(&look.scan), 1000);
}

TEST_MAIN(NULL, NULL, test_nature, test_time)
