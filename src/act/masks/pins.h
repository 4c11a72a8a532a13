/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads that already have the mask they should get, because their user chose it. */

#include "act/internal.h"

/* Journals a change and, once for each mask that a process gets, the other threads of the process whose user
 * chose the same mask. `world` NULL: no other threads are known. Returns as journal_note_change() does. */
int pins_note_change(Act *act, const World *world, JournalChange *change);

/* Journals that the user of `task`, a thread of `process`, chose `mask`, which is also what it should get.
 * Returns as above. */
int pins_note(Act *act, const World *world, const ActProcess *process, TaskKey task,
              hwloc_const_bitmap_t mask);
