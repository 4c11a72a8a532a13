/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory that was gathered on fewer nodes goes back if that made its process slower (P15, P18). What a node's
 * memory gives is mostly not known. But the progress of a process is counted (plan/scan/stall.h) before its
 * memory follows a home to fewer nodes, and in the minute afterwards. If it is slower in two counts, its memory
 * is interleaved over the nodes where much of it lay and those of the home, and its group may run on these,
 * until a count shows whether that makes it faster. If so, this holds for an hour; if not, or if the memory
 * could not be moved, it is gathered again. Meanwhile its threads are not sampled. Only with Mode=auto, without
 * Nodes=, and while the process keeps its cpuset; the nodes may be beyond that cpuset if the memory lay there.
 *
 * What it does badly: a program that does other, slower work in that minute is taken apart, too, and gathered
 * again. Of several programs that each want more than a node gives, the first to be gathered slows the others down
 * before theirs is, and gains nothing by going back alone. Memory that follows its use is not noted. */

#include "policy/policy.h"
#include "world/world.h"

/* Whether memory of a new process should not follow its home to `to` yet: it would come to fewer nodes, and how fast
 * the process progresses is about to be counted for the first time. Without that it could not go back. */
bool gather_awaits_count(const World *world, const Policy *policy, const Process *process, CpuMask to);

/* Memory of a process is about to follow its home to these nodes. Notes where it lies and how fast the
 * process progresses, if both are known, it lies on more nodes than that, and a quarter of it is not there
 * yet. Call before Process.memory changes. */
void gather_begun(World *world, const Policy *policy, Process *process, CpuMask to);

/* The process was counted again: see above. */
void gather_counted(const World *world, Process *process);

/* Whether its memory is to lie on Process.gather.nodes for now. `policy` may be NULL. */
bool gather_is_undone(const World *world, const Policy *policy, const Process *process);
