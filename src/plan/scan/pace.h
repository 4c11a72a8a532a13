/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When to look again at which thread uses the memory of a process (P8, P10, P16).
 * Source: update_task_scan_period() of Linux and numa/core v18 (Ingo Molnar, 2012), restated; the first rounds are
 * ours. */

#include "plan/scan/period.h"
#include "world/touches.h"
#include "world/world.h"

/* From one of the first rounds to the next, unless their cost wants more. In a tenth of a second a busy process touches
 * a third to a half of its blocks; shorter rounds find out sooner where threads work apart, and what is not known then
 * by more of them. */
#define SCAN_PACE_FIRST_USEC 50000U

/* So many rounds are the first ones; up to so many while they still teach something: some memory is touched so
 * seldom that one could wait for ever. Who has settled may learn again. */
#define SCAN_PACE_FIRST_ROUNDS TOUCHES_ROUNDS_MIN
#define SCAN_PACE_LEARN_ROUNDS 24U

/* Of one process. All zero: nothing is known. */
typedef struct ScanPace {
    uint64_t period_usec; /* from the last round to the next; 0: it is still in its first rounds */
    uint32_t n_rounds;    /* first ones, and what is counted as such; stops at SCAN_PACE_LEARN_ROUNDS */
    uint32_t
        near_permille;   /* most of the memory that was used from the node it lies on, since it began anew */
    uint64_t moved_usec; /* the last move it knows of */
} ScanPace;

/* What a round was. */
typedef struct ScanPaceRound {
    ScanPeriodRange range;
    ScanPeriodSeen seen;
    uint64_t n_near,
        n_far; /* what was used from the node it lies on, and the rest: without what P12 makes of it */
    uint64_t cost_usec; /* what it took of the process's time, or of ours if that is more; 0: not known */
    uint32_t strength;  /* of its convergence, 0..CONVERGE_ONE (P16) */
    bool learning;      /* who uses what is not known yet of much of it, or is being acted upon */
} ScanPaceRound;

/* After a round. The first ones keep their pace, whatever the range. The next one is at the start of the range; from
 * then on the period is adapted, and at least doubled while nine tenths are in one place and used from there. It
 * does not become longer than it takes for rounds to cost half a percent of a CPU. When less is used from near than
 * before, by more than chance may do, there are first rounds again: somebody uses other memory than he did. */
void scan_pace_round(ScanPace *pace, const ScanPaceRound *round);

/* What was found says little from now on, since its threads have begun or ended to work: first rounds again. */
void scan_pace_restart(ScanPace *pace);

/* Its home, or the node of one of its threads, was changed last at that time (0: never): if that is news, the next
 * round is as soon as at the start of the range. */
void scan_pace_moved(ScanPace *pace, const ScanPeriodRange *range, uint64_t moved_usec);

/* When that was, of a process in this group. */
uint64_t scan_pace_moved_usec(const Group *group);

uint64_t scan_pace_usec(const ScanPace *pace);

/* Fills in what the last round says: of the blocks that were touched in it, or, of evidence without blocks, the
 * averages of threads by the nodes where the kernel would have them. A block that several threads share is local on
 * any node that is at work (P12). It is learning while less than three quarters of the blocks were seen in three
 * rounds. 0 or -ENOMEM. */
int scan_pace_read(const Touches *touches, ScanPaceRound *ret);
