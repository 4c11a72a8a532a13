/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads that have the mask they are to get already, by their user's choice. */

#include "act/internal.h"

/* Writes a change down, and with it the other threads of its process whose user chose the same mask; once for each
 * mask that a process gets. `world` NULL: nothing is known of other threads. As journal_note_change(). */
int pins_note_change(Act *act, const World *world, JournalChange *change);

/* Writes down that the user of `task`, a thread of `process`, chose `mask`, which is what it is to get. Return as
 * above. */
int pins_note(Act *act, const World *world, const ActProcess *process, TaskKey task,
              hwloc_const_bitmap_t mask);
