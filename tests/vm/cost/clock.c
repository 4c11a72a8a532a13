/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "clock.h"

#include "emulator.h"

#include <pthread.h>

#define PSEC_PER_NSEC 1000

static struct {
    ClockCpu *const *cpus;
    unsigned n_cpus;
    int64_t slice_psec;
    int64_t wake_psec;
    pthread_t thread;     /* the CPUs' thread */
    int64_t guest_psec;   /* atomic: all threads use it */
    int64_t skipped_nsec; /* skips already added to the clock: atomic */
    int64_t end_psec;     /* end of the slice */
    bool advancing;
    bool ran; /* a CPU has had a turn since the slice was set */
} the;

int64_t clock_cpu_psec(const ClockCpu *c)
{
    return the.end_psec - c->left_psec;
}

static void set_cpu_psec(ClockCpu *c, int64_t psec)
{
    c->left_psec = the.end_psec - psec;
}

static int64_t guest_psec(void)
{
    return __atomic_load_n(&the.guest_psec, __ATOMIC_SEQ_CST);
}

static bool in_cpus_thread(void)
{
    return pthread_equal(pthread_self(), the.thread);
}

/* The CPU that runs in this thread; NULL when there is none. */
static ClockCpu *running(void)
{
    void *cpu = in_cpus_thread() ? emulator_running_cpu() : NULL;

    for (unsigned i = 0; cpu && i < the.n_cpus; i++) {
        if (the.cpus[i]->cpu == cpu)
            return the.cpus[i];
    }
    return NULL;
}

/* QEMU skips idle time by a bias of its own clock, which is added here. */
static void follow_skips(void)
{
    int64_t skipped = emulator_skipped_nsec();
    int64_t known = __atomic_load_n(&the.skipped_nsec, __ATOMIC_SEQ_CST);

    if (skipped != known && __atomic_compare_exchange_n(&the.skipped_nsec, &known, skipped, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        (void)__atomic_add_fetch(&the.guest_psec, (skipped - known) * PSEC_PER_NSEC, __ATOMIC_SEQ_CST);
}

/* The lowest time of the CPUs that are not idle; INT64_MAX when all are idle. A CPU that is no longer idle
 * does not start before the clock. */
static int64_t behind_psec(void)
{
    int64_t first = INT64_MAX, now = guest_psec();

    for (unsigned i = 0; i < the.n_cpus; i++) {
        ClockCpu *c = the.cpus[i];
        int64_t psec;

        if (emulator_cpu_idle(c->cpu)) {
            c->was_idle = true;
            continue;
        }
        if (c->was_idle && clock_cpu_psec(c) < now)
            set_cpu_psec(c, now);
        c->was_idle = false;
        psec = clock_cpu_psec(c);
        first = psec < first ? psec : first;
    }
    return first;
}

static void set_end(int64_t psec)
{
    for (unsigned i = 0; i < the.n_cpus; i++)
        the.cpus[i]->left_psec += psec - the.end_psec;
    the.end_psec = psec;
}

/* Between two rounds of turns: moves the clock up to the CPU that is furthest behind, and sets the end of the
 * next slice, neither past the next timer. In the CPUs' thread. */
static void advance(void)
{
    int64_t behind = behind_psec(), now = guest_psec(), deadline_nsec, timer = INT64_MAX, end;

    the.advancing = true;
    deadline_nsec = emulator_deadline_nsec();
    the.advancing = false;
    /* Timers have whole nanoseconds. */
    if (deadline_nsec >= 0)
        timer = (now / PSEC_PER_NSEC + deadline_nsec) * PSEC_PER_NSEC;
    if (behind != INT64_MAX) {
        behind = behind < timer ? behind : timer;
        if (behind > now) {
            now = behind;
            __atomic_store_n(&the.guest_psec, now, __ATOMIC_SEQ_CST);
        }
    }
    end = now + the.slice_psec;
    set_end(end < timer ? end : timer);
}

int64_t clock_now_psec(void)
{
    const ClockCpu *c;

    follow_skips();
    c = running();
    if (c)
        return clock_cpu_psec(c);
    /* QEMU reads the clock between two rounds. */
    if (the.ran && !the.advancing && in_cpus_thread() && emulator_locked()) {
        the.ran = false;
        advance();
    }
    return guest_psec();
}

static int64_t clock_nsec(void)
{
    return clock_now_psec() / PSEC_PER_NSEC;
}

static bool may_run(void *cpu)
{
    the.ran = true;
    for (unsigned i = 0; i < the.n_cpus; i++) {
        if (the.cpus[i]->cpu == cpu && the.cpus[i]->left_psec > 0) {
            the.cpus[i]->turns++;
            return true;
        }
    }
    return false;
}

static void interrupted(void *cpu)
{
    const ClockCpu *by;
    int64_t from;

    follow_skips();
    by = running();
    from = (by ? clock_cpu_psec(by) : guest_psec()) + the.wake_psec;
    for (unsigned i = 0; i < the.n_cpus; i++) {
        ClockCpu *c = the.cpus[i];

        if (c->cpu != cpu || !emulator_cpu_idle(cpu))
            continue;
        if (clock_cpu_psec(c) < from)
            set_cpu_psec(c, from);
        c->wakes++;
    }
}

void clock_take(ClockCpu *c, int64_t psec)
{
    c->left_psec -= psec;
    if (c->left_psec <= 0)
        emulator_end_turn(c->cpu);
}

const char *clock_start(ClockCpu *const *cpus, unsigned n_cpus, int64_t slice_psec, int64_t wake_psec)
{
    static const EmulatorHooks hooks = {.clock = clock_nsec, .may_run = may_run, .interrupted = interrupted};
    int64_t skipped = emulator_skipped_nsec();

    the.cpus = cpus;
    the.n_cpus = n_cpus;
    the.slice_psec = slice_psec;
    the.wake_psec = wake_psec;
    the.thread = pthread_self();
    the.skipped_nsec = skipped;
    /* No instruction was executed yet, so QEMU's clock is the sum of its skips. */
    the.guest_psec = the.end_psec = skipped * PSEC_PER_NSEC;
    for (unsigned i = 0; i < n_cpus; i++)
        cpus[i]->left_psec = 0;
    return emulator_hook(&hooks);
}
