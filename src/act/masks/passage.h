/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Forcing a thread onto a lent CPU: for a moment it is allowed that CPU only, and what it forks in that moment must not
 * stay there. */

#include "act/internal.h"

/* Marks the moment, before the thread of `process` is narrowed to `cpu`. 0, or not 0 when it cannot be told what is
 * born from now on; the thread must not be narrowed then. */
int passage_begin(Act *act, const ActProcess *process, TaskKey task, CpuIx cpu, JournalPassage *ret);

/* After the change: the thread is wide again, unless it could neither be widened nor put back. */
void passage_end(Act *act, TaskKey task, CpuIx cpu);

/* Looks at the tasks born since the passages of earlier ticks and widens those that inherited the single CPU. */
void passage_check(Act *act);
