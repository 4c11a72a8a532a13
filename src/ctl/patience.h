/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How long to wait for an answer: as long as the daemon works, and a few seconds more. */

#include "kernel/procstat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* While it asks a service manager that does not answer, the daemon does nothing for twice three seconds
 * (act/fence/restore.c). */
#define PATIENCE_SILENCE_USEC 7000000ULL

/* Putting back beside a storm of forks is given up after 330 s, and something else may be in front of it. */
#define PATIENCE_MAX_USEC 360000000ULL

/* Between two looks at the daemon. */
#define PATIENCE_LOOK_USEC 500000ULL

typedef struct Patience {
    uint64_t begin_usec, progress_usec; /* when it was seen working last */
    uint64_t cpu_ticks;                 /* its CPU time then */
    bool seen;
} Patience;

void patience_begin(Patience *patience, uint64_t now_usec);

/* `stat` is of the daemon's first thread, which answers; NULL: it cannot be read. Returns for how long to wait
 * before the next look, in microseconds; 0: it is no use. */
uint64_t patience_look(Patience *patience, uint64_t now_usec, const ProcStat *stat);

/* Reads what to look at. `pid` 0 is one that is not known, as that of a process in another pid namespace. 0 or
 * -errno. */
int patience_read(pid_t pid, ProcStat *ret);
