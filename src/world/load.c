/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters arrive as differences over one tick. Everything here is integer arithmetic, so that the same differences
 * give the same loads on every machine (I12).
 *
 * Idle spells are followed at the grain of a tick: a spell starts with the first tick that was idle and ends with the
 * last one before a busy tick. Ticks of 100 ms: idle, idle, idle, busy gives one spell of 300 ms, noticed at the end
 * of the busy one. Shorter spells inside a tick are not seen; they are too short to be lent anyway. */

#include "world/load.h"

#include "base/time.h"

uint16_t load_permille(uint64_t delta_nsec, uint64_t interval_nsec)
{
    uint64_t v;

    if (interval_nsec == 0)
        return 0;
    /* The product overflows only beyond 213 days; a thousandth of such an interval is precise enough. */
    if (__builtin_mul_overflow(delta_nsec, 1000, &v))
        v = delta_nsec / MAX(interval_nsec / 1000, 1U);
    else
        v /= interval_nsec;
    return (uint16_t)MIN(v, UINT16_MAX);
}

uint32_t load_ewma(uint32_t old, uint32_t sample)
{
    int64_t step = (int64_t)sample - old;

    step = step > 0 ? (step + 7) / 8 : (step - 7) / 8;
    return (uint32_t)(old + step);
}

static uint16_t one_cpu_permille(uint64_t delta_nsec, uint64_t interval_nsec)
{
    return MIN(load_permille(delta_nsec, interval_nsec), LOAD_FULL_PERMILLE);
}

void load_task(Task *task, uint64_t run_nsec, uint64_t wait_nsec, uint64_t interval_nsec)
{
    if (interval_nsec == 0)
        return;

    task->run_before_permille = task->run_permille;
    task->wait_before_permille = task->wait_permille;
    task->run_permille = one_cpu_permille(run_nsec, interval_nsec);
    task->wait_permille = one_cpu_permille(wait_nsec, interval_nsec);
    task->run_ewma_permille = (uint16_t)load_ewma(task->run_ewma_permille, task->run_permille);
    task->wait_ewma_permille = (uint16_t)load_ewma(task->wait_ewma_permille, task->wait_permille);
}

/* `start_usec` is where the tick began that has just been measured. */
static void follow_idle(CpuLoad *cpu, uint64_t start_usec)
{
    bool idle = cpu->busy_permille < LOAD_IDLE_PERMILLE;
    uint32_t spell_usec;

    if (idle && cpu->idle_since_usec == 0) {
        cpu->idle_since_usec = MAX(start_usec, 1U); /* 0 would mean "not idle" */
    } else if (!idle && cpu->idle_since_usec > 0) {
        spell_usec = start_usec > cpu->idle_since_usec
                         ? (uint32_t)MIN(start_usec - cpu->idle_since_usec, UINT32_MAX)
                         : 0;
        /* The first spell has nothing to be averaged with. */
        cpu->idle_ewma_usec = cpu->idle_ewma_usec ? load_ewma(cpu->idle_ewma_usec, spell_usec) : spell_usec;
        cpu->idle_since_usec = 0;
    }
}

void load_cpu(CpuLoad *cpu, uint64_t now_usec, uint64_t busy_nsec, uint64_t wait_nsec, bool wait_known,
              uint64_t interval_nsec)
{
    uint64_t interval_usec = interval_nsec / NSEC_PER_USEC;

    if (interval_nsec == 0)
        return;

    cpu->busy_before_permille = cpu->busy_permille;
    cpu->wait_before_permille = cpu->wait_permille;
    cpu->busy_permille = one_cpu_permille(busy_nsec, interval_nsec);
    cpu->wait_permille = wait_known ? load_permille(wait_nsec, interval_nsec) : 0;
    cpu->wait_known = wait_known;
    follow_idle(cpu, now_usec > interval_usec ? now_usec - interval_usec : 0);
}
