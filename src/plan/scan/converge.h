/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How far a task or group has come together on one node, and what follows from it (P16).
 * Source: numa/core v18 (Ingo Molnar, 2012), restated; freezing and thawing are ours. */

#include "world/touches.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>

#define CONVERGE_ONE    1024U /* everything on one node */
#define CONVERGE_FREEZE 921U  /* 0.90, as in v18 */
#define CONVERGE_THAW   768U  /* 0.75: far enough below that a steady mixture cannot cross both */

/* The largest amount's share of all, 0..CONVERGE_ONE; 0 if all are 0. Amounts, such as bytes per node, are
 * below 2^50. *ret_node is its node, the lowest in a tie, or NODE_NONE. */
uint32_t converge_share(const uint64_t *amounts, uint32_t n_nodes, NodeIx *ret_node);

/* Whether a group is frozen now, given whether it was. */
bool converge_is_frozen(bool frozen, uint32_t strength);

/* The strongest node's share of the average accesses of all threads of a process. */
uint32_t converge_touches(const Touches *touches, NodeIx *ret_node);

/* The strength of a process: converge_touches(), or, if some thread has a home node, the share of local memory in what
 * such threads use. */
uint32_t converge_use(const World *world, const Process *process, const Touches *touches);

/* Bytes to look at in one window of a scan: `most_bytes` without any convergence, a sixteenth of that when
 * all has converged, in steps of 1 MB, and at least 2 MB where there are so many. With 512 MB these are v18's
 * 512 to 32 MB. */
uint64_t converge_window_bytes(uint64_t most_bytes, uint32_t strength);
