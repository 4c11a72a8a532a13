/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* numaplaced --record=: every plan and its input in a file (plan/transcript.h). */

#include "daemon/log.h"
#include "plan/transcript.h"

typedef struct Recorder Recorder;

/* Makes the file, which must not be there yet. What is wrong is logged; returns 0 or -errno. */
int recorder_new(const char *path, Log *log, Recorder **ret);
Recorder *recorder_free(Recorder *recorder);

/* Adds one entry; a NULL recorder does nothing. When the file is full or cannot be written that is logged, and nothing
 * is added any more. Returns 0 or -ENOMEM. */
int recorder_add(Recorder *recorder, const TranscriptEntry *entry);
