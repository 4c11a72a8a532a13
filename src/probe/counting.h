/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes with some threads being counted now (probe/progress.h). */

#include "probe/progress.h"
#include "world/world.h"

typedef struct Counting Counting;

/* What has been counted of one process so far. */
typedef struct CountingNews {
    TaskKey subject; /* tid 0 */
    uint64_t begun_usec;
    ProgressCounts counts;
} CountingNews;

/* `events` as for progress_begin(); must outlive the Counting. Returns NULL when out of memory. */
Counting *counting_new(const ProgressEvents *events);
Counting *counting_free(Counting *counting);
DEFINE_CLEANUP(Counting *, counting_free)

/* Begins to count these threads of a process. Returns as progress_begin(), and -ENOENT if the processor
 * cannot count misses. */
int counting_begin(Counting *counting, TaskKey subject, const pid_t *tids, size_t n_tids, uint64_t now_usec);

/* Looks at the i-th process; false if there is none. counting_end() removes it and puts the last one in its place. */
bool counting_look(const Counting *counting, size_t i, CountingNews *ret);
void counting_end(Counting *counting, size_t i);

uint32_t counting_n_threads(const Counting *counting);
