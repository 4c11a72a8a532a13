/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much processes wait for memory, as far as the processor counts it. plan/scan/stall.h says whose is counted
 * when; here it is done. */

#include "daemon/manager/manager.h"
#include "probe/counting.h"

typedef struct ManagerStall {
    Counting *counting; /* NULL: nothing is counted */
    const char *why;    /* then, or if the last one could not be: why not; static */
    uint64_t n_counted; /* processes, each as often as it was */
    uint64_t cpu_nsec;  /* what that took of the loop's time */
} ManagerStall;

/* Before and after the loop runs, and around a new topology. Reloading begins again where it could not be done. */
void manager_stall_start(Manager *manager);
void manager_stall_stop(Manager *manager);
void manager_stall_free(Manager *manager);

/* In a tick: takes in what was counted, before there is a plan; and begins with others at its end. */
void manager_stall_take_in(Manager *manager);
void manager_stall_begin(Manager *manager);
