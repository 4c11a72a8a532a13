/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much processes wait for memory, by counters of the processor: which threads are counted when, and what
 * that says (P15). It finds processes that use much memory but fetch little of it: they may be anywhere.
 *
 * A miss of the last-level cache takes about 100 ns, 300 cycles at 3 GHz. A thread with several misses in
 * flight waits less than their sum. So the estimate is an upper bound and used only as that: processes with
 * few misses are let go, and nothing is concluded about others. Prefetched lines are no misses, so a stream
 * can have few; but if it really waits, it does few instructions per cycle.
 *
 * Counting costs time at each context switch of the threads, and opening and closing counters interrupts
 * their CPUs. So only some threads of some processes are counted, for a tick or a few. */

#include "policy/policy.h"
#include "world/world.h"

/* Threads counted at a time, of one process and of all; and threads begun in one tick. */
#define STALL_THREADS         8U
#define STALL_THREADS_MAX     64U
#define STALL_THREADS_BY_TICK 16U

/* Counting continues from tick to tick until the threads ran for STALL_CYCLES, some 10 ms, or until STALL_USEC_MAX. */
#define STALL_CYCLES     30000000U
#define STALL_CYCLES_MIN 1000000U
#define STALL_USEC_MAX   500000U

/* A process that waits for a quarter of its time or more counts as one of which nothing is known: the
 * estimate could be half as much if misses are expensive or its memory is remote. A choice of ours. */
#define STALL_FULL_PERMILLE 250U

/* Bytes moved by one miss. The traffic may be more, since some processors do not count prefetched lines as misses. */
#define STALL_LINE_BYTES 64U

/* Counts of some threads, in user mode. */
typedef struct StallCounts {
    uint64_t instructions, cycles, misses;
    uint64_t run_usec; /* in any mode; 0: not known */
} StallCounts;

/* What stall_next() has chosen; set `n_begun` to 0 at the beginning of a tick. */
typedef struct StallChoice {
    uint32_t n_open;  /* threads that are being counted */
    uint32_t n_begun; /* of these, since the tick began */
} StallChoice;

/* Chooses the process to count next, and up to STALL_THREADS of its threads, those that run most. Of those
 * that are due and run, it takes one never counted, else the one due for longest. The next turn is set at
 * once, by age, so the caller begins to count now or skips this turn. NULL: none is due, or too many are
 * being counted. Counts only with Mode=auto and Evidence=auto, and forgets what was counted of others. */
Process *stall_next(World *world, const PolicySet *policies, StallChoice *choice, pid_t *ret_tids,
                    size_t *ret_n);

/* Folds in counts of a process over `usec` up to now. Returns true if that is all, false to continue. */
bool stall_counted(const World *world, Process *process, const StallCounts *counts, uint64_t usec);

/* Progress of a group: instructions per cycle of its processes when last counted, times `run_permille`, what
 * they run on average; in thousandths of a CPU that does one instruction per cycle. 0: not known, since less
 * than nine tenths of the group, by CPU time, were counted after `since_usec`. Comparable only with itself. */
uint64_t stall_progress(const World *world, const Group *group, uint32_t run_permille, uint64_t since_usec);

/* Upper bound of the time spent waiting for memory, permille; -ENODATA: too few cycles, or the counters do
 * not work (no miss at all). */
int stall_estimate(const StallCounts *counts);

/* By how much less being remote counts for such a wait; permille. */
uint32_t stall_discount(uint32_t stall_permille);
