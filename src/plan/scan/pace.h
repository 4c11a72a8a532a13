/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When to look again at which thread uses the memory of a process (P8, P10, P16).
 * Source: update_task_scan_period() of Linux and numa/core v18 (Ingo Molnar, 2012), restated; the first
 * rounds are ours. */

#include "plan/scan/period.h"
#include "world/touches.h"
#include "world/world.h"

/* Interval of the first rounds, unless their cost demands more. In a tenth of a second a busy process touches a
 * third to a half of its blocks. Shorter rounds show sooner where threads work apart; more of them show the rest. */
#define SCAN_PACE_FIRST_USEC 50000U

/* Number of first rounds, and their limit while they still teach something: some memory is touched so rarely
 * that one could wait for ever. A settled process may learn again. */
#define SCAN_PACE_FIRST_ROUNDS TOUCHES_ROUNDS_MIN
#define SCAN_PACE_LEARN_ROUNDS 24U

/* The state of one process. All zero: nothing is known. */
typedef struct ScanPace {
    uint64_t period_usec;   /* from the last round to the next; 0: first rounds */
    uint32_t n_rounds;      /* first rounds, and others counted as such; stops at SCAN_PACE_LEARN_ROUNDS */
    uint32_t near_permille; /* largest share of memory used from its own node since that last dropped */
    uint64_t moved_usec;    /* time of the last known move */
} ScanPace;

/* What a round showed. */
typedef struct ScanPaceRound {
    ScanPeriodRange range;
    ScanPeriodSeen seen;
    uint64_t n_near,
        n_far; /* used from the node it lies on, and the rest; active nodes (P12) do not count here */
    uint64_t cost_usec; /* time of the process, or ours if that is more; 0: not known */
    uint32_t strength;  /* of convergence, 0..CONVERGE_ONE (P16) */
    bool learning;      /* users of much memory are not known yet, or memory moves to them */
} ScanPaceRound;

/* Call after a round. The first ones keep their pace, whatever the range. Then the period starts at the start of
 * the range and is adapted; it at least doubles while nine tenths are in one place and used from there. It does not
 * exceed what makes rounds cost half a percent of a CPU, a tenth of a percent once converged. If the local share
 * drops by more than chance explains, first rounds begin again: some thread uses other memory than before. */
void scan_pace_round(ScanPace *pace, const ScanPaceRound *round);

/* First rounds begin again: threads have started or stopped working, and what was found says little now. */
void scan_pace_restart(ScanPace *pace);

/* The home, or the node of a thread, last changed at `moved_usec` (0: never). If that is news, the period is cut to
 * the start of the range. */
void scan_pace_moved(ScanPace *pace, const ScanPeriodRange *range, uint64_t moved_usec);

/* When the home, or the node of a thread, last changed for a process of this group. */
uint64_t scan_pace_moved_usec(const Group *group);

uint64_t scan_pace_usec(const ScanPace *pace);

/* Fills in what the last round says: of the blocks touched in it or, for evidence without blocks, of the
 * threads' averages on the nodes the kernel prefers. A shared block is local on every active node (P12). It is
 * learning while less than three quarters of the blocks were seen in three rounds. Returns 0 or -ENOMEM. */
int scan_pace_read(const Touches *touches, ScanPaceRound *ret);
