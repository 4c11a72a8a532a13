/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How long to wait for an answer: while the daemon works, and a few seconds more. */

#include "kernel/procstat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The daemon does nothing for twice three seconds while a service manager does not answer it (act/fence/restore.c). */
#define PATIENCE_SILENCE_USEC 7000000ULL

/* The daemon gives up undoing during a fork storm after 330 s, and other work may come first. */
#define PATIENCE_MAX_USEC 360000000ULL

/* Between two checks of the daemon. */
#define PATIENCE_LOOK_USEC 500000ULL

typedef struct Patience {
    uint64_t begin_usec, progress_usec; /* progress_usec: when it was last seen working */
    uint64_t cpu_ticks;                 /* its CPU time then */
    bool seen;
} Patience;

void patience_begin(Patience *patience, uint64_t now_usec);

/* `stat` is that of the daemon's first thread, which answers clients; NULL: it cannot be read. Returns how
 * long to wait before the next check, in microseconds, or 0 to give up. */
uint64_t patience_look(Patience *patience, uint64_t now_usec, const ProcStat *stat);

/* Reads the `stat` of the daemon's first thread. `pid` 0 means not known, as for a process in another PID
 * namespace. Returns 0 or -errno. */
int patience_read(pid_t pid, ProcStat *ret);
