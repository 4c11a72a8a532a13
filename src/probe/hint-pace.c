/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/hint-pace.h"

#include "base/util.h"

#define REST_FACTOR      32U
#define CPU_PERMILLE_MIN 100U

uint64_t hint_pace_next(HintPace *pace, uint64_t n_local, uint64_t n_remote)
{
    if (pace->period_usec == 0)
        pace->period_usec = HINT_PACE_MIN_USEC;
    if (n_local + n_remote == 0)
        return pace->period_usec;
    if (n_local * 1000 < (n_local + n_remote) * HINT_PACE_QUIET_PERMILLE) {
        *pace = (HintPace){.period_usec = HINT_PACE_MIN_USEC};
    } else if (++pace->n_quiet >= HINT_PACE_QUIET_ROUNDS) {
        pace->n_quiet = HINT_PACE_QUIET_ROUNDS;
        pace->period_usec = MIN(pace->period_usec * 8 / 5, HINT_PACE_MAX_USEC);
    }
    return pace->period_usec;
}

uint64_t hint_pace_rest_usec(uint64_t cost_usec, uint32_t cpu_permille)
{
    /* A day of cost, so that nothing overflows. */
    return MIN(cost_usec, 86400000000U) * REST_FACTOR * 1000 / MAX(cpu_permille, CPU_PERMILLE_MIN);
}
