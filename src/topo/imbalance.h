/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allowed NUMA imbalance: how many more tasks one node may run than another before it counts (P5). Source:
 * Linux commits cb29a5c16961 and 026b98a93bbd ("sched/numa: Adjust imb_numa_nr to a better approximation of
 * memory channels", 2022), restated. */

#include "topo/topology.h"

#include <stdint.h>

/* An allowed imbalance up to this many tasks is ignored entirely (NUMA_IMBALANCE_MIN, P5). */
#define IMBALANCE_MIN 2

/* Returns imb_numa_nr of the innermost domain that holds several LLCs, with `span` CPUs in it and `llc_span`
 * CPUs per LLC. One LLC per node: 1/8 of the span; several: one task per LLC; never below 1. */
uint32_t imbalance_base(uint32_t span, uint32_t llc_span);

/* Returns imb_numa_nr of a domain of `span` CPUs above that one. `first_numa_span` is the span of the first
 * NUMA domain. */
uint32_t imbalance_scaled(uint32_t base, uint32_t span, uint32_t first_numa_span);

/* Returns the part of an imbalance of `imbalance` tasks that counts, if the destination node already runs
 * `dst_running` tasks and `allowed` is the domain's imb_numa_nr. 0: it is tolerated (adjust_numa_imbalance, P5). */
uint32_t imbalance_adjust(uint32_t imbalance, uint32_t dst_running, uint32_t allowed);
