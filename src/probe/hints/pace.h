/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What write hint faults may cost (P8). */

#include <stdint.h>

/* A round that stops the whole process for longer is not made: one stall may last 20 ms. */
#define HINT_PACE_STALL_USEC 20000U

/* How long to wait after a round that cost the process `cost_usec`, if it uses `cpu_permille` of one CPU: at least
 * 32 times that of its CPU time (P8), which makes 3 %. One that sleeps counts as a tenth of a CPU. */
uint64_t hint_pace_rest_usec(uint64_t cost_usec, uint32_t cpu_permille);
