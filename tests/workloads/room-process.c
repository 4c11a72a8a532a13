/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One process of a workload: its memory and its threads. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "room.h"
#include "timing.h"

/* Mappings begin at huge pages, so that slices cover the same pages in every run. */
#define ALIGN_BYTES ((size_t)2 << 20)

const uint64_t room_laps_nsec[WORK_LAPS] = {
    10000,   20000,    50000,    100000,   200000,    500000,    1000000,   2000000,
    5000000, 10000000, 20000000, 50000000, 100000000, 200000000, 500000000, 1000000000,
};

static Room *room;
static pthread_t *threads;

static void note_node(RoomThread *thread)
{
    unsigned cpu, node;

    if (getcpu(&cpu, &node) == 0)
        atomic_store_explicit(&thread->node, node, memory_order_relaxed);
}

static void note_pass(RoomThread *thread)
{
    RoomPasses *passes = &thread->passes;
    uint64_t now = timing_now_nsec(), nsec = now - passes->begin_nsec;

    passes->begin_nsec = now;
    passes->last_nsec = nsec;
    if (passes->n++ == 0)
        passes->first_nsec = passes->min_nsec = passes->max_nsec = nsec;
    if (nsec < passes->min_nsec)
        passes->min_nsec = nsec;
    if (nsec > passes->max_nsec)
        passes->max_nsec = nsec;
}

bool work_more(WorkThread *work_thread)
{
    RoomThread *thread = (RoomThread *)work_thread;

    if (thread->pass_left-- == 0) {
        note_pass(thread);
        thread->pass_left = thread->pass_steps - 1;
    }
    note_node(thread);
    if (work_thread->steps >= thread->quota)
        return false;
    /* A thread that never got a CPU still does one step, so that every thread has left its trace. */
    if (work_thread->steps > 0 && atomic_load_explicit(&room->stop, memory_order_relaxed))
        return false;
    atomic_store_explicit(&thread->steps, ++work_thread->steps, memory_order_relaxed);
    return true;
}

double work_progress(const WorkThread *work_thread)
{
    const RoomThread *thread = (const RoomThread *)work_thread;

    if (thread->quota != UINT64_MAX)
        return (double)work_thread->steps / (double)thread->quota;
    return (double)(timing_now_nsec() - room->start_nsec) / (double)room->options.seconds_nsec;
}

bool work_rest(const WorkThread *work_thread, double progress)
{
    uint64_t until = room->start_nsec + (uint64_t)(progress * (double)room->options.seconds_nsec);

    while (!atomic_load(&room->stop) && work_progress(work_thread) < progress)
        room_wait(&room->stop, 1, until);
    return !atomic_load(&room->stop);
}

void work_lap(WorkThread *thread)
{
    uint64_t now = timing_now_nsec(), nsec = now - thread->lap_nsec;
    bool first = thread->lap_nsec == 0;

    thread->lap_nsec = now;
    if (first)
        return;
    thread->n_laps++;
    for (unsigned i = 0; i < WORK_LAPS && nsec >= room_laps_nsec[i]; i++)
        thread->laps[i]++;
    if (nsec > thread->lap_worst_nsec)
        thread->lap_worst_nsec = nsec;
}

void work_use(WorkThread *work_thread, unsigned regions)
{
    RoomThread *thread = (RoomThread *)work_thread;
    uint64_t n = thread->n_changes, never = 0;

    /* What the thread uses from the start is no change. */
    if (work_thread->steps > 0 && atomic_load(&thread->used) != regions) {
        thread->n_changes++;
        if (n < ROOM_CHANGES_MAX)
            (void)atomic_compare_exchange_strong(&room->changes_nsec[n], &never, timing_now_nsec());
    }
    atomic_store(&thread->used, regions);
}

