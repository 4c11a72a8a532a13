/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* numaplaced --record=: writes every plan and its input to a file (plan/transcript.h). */

#include "daemon/log.h"
#include "plan/transcript.h"

typedef struct Recorder Recorder;

/* Creates the file, which must not exist yet. Logs errors; returns 0 or -errno. */
int recorder_new(const char *path, Log *log, Recorder **ret);
Recorder *recorder_free(Recorder *recorder);

/* Adds one entry; NULL: does nothing. If the file is full or cannot be written, logs that and stops
 * recording. Returns 0 or -ENOMEM. */
int recorder_add(Recorder *recorder, const TranscriptEntry *entry);
