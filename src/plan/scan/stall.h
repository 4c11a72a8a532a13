/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much processes wait for memory, by counters of the processor: who is counted when, and what that says (P15). It
 * tells those apart that use much memory and fetch little of it: they may be anywhere.
 *
 * A miss of the last-level cache takes about 100 ns, 300 cycles at 3 GHz. A thread that has several of them under way
 * at once waits less than their sum, so that is how much it waits at most, and is used for nothing else: who has few of
 * them is let go, and of the others nobody knows. What prefetchers bring is no miss, so a stream can have few; it does
 * few instructions by cycle then, when it waits indeed.
 *
 * Counting costs something at each context switch of these threads, and opening and closing the counters interrupts
 * their CPUs. So it is some threads of some processes, for a tick or a few. */

#include "policy/policy.h"
#include "world/world.h"

/* Threads of one process that are counted at a time, and of all; and for how many it may begin in one tick. */
#define STALL_THREADS         8U
#define STALL_THREADS_MAX     64U
#define STALL_THREADS_BY_TICK 16U

/* It is counted from tick to tick until they have run for this number of cycles, some 10 ms, or for so long. */
#define STALL_CYCLES     30000000U
#define STALL_CYCLES_MIN 1000000U
#define STALL_USEC_MAX   500000U

/* Who waits for a quarter of its time or more counts as all do of whom nothing is known: it could be half as much if
 * misses are dear or its memory is far. A choice of ours. */
#define STALL_FULL_PERMILLE 250U

/* What one miss moves. */
#define STALL_LINE_BYTES 64U

/* What these threads did, in user mode. */
typedef struct StallCounts {
    uint64_t instructions, cycles, misses;
    uint64_t run_usec; /* in any mode; 0: not known */
} StallCounts;

/* What stall_next() has chosen up to now; `n_begun` 0 at the beginning of a tick. */
typedef struct StallChoice {
    uint32_t n_open;  /* threads that are being counted */
    uint32_t n_begun; /* of these, since the tick began */
} StallChoice;

/* The process whose threads are to be counted next, and which threads, up to STALL_THREADS: of those that are due and
 * run, one that never was, else the one that has been due for longest, and of that the threads that run most. It is due
 * again later, by its age, so the caller begins to count it at once, or not this time. NULL: none is due, or too many
 * are being counted. Only with Mode=auto and Evidence=auto; what was counted of others before is forgotten. */
Process *stall_next(World *world, const PolicySet *policies, StallChoice *choice, pid_t *ret_tids,
                    size_t *ret_n);

/* Folds in what was counted of a process for so long up to now. Returns whether that is all; else it goes on. */
bool stall_counted(const World *world, Process *process, const StallCounts *counts, uint64_t usec);

/* How fast a group gets on: how many instructions by cycle its processes did when they were counted last, times what
 * they run on average, `run_permille`; in thousandths of a CPU that does one instruction by cycle. 0: not known,
 * since less than nine tenths of it, by CPU time, have been counted since. It is comparable only with itself. */
uint64_t stall_progress(const World *world, const Group *group, uint32_t run_permille, uint64_t since_usec);

/* What whoever did this moves between memory and caches, by the lines it misses; MB/s while it runs. Some processors
 * count what prefetchers bring as misses and some do not, so it may be more. 0: not known. */
uint32_t stall_traffic(const StallCounts *counts);

/* For how much of its time at most whoever did this waits for memory, in permille; -ENODATA: it did too little to say,
 * or the counters do not work (a thread without a single miss). */
int stall_estimate(const StallCounts *counts);

/* How much less it counts for who waits so much to be far from memory; permille. */
uint32_t stall_discount(uint32_t stall_permille);
