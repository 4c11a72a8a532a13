/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The frame of a measured workload.
 *
 *    first process                     each process (the first itself when there is only one)
 *    -------------                     ------------------------------------------------------
 *    forks                             maps its regions, its main thread fills them, makes the threads
 *    waits for all    <-- n_ready ---  threads wait
 *    GO               -------------->  run
 *    samples, waits   <- n_finished -  threads wait
 *    CHECK            -------------->  check
 *    waits for all    <- n_checked --  threads end, the process ends
 *
 * The first process does not work: it sleeps, and takes samples. When a process ends early, for whatever
 * reason, the first one kills the others and fails. When the first one is killed, the others die with it. */

#include "work.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "room.h"
#include "timing.h"
#include "window.h"

/* When the first sample is taken. By then the threads run where the kernel first wants them. */
#define SETTLE_NSEC UINT64_C(50000000)

/* How long a signal may go unnoticed if it arrives just before a wait begins. */
#define WAIT_MAX_NSEC UINT64_C(200000000)

_Static_assert(ROOM_WINDOW_MAX + 1 < WINDOW_MARKS, "both marks of a window");

static Room *room;

void room_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until_nsec)
{
    uint32_t seen = atomic_load(word);
    uint64_t now = timing_now_nsec(), nsec = WAIT_MAX_NSEC;
    struct timespec timeout;

    if (seen >= value || (until_nsec && until_nsec <= now))
        return;
    if (until_nsec && until_nsec - now < nsec)
        nsec = until_nsec - now;
    timeout = (struct timespec){.tv_nsec = (long)nsec};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

void room_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void work_fail(const char *what, int error)
{
    (void)fprintf(stderr, "%s: %s: %s\n", room->shape->name, what, strerror(error));
    _exit(EXIT_FAILURE);
}

/* The room is shared: whichever process gets the signal, all of them stop. */
static void on_stop(int signal_number)
{
    (void)signal_number;
    atomic_store(&room->interrupted, 1);
    atomic_store(&room->stop, 1);
}

/* Only interrupts a wait. */
static void on_child(int signal_number)
{
    (void)signal_number;
}

/* Waits until all threads have counted themselves in `count`. Returns false when a process has ended. */
static bool wait_all(_Atomic uint32_t *count)
{
    while (atomic_load(count) < room->n_threads) {
        room_wait(count, room->n_threads, 0);
        if (!fork_all_alive(room))
            return false;
    }
    return true;
}

static void set_state(RoomState state)
{
    atomic_store(&room->state, state);
    room_wake(&room->state);
}

/* For the kernel, pages being moved and pages marked for hint faults are on no node. When most pages are, the
 * sample says nothing about locality. */
static void note_sample(const PlaceShares *shares, uint64_t now, RoomResult *result)
{
    size_t n = result->n_samples;
    RoomSample *sample;

    if ((n & (n - 1)) == 0) { /* all places are taken */
        RoomSample *more = realloc(result->samples, (n ? 2 * n : 1) * sizeof(*more));

        if (!more)
            work_fail("memory for samples", ENOMEM);
        result->samples = more;
    }
    sample = &result->samples[result->n_samples++];
    *sample = (RoomSample){.nsec = now - room->start_nsec, .local = -1};
    for (unsigned i = 0; i < room->n_threads; i++)
        sample->steps += atomic_load_explicit(&room->threads[i].steps, memory_order_relaxed);
    if (shares->n_pages * 2 > shares->n_asked)
        sample->local = (double)shares->n_local / (double)shares->n_pages;
}

/* A window that begins late measures the settled state. Before it opens, the threads are still being placed. When the
 * first thread has ended, its CPU is free for others, so the window closes. Work that ends sooner has no window. */
typedef struct LateWindow {
    uint64_t open_nsec; /* when the first mark is due; UINT64_MAX: not any more */
    bool open;
} LateWindow;

static LateWindow late_window(const RoomOptions *options)
{
    bool late = options->window >= 0 && options->window_after_nsec;

    return (LateWindow){.open_nsec = late ? room->start_nsec + options->window_after_nsec : UINT64_MAX};
}

static void tend_late(LateWindow *late, uint64_t now)
{
    bool ended = atomic_load(&room->n_finished) > 0;

    if (late->open && ended)
        window_mark((unsigned)room->options.window + 1);
    late->open = !ended && (late->open || now >= late->open_nsec);
    if (now < late->open_nsec && !ended)
        return;
    if (now >= late->open_nsec && late->open)
        window_mark((unsigned)room->options.window);
    late->open_nsec = UINT64_MAX;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* From GO until all threads have finished. */
static bool watch(RoomResult *result)
{
    const RoomOptions *options = &room->options;
    uint64_t period = options->sample_hz > 0 ? (uint64_t)(1e9 / options->sample_hz) : 0;
    uint64_t next = room->start_nsec + SETTLE_NSEC;
    uint64_t deadline = options->seconds_nsec ? room->start_nsec + options->seconds_nsec : UINT64_MAX;
    LateWindow late = late_window(options);
    bool first = true;

    for (;;) {
        bool finished = atomic_load(&room->n_finished) >= room->n_threads;
        uint64_t now = timing_now_nsec();
        PlaceShares shares;

        if (!fork_all_alive(room))
            return false;
        if (now >= deadline) {
            atomic_store(&room->stop, 1);
            room_wake(&room->stop);
            deadline = UINT64_MAX;
        }
        tend_late(&late, now);
        if (now >= next || (finished && first)) {
            place_query(room, &shares);
            if (first)
                result->start = shares;
            if (period)
                note_sample(&shares, now, result);
            first = false;
            next = period ? now + period : UINT64_MAX;
        }
        if (finished)
            return true;
        room_wait(&room->n_finished, room->n_threads, earliest(late.open_nsec, earliest(next, deadline)));
    }
}

/* True when the data adds up to the steps that the threads counted. */
static bool data_good(void)
{
    unsigned long long steps = 0, sum = 0, n_errors = 0, expected;

    for (unsigned i = 0; i < room->n_threads; i++) {
        steps += room->threads[i].thread.steps;
        sum += room->threads[i].thread.sum;
        n_errors += room->threads[i].thread.n_errors;
    }
    expected = steps * room->shape->step_sum;
    if (n_errors > 0)
        (void)fprintf(stderr, "%s: %llu places in the data are damaged\n", room->shape->name, n_errors);
    else if (sum != expected)
        (void)fprintf(stderr, "%s: the data add up to %llu instead of %llu\n", room->shape->name, sum,
                      expected);
    return n_errors == 0 && sum == expected;
}

/* In a guest whose memory has prices, only the measured part pays them, and two marks enclose its counters. */
static void open_window(void)
{
    if (room->options.window < 0)
        return;
    window_on();
    if (!room->options.window_after_nsec)
        window_mark((unsigned)room->options.window);
}

static void close_window(void)
{
    if (room->options.window < 0)
        return;
    if (!room->options.window_after_nsec)
        window_mark((unsigned)room->options.window + 1);
    window_off();
}

/* What the first process does besides working, or instead of it. */
static bool direct(RoomResult *result)
{
    bool finished;

    if (!wait_all(&room->n_ready))
        return false;
    open_window();
    room->start_nsec = timing_now_nsec();
    set_state(ROOM_GO);
    finished = watch(result);
    close_window();
    if (!finished)
        return false;
    result->complete = !atomic_load(&room->interrupted);
    place_query(room, &result->end);
    if (room->options.sample_hz > 0)
        note_sample(&result->end, timing_now_nsec(), result);
    set_state(ROOM_CHECK);
    if (!wait_all(&room->n_checked))
        return false;
    set_state(ROOM_END);
    return true;
}

static bool run_all(RoomResult *result)
{
    if (room->options.processes == 1) {
        room->pids[0] = getpid();
        room_start_process(room, 0);
        if (!direct(result))
            return false;
        room_end_process(room);
        return true;
    }
    if (!fork_all(room) || !direct(result)) {
        fork_kill_all(room);
        return false;
    }
    return fork_reap_all(room);
}

static void make_room(const WorkShape *shape, const RoomOptions *options)
{
    unsigned n_threads = options->processes * options->threads;
    double steps = (double)shape->steps * options->scale;
    void *p = mmap(NULL, sizeof(Room) + n_threads * sizeof(RoomThread), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror(shape->name);
        exit(EXIT_FAILURE);
    }
    room = p;
    room->shape = shape;
    room->options = *options;
    room->n_threads = n_threads;
    room->home = place_home();
    for (unsigned i = 0; i < n_threads; i++) {
        RoomThread *thread = &room->threads[i];

        thread->thread.process = i / options->threads;
        thread->thread.index = i % options->threads;
        thread->thread.n_threads = options->threads;
        thread->thread.extra = options->extra;
        thread->thread.random_order = options->random_order;
        thread->quota = options->seconds_nsec ? UINT64_MAX : steps < 1 ? 1 : (uint64_t)steps;
        thread->used = (1U << shape->n_regions) - 1;
    }
}

int work_main(const WorkShape *shape, int argc, char **argv)
{
    struct sigaction stop = {.sa_handler = on_stop}, child = {.sa_handler = on_child};
    RoomOptions options;
    RoomResult result = {0};
    bool good;

    room_options(shape, argc, argv, &options);
    make_room(shape, &options);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGCHLD, &child, NULL);
    good = run_all(&result) && data_good();
    if (good)
        room_print(room, &result);
    free(result.samples);
    return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
