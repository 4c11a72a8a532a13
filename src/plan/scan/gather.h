/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory that was brought together goes back if that made its process slower (P15, P18). What a node's memory gives is
 * mostly not known. But how fast a process gets on is counted (plan/scan/stall.h), before its memory follows a home to
 * fewer nodes and afterwards. If it is slower then, twice, its memory is dealt out again over the nodes where it lay,
 * and its group may run on these; and if that does not make it faster, it is brought together again, for good. */

#include "plan/pack/pack.h"
#include "world/world.h"

/* Memory of a process goes to these nodes: notes where it lies, and how fast the process gets on, if both are known, it
 * lies on more nodes than that, and a quarter of it is not there yet. Before Process.memory is changed. */
void gather_begun(World *world, Process *process, CpuMask to);

/* The process has been counted anew: see above. */
void gather_counted(const World *world, Process *process);

/* Whether its memory is to lie on Process.gather.nodes for now. */
bool gather_is_undone(const World *world, const Process *process);

/* The nodes on which memory of a group is to lie for that reason, if it is so for processes that use most of its CPU
 * time; else 0. */
PackNodes gather_nodes(const World *world, size_t group);
