/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Forced migration of a thread to a lent CPU: for a moment the thread is allowed that CPU only. Tasks that it
 * forks in that moment must not stay there. */

#include "act/internal.h"

/* Marks the moment; to be called before the thread of `process` is narrowed to `cpu`. Returns 0; otherwise
 * children created from now on cannot be recognized, and the thread must not be narrowed. */
int passage_begin(Act *act, const ActProcess *process, TaskKey task, CpuIx cpu, JournalPassage *ret);

/* To be called after the change: the thread is wide again, unless it could be neither widened nor restored. */
void passage_end(Act *act, TaskKey task, CpuIx cpu);

/* Checks the tasks created since the forced migrations of earlier ticks, and widens those that inherited the
 * single CPU. */
void passage_check(Act *act);
