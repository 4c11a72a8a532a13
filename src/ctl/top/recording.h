/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Snapshots of what numaplaced --record= or simulate --record= has written. */

#include "ctl/top/snapshot.h"
#include "plan/transcript.h"

typedef struct TopRecording {
    TopSnapshot **snapshots; /* a second of the record apart, and its last plan */
    size_t n, capacity;
} TopRecording;

void top_recording_done(TopRecording *recording);

/* Reads a file. At least one snapshot is in *ret when CTL_EXIT_OK is returned. */
CtlExit top_recording_read(const char *path, TopRecording *ret);

/* Of one World, with the text of the plans made since the snapshot `before` (NULL: this is the first), which is taken
 * over. NULL: memory is out. */
TopSnapshot *top_snapshot_of_world(const World *world, const PolicySet *policies, const PlanLimits *limits,
                                   const TopSnapshot *before, char *plan);
