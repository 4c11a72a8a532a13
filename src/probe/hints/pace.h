/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What write hint faults may cost (P8). */

#include <stdint.h>

/* Longest time for which a round may stop the whole process; a longer round is not made. */
#define HINT_PACE_STALL_USEC 20000U

/* Pause after a round that cost the process `cost_usec`: until it has used 32 times that in CPU time (P8), at
 * `cpu_permille` of one CPU, which makes 3 %. A sleeping process counts as using a tenth of a CPU. */
uint64_t hint_pace_rest_usec(uint64_t cost_usec, uint32_t cpu_permille);
