/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When to make write hint faults again (P8, P10). */

#include <stdint.h>

/* The first rounds are this far apart: in a tenth of a second a busy process touches a third to a half of its blocks. */
#define HINT_PACE_MIN_USEC 100000U
#define HINT_PACE_MAX_USEC 2000000U

/* After so many rounds in a row in which so much was local the next one comes later, by 8/5. */
#define HINT_PACE_QUIET_ROUNDS   3U
#define HINT_PACE_QUIET_PERMILLE 900U

/* A round that stops the whole process for longer is not made: one stall may last 20 ms. */
#define HINT_PACE_STALL_USEC 20000U

typedef struct HintPace {
    uint64_t period_usec; /* 0: not begun */
    uint32_t n_quiet;
} HintPace;

/* The period after a round that found so many local and remote blocks. One with less local takes it back to the start at
 * once. */
uint64_t hint_pace_next(HintPace *pace, uint64_t n_local, uint64_t n_remote);

/* How long to wait after a round that cost the process `cost_usec`, if it uses `cpu_permille` of one CPU: at least 32 times
 * that of its CPU time (P8), which makes 3 %. One that sleeps counts as a tenth of a CPU. */
uint64_t hint_pace_rest_usec(uint64_t cost_usec, uint32_t cpu_permille);
