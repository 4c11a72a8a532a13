/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P5 restated. For each scheduling domain above the last-level cache, the kernel has a number of tasks by which
 * one node may run more than another. Using more memory channels is worth spreading for; separating a few tasks
 * that communicate is not. One eighth of a node's CPUs approximates one task per memory channel. Where a node
 * has several LLCs, the number is one task per LLC.
 *
 * Worked example, Zen 3 with two sockets of 128 CPUs, 16 per LLC, in NPS2 mode (64 CPUs per node): base 64/16 =
 * 4. The first NUMA domain is the socket, 128 CPUs, factor 128/128 = 1: 4. The system, 256 CPUs, factor 2: 8. */

#include "topo/imbalance.h"

uint32_t imbalance_base(uint32_t span, uint32_t llc_span)
{
    uint32_t n_llcs = llc_span ? span / llc_span : 1;

    return MAX(n_llcs > 1 ? n_llcs : span / 8, 1U);
}

uint32_t imbalance_scaled(uint32_t base, uint32_t span, uint32_t first_numa_span)
{
    return base * MAX(first_numa_span ? span / first_numa_span : 1, 1U);
}

uint32_t imbalance_adjust(uint32_t imbalance, uint32_t dst_running, uint32_t allowed)
{
    if (dst_running > allowed)
        return imbalance;
    return imbalance <= IMBALANCE_MIN ? 0 : imbalance;
}
