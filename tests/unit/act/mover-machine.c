/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "mover-machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define TOTAL_BYTES (16384 * MIB)

void machine_init(Machine *machine)
{
    *machine = (Machine){
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
        .mountinfo = "",
        .rss_pages = 1000000,
        .now_usec = 1000000,
        .page_usec = 1,
        .huge_usec = 250,
    };
    (void)pthread_mutex_init(&machine->lock, NULL);
    (void)pthread_cond_init(&machine->hang, NULL);
    for (size_t i = 0; i < MACHINE_NODES; i++)
        machine->free_bytes[i] = TOTAL_BYTES / 2;
}

void machine_done(Machine *machine)
{
    for (size_t i = 0; i < machine->n_areas; i++) {
        free(machine->areas[i].node);
        free(machine->areas[i].flags);
    }
    (void)pthread_mutex_destroy(&machine->lock);
    (void)pthread_cond_destroy(&machine->hang);
}

void machine_map(Machine *machine, const char *format, ...)
{
    size_t len = strlen(machine->maps);
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(machine->maps + len, sizeof(machine->maps) - len, format, ap);
    va_end(ap);
}

MachineArea *machine_add(Machine *machine, uint64_t start, uint64_t bytes, int node)
{
    MachineArea *area = &machine->areas[machine->n_areas++];

    assert_true(machine->n_areas <= MACHINE_AREAS);
    *area = (MachineArea){.start = start, .n_pages = (size_t)(bytes / machine->page_bytes)};
    area->node = malloc(area->n_pages);
    area->flags = calloc(area->n_pages, 1);
    assert_non_null(area->node);
    assert_non_null(area->flags);
    memset(area->node, node, area->n_pages);
    machine_map(machine, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n", start, start + bytes);
    return area;
}

size_t machine_count(const Machine *machine, const MachineArea *area, int node)
{
    size_t n = 0;

    for (size_t i = 0; i < area->n_pages; i++)
        n += area->node[i] == node;
    return n;
}

/* Whether this is the call that is to fail. */
static bool due(unsigned *countdown)
{
    return *countdown > 0 && --*countdown == 0;
}

static int machine_open(void *context, pid_t pid, uint64_t start_ticks, pid_t *ret_memory_pid)
{
    Machine *machine = context;

    if (machine->open_error < 0)
        return machine->open_error;
    if (pid != MACHINE_PID || start_ticks != MACHINE_START || machine->dead)
        return -ESRCH;
    *ret_memory_pid = pid;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool machine_is_alive(void *context, int process_fd)
{
    Machine *machine = context;
    bool alive;

    assert_true(process_fd >= 0);
    (void)pthread_mutex_lock(&machine->lock);
    alive = !machine->dead;
    (void)pthread_mutex_unlock(&machine->lock);
    return alive;
}

static int print_meminfo(const Machine *machine, unsigned node, char *buf, size_t size)
{
    if (node >= MACHINE_NODES)
        return -ENOENT;
    (void)snprintf(buf, size,
                   "Node %u MemTotal:       %" PRIu64 " kB\nNode %u MemFree:        %" PRIu64 " kB\n"
                   "Node %u Inactive(file): %" PRIu64 " kB\nNode %u Dirty: 0 kB\nNode %u Writeback: 0 kB\n",
                   node, TOTAL_BYTES >> 10, node, machine->free_bytes[node] >> 10, node,
                   machine->cache_bytes[node] >> 10, node, node);
    return 0;
}

static int print_file(const Machine *machine, const char *path, char *buf, size_t size)
{
    static const char node_path[] = "sys/devices/system/node/node";

    if (strncmp(path, node_path, strlen(node_path)) == 0)
        return print_meminfo(machine, (unsigned)path[strlen(node_path)] - '0', buf, size);
    if (strcmp(path, "proc/zoneinfo") == 0) {
        for (unsigned i = 0; i < MACHINE_NODES; i++) {
            size_t len = strlen(buf);

            (void)snprintf(buf + len, size - len,
                           "Node %u, zone   Normal\n  pages free     9\n        high     %" PRIu64 "\n", i,
                           64 * MIB / machine->page_bytes);
        }
        return 0;
    }
    if (strcmp(path, "proc/100/maps") == 0)
        (void)snprintf(buf, size, "%s", machine->maps);
    else if (strcmp(path, "proc/100/mountinfo") == 0 && machine->mountinfo)
        (void)snprintf(buf, size, "%s", machine->mountinfo);
    else if (strcmp(path, "proc/100/stat") == 0)
        (void)snprintf(buf, size,
                       "100 (a b) S 1 100 100 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %" PRIu64 " 1000000 %" PRIu64
                       " 0 0 0 0 0 0 "
                       "0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                       MACHINE_START, machine->rss_pages);
    else
        return -ENOENT;
    return 0;
}

static int machine_read_file(void *context, const char *path, size_t max, char **ret)
{
    Machine *machine = context;
    char *buf = calloc(1, sizeof(machine->maps));
    size_t len = strlen(path), tail = machine->fail_path ? strlen(machine->fail_path) : 0;
    int r;

    assert_non_null(buf);
    (void)pthread_mutex_lock(&machine->lock);
    machine->whole_max = MAX(machine->whole_max, max);
    r = print_file(machine, path, buf, sizeof(machine->maps));
    if (len >= tail && (tail == 0 || strcmp(path + len - tail, machine->fail_path) == 0) &&
        due(&machine->fail_read))
        r = machine->read_error;
    (void)pthread_mutex_unlock(&machine->lock);
    if (r < 0)
        free(buf);
    else
        *ret = buf;
    return r;
}

static int machine_read_lines(void *context, const char *path, LinesAdd add, void *userdata)
{
    CLEANUP_FREE char *text = NULL;
    char *line, *next;
    int r = machine_read_file(context, path, 0, &text);

    if (r == 0 && *text == '\0')
        r = -ESRCH;
    next = text;
    while (r == 0 && (line = strsep(&next, "\n")) && (next || *line))
        r = add(userdata, line);
    return r;
}

/* Finds the area of a page, and its index there. false: not mapped. */
static bool find_page(Machine *machine, const void *page, MachineArea **ret_area, size_t *ret_index)
{
    uint64_t address = (uint64_t)(uintptr_t)page;

    for (size_t i = 0; i < machine->n_areas; i++) {
        MachineArea *area = &machine->areas[i];

        if (address >= area->start && address < area->start + area->n_pages * machine->page_bytes) {
            *ret_area = area;
            *ret_index = (size_t)((address - area->start) / machine->page_bytes);
            return true;
        }
    }
    return false;
}

static int status_of(Machine *machine, const void *page)
{
    MachineArea *area;
    size_t i;

    if (!find_page(machine, page, &area, &i))
        return -EFAULT;
    return area->node[i] < 0 ? -ENOENT : area->node[i];
}

/* Moves one queued page, or the huge page it belongs to. Returns the bytes moved; 0: pinned, or there already. */
static uint64_t move_one(Machine *machine, const void *page, int node)
{
    size_t per_block = (size_t)(BLOCK / machine->page_bytes), n = 1, i;
    MachineArea *area;
    uint64_t bytes;

    if (!find_page(machine, page, &area, &i) || area->flags[i] & MACHINE_PINNED)
        return 0;
    if (area->node[i] == node)
        return 0;
    if (area->huge) {
        i = i / per_block * per_block;
        n = per_block;
    }
    bytes = n * machine->page_bytes;
    machine->free_bytes[area->node[i]] += bytes;
    machine->free_bytes[node] -= MIN(machine->free_bytes[node], bytes);
    memset(area->node + i, node, n);
    machine->now_usec += area->huge ? machine->huge_usec : machine->page_usec;
    return bytes;
}

/* Moves pages[from..to), all of them queued. Returns how many stayed. */
static long flush(Machine *machine, size_t from, size_t to, void **pages, int node, int *status,
                  uint64_t *bytes)
{
    long n_left = 0;

    for (size_t i = from; i < to; i++) {
        *bytes += move_one(machine, pages[i], node);
        n_left += status_of(machine, pages[i]) != node;
    }
    for (size_t i = from; i < to && n_left == 0; i++)
        status[i] = node;
    return n_left;
}

/* Returns 0: in place; 1: to be queued; or the status. A huge page is queued once, for the first of its pages
 * that is named. */
static int queue_page(Machine *machine, size_t first, size_t i, void **pages, int node, bool shared)
{
    size_t per_block = (size_t)(BLOCK / machine->page_bytes), at, at_before;
    MachineArea *area, *before;

    if (!find_page(machine, pages[i], &area, &at))
        return -EFAULT;
    if (area->node[at] < 0 || area->node[at] == node)
        return area->node[at] < 0 ? -ENOENT : 0;
    if (area->flags[at] & MACHINE_SHARED && !shared)
        return -EACCES;
    if (area->flags[at] & MACHINE_BUSY)
        return -EBUSY;
    if (area->huge && i > first && find_page(machine, pages[i - 1], &before, &at_before) && before == area &&
        at / per_block == at_before / per_block)
        return -EBUSY;
    return 1;
}

static long move_all(Machine *machine, size_t n, void **pages, const int *nodes, int *status, bool shared)
{
    uint64_t bytes = 0;
    size_t first = 0;
    long r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        int q = queue_page(machine, first, i, pages, nodes[i], shared);

        if (q > 0)
            continue;
        status[i] = q < 0 ? q : nodes[i];
        r = flush(machine, first, i, pages, nodes[i], status, &bytes);
        r += r > 0 ? (long)(n - i - 1) : 0;
        first = i + 1;
    }
    if (r == 0)
        r = flush(machine, first, n, pages, nodes[0], status, &bytes);
    machine->most_bytes = MAX(machine->most_bytes, bytes);
    machine->moved_bytes += bytes;
    return r;
}

static long machine_move_pages(void *context, pid_t pid, size_t n, void **pages, const int *nodes,
                               int *status, bool shared)
{
    Machine *machine = context;
    long r = 0;

    assert_int_equal(pid, MACHINE_PID);
    assert_true(n > 0);
    (void)pthread_mutex_lock(&machine->lock);
    machine->n_waiting++;
    while (nodes && machine->hanging && machine->n_passing == 0)
        (void)pthread_cond_wait(&machine->hang, &machine->lock);
    if (nodes && machine->hanging)
        machine->n_passing--;
    machine->n_waiting--;
    if (!nodes) {
        machine->n_asks++;
        if (due(&machine->fail_ask))
            r = machine->ask_error;
        for (size_t i = 0; i < n && r == 0; i++)
            status[i] = status_of(machine, pages[i]);
    } else {
        machine->n_moves++;
        machine->most_pages = MAX(machine->most_pages, n);
        if (!machine->dead)
            machine->moved_alive = machine->moved_bytes;
        if (due(&machine->die_in_move))
            machine->dead = true;
        r = due(&machine->fail_move) ? machine->move_error
                                     : move_all(machine, n, pages, nodes, status, shared);
    }
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

static long machine_migrate_pages(void *context, pid_t pid, hwloc_const_bitmap_t from_os, uint32_t to_os)
{
    Machine *machine = context;
    long n_left = 0;

    machine->n_migrates++;
    if (machine->migrate_error < 0)
        return machine->migrate_error;
    for (size_t k = 0; k < machine->n_areas; k++)
        for (size_t i = 0; i < machine->areas[k].n_pages; i++) {
            MachineArea *area = &machine->areas[k];

            if (area->node[i] < 0 || !hwloc_bitmap_isset(from_os, (unsigned)area->node[i]))
                continue;
            if (area->flags[i])
                n_left++;
            else
                area->node[i] = (int8_t)to_os;
        }
    return n_left;
}

static int machine_set_cpus(void *context, hwloc_const_bitmap_t cpus)
{
    Machine *machine = context;
    int r;

    (void)pthread_mutex_lock(&machine->lock);
    machine->n_settled++;
    if (machine->node_cpus > 0)
        machine->n_settled_on[(unsigned)hwloc_bitmap_first(cpus) / machine->node_cpus]++;
    r = machine->settle_error;
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

static int machine_set_nice(void *context, int nice)
{
    Machine *machine = context;
    int r;

    (void)pthread_mutex_lock(&machine->lock);
    machine->n_waiting++;
    while (machine->settling_hangs)
        (void)pthread_cond_wait(&machine->hang, &machine->lock);
    machine->n_waiting--;
    machine->nice = nice;
    r = machine->settle_error;
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

static int machine_memory_device(void *context, uint64_t *ret)
{
    *ret = 1;
    return 0;
}

static uint64_t machine_now_usec(void *context)
{
    Machine *machine = context;
    uint64_t now;

    (void)pthread_mutex_lock(&machine->lock);
    now = machine->now_usec;
    (void)pthread_mutex_unlock(&machine->lock);
    return now;
}

const MoverOps machine_ops = {
    .open_process = machine_open,
    .is_alive = machine_is_alive,
    .read_file = machine_read_file,
    .read_lines = machine_read_lines,
    .move_pages = machine_move_pages,
    .migrate_pages = machine_migrate_pages,
    .set_cpus = machine_set_cpus,
    .set_nice = machine_set_nice,
    .memory_device = machine_memory_device,
    .now_usec = machine_now_usec,
};
