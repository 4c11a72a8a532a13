/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The guest's clock: what its CPUs have executed and what that costs, independent of the host.
 *
 * Each CPU has a time of its own. QEMU's CPUs take turns in one thread. A turn lasts until the CPU's time reaches the
 * end of a slice that is common to all, so in their own time they run in parallel, at most a slice apart. The clock
 * that timers see is the lowest time of the CPUs that are not halted, and stops at each timer on its way. A CPU reads
 * its own time. When all are halted, the time to the next timer is skipped. A CPU that is woken continues from the
 * time of the CPU that woke it.
 *
 *     slice       |----------------|----------------|
 *     CPU 0       ================>| its turn is over
 *     CPU 1       =====>  halted until CPU 0 or a timer wakes it
 *     CPU 2       =======>         | its turn: may run to the end of the slice
 *     the clock           ^ the time of CPU 2
 *
 * The rest of the slice is a word of each CPU, which translated code counts down. All times are in picoseconds. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ClockCpu {
    int64_t left_psec; /* to the end of the slice; 0 or less: the turn is over */
    void *cpu;         /* QEMU's CPUState */
    bool was_idle;
    uint32_t turns;
    uint64_t wakes; /* from being halted */
} ClockCpu;

/* Takes over the clock from QEMU, at its current time. `cpus` are those of all vCPUs in order, borrowed for
 * good; their `left_psec` is set. `wake_psec`: time from an interrupt to the first instruction of a halted
 * CPU. Returns NULL, or a line that says what is wrong. */
const char *clock_start(ClockCpu *const *cpus, unsigned n_cpus, int64_t slice_psec, int64_t wake_psec);

/* Charges time to a running CPU. */
void clock_take(ClockCpu *c, int64_t psec);

/* The CPU's own time. */
int64_t clock_cpu_psec(const ClockCpu *c);

/* What QEMU and the guest see: the time of the CPU that runs in this thread, or otherwise of the whole guest.
 * May be called from any thread. */
int64_t clock_now_psec(void);
