/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the clock needs of QEMU that is not in its plugin interface.
 *
 * Debian's QEMU exports its symbols, for its modules. What is a matter of structures and of machine code holds for one
 * build, which is known by its build ID; every other is refused. README.md says how another is taken up.
 *
 * A CPU is QEMU's CPUState. Guests run with -accel tcg,thread=single -icount shift=0,sleep=off: all CPUs take turns
 * in one thread of QEMU, "the CPUs' thread", in which everything here is to be called unless it says otherwise. */

#include <stdbool.h>
#include <stdint.h>

/* What QEMU asks from then on. */
typedef struct EmulatorHooks {
    /* The virtual clock, that of all timers and of the TSC: nanoseconds. From any thread. */
    int64_t (*clock)(void);
    /* Whether a CPU whose turn it is may execute anything before the next one's. */
    bool (*may_run)(void *cpu);
    /* A CPU gets an interrupt, of its own or of another CPU's making, or a device's. From any thread. */
    void (*interrupted)(void *cpu);
} EmulatorHooks;

/* Why this QEMU is not served: one line, or NULL when it is. */
const char *emulator_refusal(void);

/* When all CPUs are there, before the first instruction. Returns why it cannot be, or NULL. */
const char *emulator_hook(const EmulatorHooks *hooks);

void *emulator_cpu(unsigned index);

/* Without this the index that callbacks get is that of the CPU which translated the code, where CPUs share it. */
void emulator_share_code(void *cpu);

/* Whether it is halted and has no interrupt to wake up for. From any thread that has QEMU's lock. */
bool emulator_cpu_idle(void *cpu);

/* The CPU that executes in this thread, or NULL. From any thread. */
void *emulator_running_cpu(void);

/* Ends the turn of a CPU that executes, soon. */
void emulator_end_turn(void *cpu);

/* What the virtual clock has been set forward by because nobody had anything to do, in sum: nanoseconds. From any
 * thread. */
int64_t emulator_skipped_nsec(void);

/* Nanoseconds from what the clock hook tells to the next timer of the virtual clock, 0 when it is over; -1: none. */
int64_t emulator_deadline_nsec(void);

/* Whether this thread has QEMU's lock. */
bool emulator_locked(void);
