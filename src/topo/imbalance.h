/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allowed NUMA imbalance: how many CPUs one node may run more than another before it counts (P5).
 * Source: Linux commits cb29a5c16961 and 026b98a93bbd ("sched/numa: Adjust imb_numa_nr to a better approximation
 * of memory channels", 2022), restated. */

#include "topo/topology.h"

#include <stdint.h>

/* Below this many tasks' difference an allowed imbalance is ignored entirely (NUMA_IMBALANCE_MIN, P5). */
#define IMBALANCE_MIN 2

/* imb_numa_nr of the innermost domain that holds several LLCs: `span` CPUs in it, `llc_span` CPUs per LLC.
 * One LLC per node: 1/8 of the span; several: one per LLC; never below 1. */
uint32_t imbalance_base(uint32_t span, uint32_t llc_span);

/* The same for a domain of `span` CPUs above it, where the first NUMA domain spans `first_numa_span`. */
uint32_t imbalance_scaled(uint32_t base, uint32_t span, uint32_t first_numa_span);

/* What remains of an imbalance of `imbalance` tasks towards a node that already runs `dst_running` of them, when
 * `allowed` is the domain's imb_numa_nr: 0 means it is tolerated (adjust_numa_imbalance, P5). */
uint32_t imbalance_adjust(uint32_t imbalance, uint32_t dst_running, uint32_t allowed);
