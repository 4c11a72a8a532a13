/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Busy time is elapsed time minus idle time. The kernel knows the idle time of a CPU to the microsecond
 * (NO_HZ), but prints it in steps of 10 ms (USER_HZ). Against a fast tick of 100 ms, one step is 100
 * permille, twice the busy share below which a CPU is idle (P1, overload map). Plain differences would call
 * an idle CPU busy by 90 permille when a tick takes 109 ms and ten steps fall into it.
 *
 * Let f be the idle time that is not printed yet, 0 <= f < 10 ms. The true busy time b is then known up to
 * one step: with E = now - printed idle time, E - 10 ms < b <= E. And b never decreases. So an estimate is
 * kept and moved only as far as these bounds force it, like the play in a gear:
 *
 *     now     printed idle   E       bounds of b   estimate   busy in this tick
 *     0       0              0       -10 .. 0      0          (start)
 *     109     100            9       -1 .. 9       0          0 ms    idle, not 9 ms
 *     218     210            8       -2 .. 8       0          0 ms
 *     318     220            98      88 .. 98      88         88 ms   busy from here on; late by one step once
 *     418     220            198     188 .. 198    188        100 ms
 *
 * The estimate starts at the upper bound, so a CPU that is idle from the start is seen as idle at once.
 * Rejected: sums over two ticks, which halve the error but double the time a recall takes. */

#include "kernel/cpu-times.h"

#include "base/parse.h"
#include "base/scan.h"
#include "base/util.h"

/* The rest of "cpuN user nice system idle iowait ...\n"; Linux 2.6 added further fields one by one. */
static int scan_cpu(const char **p, CpuTime *ret)
{
    uint64_t cpu, v, idle = 0;
    unsigned n = 0;

    if (!scan_u64(p, &cpu) || cpu > PARSE_CPU_MAX)
        return -EINVAL;
    for (; **p == ' '; n++) {
        (*p)++;
        if (!scan_u64(p, &v))
            return -EINVAL;
        if ((n == 3 || n == 4) && __builtin_add_overflow(idle, v, &idle))
            return -EINVAL;
    }
    if (n < 5 || **p != '\n')
        return -EINVAL;

    (*p)++;
    *ret = (CpuTime){.cpu = (uint32_t)cpu, .idle_ticks = idle};
    return 0;
}

int cpu_times_parse(const char *text, CpuTimes *ret)
{
    const char *s = text;

    ret->n_cpus = 0;
    while (scan_word(&s, "cpu")) {
        int r;

        /* The first line is the sum over all CPUs; it has two blanks. */
        if (*s == ' ') {
            while (*s && *s != '\n')
                s++;
            if (*s++ != '\n')
                return -EINVAL;
            continue;
        }
        if (!GROW(ret->cpus, ret->capacity, ret->n_cpus + 1))
            return -ENOMEM;
        r = scan_cpu(&s, &ret->cpus[ret->n_cpus]);
        if (r < 0)
            return r;
        ret->n_cpus++;
    }
    /* Without another line after it, the list may be cut. */
    return ret->n_cpus > 0 && *s ? 0 : -EINVAL;
}

void cpu_times_done(CpuTimes *times)
{
    free(times->cpus);
    *times = (CpuTimes){0};
}

uint64_t cpu_busy_update(CpuBusy *busy, uint64_t now_nsec, uint64_t idle_ticks, uint64_t tick_nsec)
{
    /* Wraps modulo 2^64 on purpose: only differences matter. */
    int64_t upper = (int64_t)(now_nsec - idle_ticks * tick_nsec);
    int64_t lower = upper - (int64_t)tick_nsec;
    int64_t before = busy->busy_nsec;

    if (!busy->valid) {
        *busy = (CpuBusy){.valid = true, .busy_nsec = upper};
        return 0;
    }
    busy->busy_nsec = CLAMP(before, lower, upper);
    return busy->busy_nsec > before ? (uint64_t)(busy->busy_nsec - before) : 0;
}
