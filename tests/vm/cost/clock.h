/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The guest's clock: what its CPUs have executed and what that costs, whatever the host does.
 *
 * Each CPU has a time of its own. QEMU's CPUs take turns in one thread; a turn lasts until the CPU's time reaches the
 * end of a slice that is common to all, so they run in parallel in their time, no more than a slice apart. The clock
 * that timers see is the time of the CPU that is behind, of those that are not halted, and stops at each timer on its
 * way. A CPU reads its own. When all are halted, the time to the next timer is passed over, and a CPU that is woken
 * takes over the time of who woke it.
 *
 *     slice       |----------------|----------------|
 *     CPU 0       ================>| its turn is over
 *     CPU 1       =====>  halted until CPU 0 or a timer wakes it
 *     CPU 2       =======>         | its turn: may run to the end of the slice
 *     the clock           ^ the time of CPU 2
 *
 * What is left of a slice is a word of each CPU that translated code counts down by itself. All in picoseconds. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ClockCpu {
    int64_t left_psec; /* to the end of the slice; 0 or less: its turn is over */
    void *cpu;         /* QEMU's */
    bool was_idle;
    uint32_t turns;
    uint64_t wakes; /* from being halted */
} ClockCpu;

/* Takes the clock over from QEMU, with the time it shows. `cpus` are those of all vCPUs in order, borrowed for good;
 * their `left_psec` is set. `wake_psec`: from an interrupt to the first instruction of a CPU that was halted.
 * Returns NULL or a line that says what is wrong. */
const char *clock_start(ClockCpu *const *cpus, unsigned n_cpus, int64_t slice_psec, int64_t wake_psec);

/* Time that a running CPU takes. */
void clock_take(ClockCpu *c, int64_t psec);

/* The time of a CPU. */
int64_t clock_cpu_psec(const ClockCpu *c);

/* What QEMU and the guest see: the time of the CPU that runs in this thread, or else of the whole guest. From any
 * thread. */
int64_t clock_now_psec(void);