static unsigned char *map_region(size_t bytes)
{
    void *p = mmap(NULL, bytes + ALIGN_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        work_fail("mmap", errno);
    return (unsigned char *)(((uintptr_t)p + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES);
}

static WorkPart part_of(WorkPart whole, size_t begin, size_t end, size_t of)
{
    size_t n_blocks = whole.bytes / WORK_BLOCK_BYTES, from = n_blocks * begin / of;

    return (WorkPart){whole.start + from * WORK_BLOCK_BYTES, (n_blocks * end / of - from) * WORK_BLOCK_BYTES};
}

/* Divides the blocks of one region among the threads: the share that each fills, and the part that it works on. */
static void map_shared(RoomThread *first, unsigned region, size_t n_blocks)
{
    WorkPart whole = {.start = map_region(n_blocks * WORK_BLOCK_BYTES), .bytes = n_blocks * WORK_BLOCK_BYTES};
    size_t n = room->options.threads, by = room->shape->sharers ? room->options.extra : 1;

    for (size_t i = 0; i < n; i++) {
        size_t begin = i / by * by, end = begin + by < n ? begin + by : n;

        first[i].thread.shares[region] = part_of(whole, i, i + 1, n);
        first[i].thread.parts[region] =
            room->shape->layout == WORK_SHARED ? whole : part_of(whole, begin, end, n);
    }
}

static void map_private(RoomThread *first, unsigned region, size_t n_blocks)
{
    for (unsigned i = 0; i < room->options.threads; i++) {
        WorkPart own = {.start = map_region(n_blocks * WORK_BLOCK_BYTES),
                        .bytes = n_blocks * WORK_BLOCK_BYTES};

        first[i].thread.shares[region] = first[i].thread.parts[region] = own;
    }
}

static void map_all(RoomThread *first)
{
    for (unsigned region = 0; region < room->shape->n_regions; region++) {
        size_t n_blocks = room->options.bytes / room->shape->n_regions / WORK_BLOCK_BYTES;

        if (room->shape->layout == WORK_PRIVATE)
            map_private(first, region, n_blocks);
        else
            map_shared(first, region, n_blocks);
    }
}

static void fill(const RoomThread *thread)
{
    for (unsigned region = 0; region < room->shape->n_regions; region++)
        room->shape->fill(thread->thread.shares[region], region);
}

/* For placers that place only processes with much memory. */
static void touch_ballast(void)
{
    size_t bytes = room->options.ballast_bytes;

    if (bytes > 0)
        memset(map_region(bytes), 1, bytes);
}

static void fill_all(const RoomThread *first)
{
    int r = place_begin(room, first->thread.process);

    if (r < 0)
        work_fail("placing memory", -r);
    for (unsigned i = 0; room->options.placement != PLACEMENT_LOCAL && i < room->options.threads; i++)
        fill(&first[i]);
    touch_ballast();
    place_end();
}

static void count_in(_Atomic uint32_t *count)
{
    atomic_fetch_add(count, 1);
    room_wake(count);
}

static void wait_state(RoomState state)
{
    while (atomic_load(&room->state) < state)
        room_wait(&room->state, state, 0);
}

static void bind_thread(const RoomThread *thread, cpu_set_t *ret_before)
{
    unsigned number = (unsigned)(thread - room->threads), n = room->options.threads;
    int r;

    /* Counted from the other end: of two processes, each lends to the other. */
    if (room->options.bind == BIND_LEND && thread->thread.index >= n - n / 3)
        number = room->n_threads - 1 - number;
    r = place_bind(number, room->n_threads, ret_before);
    if (r < 0)
        work_fail("binding a thread", -r);
}

static void *run(void *argument)
{
    RoomThread *thread = argument;
    cpu_set_t before;

    if (room->options.bind != BIND_NONE)
        bind_thread(thread, &before);
    if (room->options.placement == PLACEMENT_LOCAL)
        fill(thread);
    thread->pass_steps = room->shape->pass_steps;
    if (!thread->pass_steps)
        thread->pass_steps = thread->thread.parts[0].bytes / WORK_BLOCK_BYTES;
    thread->pass_left = thread->pass_steps;
    note_node(thread);

    count_in(&room->n_ready);
    wait_state(ROOM_GO);
    if (room->options.bind == BIND_START && sched_setaffinity(0, sizeof(before), &before) < 0)
        work_fail("unbinding a thread", errno);
    thread->passes.begin_nsec = room->start_nsec;
    room->shape->run(&thread->thread);
    thread->end_nsec = timing_now_nsec();
    count_in(&room->n_finished);
    wait_state(ROOM_CHECK);
    if (room->shape->check)
        room->shape->check(&thread->thread);
    count_in(&room->n_checked);
    return NULL;
}

void room_start_process(Room *shared, unsigned process)
{
    RoomThread *first = &shared->threads[(size_t)process * shared->options.threads];
    int r;

    room = shared;
    threads = calloc(room->options.threads, sizeof(*threads));
    if (!threads)
        work_fail("memory for threads", ENOMEM);
    if (room->shape->layout != WORK_NONE) {
        map_all(first);
        fill_all(first);
    }
    if (room->shape->prepare) {
        r = room->shape->prepare(room->options.threads, room->options.extra);
        if (r < 0)
            work_fail("preparing", -r);
    }
    for (unsigned i = 0; i < room->options.threads; i++) {
        r = pthread_create(&threads[i], NULL, run, &first[i]);
        if (r != 0)
            work_fail("making a thread", r);
    }
}

void room_end_process(Room *shared)
{
    for (unsigned i = 0; i < shared->options.threads; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
    wait_state(ROOM_END); /* a process that leaves earlier has failed */
}
