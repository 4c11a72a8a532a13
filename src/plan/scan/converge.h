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

/* The share of the strongest node of amounts per node, below 2^50 each: bytes that lie there, 0..CONVERGE_ONE; 0
 * when there are none. The node goes to *ret_node (NODE_NONE when there are none; the lowest in a tie). */
uint32_t converge_share(const uint64_t *amounts, uint32_t n_nodes, NodeIx *ret_node);

/* Whether what was frozen or not is so now. */
bool converge_is_frozen(bool frozen, uint32_t strength);

/* The share of the strongest node for all threads of a process together, by the averages of what they were seen to
 * access. */
uint32_t converge_touches(const Touches *touches, NodeIx *ret_node);

/* Of what the threads of a process use that live on one node each (Task.home_node), the share that is there,
 * 0..CONVERGE_ONE; CONVERGE_ONE when none does. All memory on one node is not all there is to convergence then. */
uint32_t converge_apart(const World *world, const Process *process);

/* How far what they use has come together: by where the threads live if some live on one node each, else by the node
 * with most. */
uint32_t converge_use(const World *world, const Process *process, const Touches *touches);

/* Bytes to look at in one window of a scan: `most_bytes` when it has not converged at all, a sixteenth of that when
 * it has, in steps of 1 MB, and 2 MB at least where there are so many. With 512 MB these are v18's 512 to 32 MB. */
uint64_t converge_window_bytes(uint64_t most_bytes, uint32_t strength);
