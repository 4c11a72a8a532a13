/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The processes met at the last discovery, managed or not. So a process that was read once costs nothing more
 * than its name in the listing of /proc. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct SeenProcess {
    pid_t pid;
    uint8_t decision;    /* ProbeDecision */
    bool out_of_reach;   /* never asked about: a kernel thread, a zombie, the daemon itself */
    bool fresh;          /* known for a short time only when last read: it may not have called exec(2) yet */
    bool cpuset_changed; /* since masks were read last, or in the present pass */
    /* The same for the time before that: the kernel shows a new cpuset before it has cut all masks. */
    bool cpuset_moving;
    bool hangs;         /* its command line or environment hangs, and that was reported */
    uint32_t n_threads; /* when it was last read */
    uint64_t met_usec;  /* when it was first met; 0: in the first pass */
    uint64_t start_ticks;
    uint64_t identity;  /* hash of its name, cgroup and program */
    uint64_t cpu_ticks; /* CPU time used, at read_usec */
    uint64_t read_usec;
    uint64_t memory_due_usec;   /* when to measure its memory next; 0: not measured yet */
    uint64_t memory_asked_usec; /* since when a late measurement is awaited; 0: none is */
    uint32_t memory_cost_usec;  /* CPU time of that; 0: not measured yet */
    bool denied; /* changes of some of its threads are not tried, because the kernel refused one */
    uint64_t denied_until_usec; /* end of the present or last pause of that kind */
    uint64_t denied_pause_usec; /* its length */
    char *cpuset_path;          /* in the hierarchy of the cpuset controller; NULL unless managed. Owned */
} SeenProcess;

typedef struct SeenTable {
    SeenProcess *entries; /* ascending pid */
    size_t n, capacity;
} SeenTable;

/* The entry of a pid, or NULL. `hint` is where to begin, 0 at first, and is moved to the place of the pid.
 * For pids that are asked for in ascending order. */
SeenProcess *seen_find(const SeenTable *table, pid_t pid, size_t *hint);

/* Appends an entry, which must have the highest pid so far. Returns 0 or -ENOMEM; takes the path only on 0. */
int seen_append(SeenTable *table, const SeenProcess *value);

/* Frees the paths and drops the entries, but keeps the memory. */
void seen_clear(SeenTable *table);
void seen_done(SeenTable *table);
