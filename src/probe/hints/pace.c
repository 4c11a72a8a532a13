/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/hints/pace.h"

#include "base/util.h"

#define REST_FACTOR      32U
#define CPU_PERMILLE_MIN 100U

uint64_t hint_pace_rest_usec(uint64_t cost_usec, uint32_t cpu_permille)
{
    /* A cost of at most one day, so that nothing overflows. */
    return MIN(cost_usec, 86400000000U) * REST_FACTOR * 1000 / MAX(cpu_permille, CPU_PERMILLE_MIN);
}
