/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory that was brought together goes back if that made its process slower (P15, P18). What a node's memory gives is
 * mostly not known. But how fast a process gets on is counted (plan/scan/stall.h), before its memory follows a home to
 * fewer nodes and in the minute afterwards. If it is slower then, twice, its memory is dealt out evenly over the nodes
 * where much of it lay and those of the home, and its group may run on these: until it is counted whether that makes it
 * faster. If so, for an hour; else, or if it could not be moved, it is brought together again. Who uses which part of
 * it is not looked at meanwhile. Only with Mode=auto, without Nodes=, and as long as the process has the cpuset that it
 * had; the nodes may be beyond that cpuset, if the memory lay there.
 *
 * What it does badly: a program that does other work in that minute, more slowly, is taken apart, too, and brought
 * together again. */

#include "policy/policy.h"
#include "world/world.h"

/* Memory of a process is about to follow its home to these nodes: notes where it lies, and how fast the process gets
 * on, if both are known, it lies on more nodes than that, and a quarter of it is not there yet. Before Process.memory
 * is changed. */
void gather_begun(World *world, const Policy *policy, Process *process, CpuMask to);

/* The process has been counted anew: see above. */
void gather_counted(const World *world, Process *process);

/* Whether its memory is to lie on Process.gather.nodes for now. `policy` may be NULL. */
bool gather_is_undone(const World *world, const Policy *policy, const Process *process);
