/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts how much processes wait for memory, as far as the processor can. plan/scan/stall.h chooses the
 * processes and the times. */

#include "daemon/manager/manager.h"
#include "probe/counting.h"

typedef struct ManagerStall {
    Counting *counting; /* NULL: nothing is counted */
    const char *why;    /* why nothing is counted, or the last one was not; static */
    uint64_t n_counted; /* processes, each as often as it was counted */
    uint64_t cpu_nsec;  /* CPU time of the event loop for this */
} ManagerStall;

/* Before and after the loop runs, and around a new topology. A reload tries again to start what could not be
 * started. */
void manager_stall_start(Manager *manager);
void manager_stall_stop(Manager *manager);
void manager_stall_free(Manager *manager);

/* In a tick: takes in what was counted, before the plan; and begins to count others, at the end of the tick. */
void manager_stall_take_in(Manager *manager);
void manager_stall_begin(Manager *manager);
