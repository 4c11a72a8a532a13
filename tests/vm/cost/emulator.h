/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the clock needs of QEMU that its plugin interface does not offer.
 *
 * Debian's QEMU exports its symbols, for its modules. Structure layouts and machine code are known for one build,
 * which is recognized by its build ID; every other build is refused. README.md says how to add another.
 *
 * A CPU is QEMU's CPUState. Guests run with -accel tcg,thread=single -icount shift=0,sleep=off: all CPUs take turns in
 * one thread of QEMU, "the CPUs' thread". Everything here must be called in it unless stated otherwise. */

#include <stdbool.h>
#include <stdint.h>

/* What QEMU calls after emulator_hook(). */
typedef struct EmulatorHooks {
    /* The virtual clock, used by all timers and the TSC, in nanoseconds. From any thread. */
    int64_t (*clock)(void);
    /* True when a CPU whose turn it is may execute anything before the next CPU's turn. */
    bool (*may_run)(void *cpu);
    /* A CPU gets an interrupt, from itself, another CPU or a device. From any thread. */
    void (*interrupted)(void *cpu);
} EmulatorHooks;

/* Why this QEMU is not supported, as one line, or NULL when it is. */
const char *emulator_refusal(void);

/* Installs the hooks. Call when all CPUs exist, before the first instruction. Returns NULL, or the reason for
 * a failure. */
const char *emulator_hook(const EmulatorHooks *hooks);

void *emulator_cpu(unsigned index);

/* Without this, when CPUs share code, callbacks get the index of the CPU that translated it. */
void emulator_share_code(void *cpu);

/* True when it is halted and no interrupt is pending. From any thread that has QEMU's lock. */
bool emulator_cpu_idle(void *cpu);

/* The CPU that executes in this thread, or NULL. From any thread. */
void *emulator_running_cpu(void);

/* Soon ends the turn of a CPU that executes. */
void emulator_end_turn(void *cpu);

/* Total time by which the virtual clock has been set forward because all CPUs were idle, in nanoseconds. From
 * any thread. */
int64_t emulator_skipped_nsec(void);

/* Nanoseconds from the time of the clock hook to the next timer of the virtual clock; 0: already expired; -1: none. */
int64_t emulator_deadline_nsec(void);

/* True when this thread has QEMU's lock. */
bool emulator_locked(void);
