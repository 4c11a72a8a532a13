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

/* Mappings begin at huge pages, so that slices meet the same pages on every run. */
#define ALIGN_BYTES ((size_t)2 << 20)

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
    uint64_t now = room_now_nsec(), nsec = now - passes->begin_nsec;

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
    /* A thread that never got a CPU still does one step, so that every one has left its trace. */
    if (work_thread->steps > 0 && atomic_load_explicit(&room->stop, memory_order_relaxed))
        return false;
    work_thread->steps++;
    return true;
}

double work_progress(const WorkThread *work_thread)
{
    const RoomThread *thread = (const RoomThread *)work_thread;

    if (thread->quota != UINT64_MAX)
        return (double)work_thread->steps / (double)thread->quota;
    return (double)(room_now_nsec() - room->start_nsec) / (double)room->options.seconds_nsec;
}

void work_use(WorkThread *work_thread, unsigned regions)
{
    RoomThread *thread = (RoomThread *)work_thread;

    /* What it uses from the start is no change. */
    if (work_thread->steps > 0 && thread->n_changes++ == 0)
        thread->change_nsec = room_now_nsec();
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

/* Gives out the blocks of one region: each thread a share, and what it works on. */
static void map_shared(RoomThread *first, unsigned region, size_t n_blocks)
{
    WorkPart whole = {.start = map_region(n_blocks * WORK_BLOCK_BYTES), .bytes = n_blocks * WORK_BLOCK_BYTES};
    unsigned n = room->options.threads;

    for (unsigned i = 0; i < n; i++) {
        size_t begin = n_blocks * i / n, end = n_blocks * (i + 1) / n;
        WorkPart share = {whole.start + begin * WORK_BLOCK_BYTES, (end - begin) * WORK_BLOCK_BYTES};

        first[i].thread.shares[region] = share;
        first[i].thread.parts[region] = room->shape->layout == WORK_SHARED ? whole : share;
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

/* For who places only processes that have much memory. */
static void touch_ballast(void)
{
    size_t bytes = room->options.ballast_bytes;

    if (bytes > 0)
        memset(map_region(bytes), 1, bytes);
}

static void fill_all(const RoomThread *first)
{
    int r = place_begin(room, first->process);

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

static void *run(void *argument)
{
    RoomThread *thread = argument;
    unsigned number = (unsigned)(thread - room->threads);

    if (room->options.bind) {
        int r = place_bind(number, room->n_threads);

        if (r < 0)
            work_fail("binding a thread", -r);
    }
    if (room->options.placement == PLACEMENT_LOCAL)
        fill(thread);
    thread->pass_steps = room->shape->pass_steps;
    if (!thread->pass_steps)
        thread->pass_steps = thread->thread.parts[0].bytes / WORK_BLOCK_BYTES;
    thread->pass_left = thread->pass_steps;
    note_node(thread);

    count_in(&room->n_ready);
    wait_state(ROOM_GO);
    thread->passes.begin_nsec = room->start_nsec;
    room->shape->run(&thread->thread);
    thread->end_nsec = room_now_nsec();
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
    wait_state(ROOM_END); /* who leaves earlier has failed */
}
