/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Snapshots from a record that numaplaced --record= or simulate --record= has written. */

#include "ctl/top/snapshot.h"
#include "plan/transcript.h"

typedef struct TopRecording {
    TopSnapshot **snapshots; /* one per second of the record, and its last plan */
    size_t n, capacity;
} TopRecording;

void top_recording_done(TopRecording *recording);

/* Reads a file. On CTL_EXIT_OK, *ret has at least one snapshot. */
CtlExit top_recording_read(const char *path, TopRecording *ret);

/* Makes a snapshot of a World. Takes over `plan`, the text of the plans since the snapshot `before` (NULL:
 * this is the first). Returns NULL when out of memory. */
TopSnapshot *top_snapshot_of_world(const World *world, const PolicySet *policies, const PlanLimits *limits,
                                   const TopSnapshot *before, char *plan);
