/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files of one thread that are read besides its stat (kernel/procstat.h): schedstat and status. */

#include "base/scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Room for "run wait slices\n": three numbers of at most 20 digits. */
#define TASKSTAT_SCHEDSTAT_SIZE 80U

/* Room for /proc/PID/status: 50 lines, where the lists of CPUs and nodes may be long. */
#define TASKSTAT_STATUS_SIZE 32768U

/* Parses /proc/PID/task/TID/schedstat: time on a CPU and run delay, in nanoseconds. Returns false if
 * malformed, also if the last number may be cut. Inline because it runs for every thread in every tick. */
static inline bool taskstat_parse_schedstat(const char *text, uint64_t *ret_run_nsec, uint64_t *ret_wait_nsec)
{
    uint64_t run, wait, slices;

    if (!scan_u64(&text, &run) || *text++ != ' ' || !scan_u64(&text, &wait) || *text++ != ' ' ||
        !scan_u64(&text, &slices) || *text != '\n')
        return false;
    *ret_run_nsec = run;
    *ret_wait_nsec = wait;
    return true;
}

/* Returns the text after `key` (such as "Uid:\t") in the first line of /proc/PID/status that begins with it,
 * or NULL if there is none or that line is incomplete. */
const char *taskstat_find_value(const char *text, const char *key);

typedef struct TaskStatus {
    uid_t uid;                /* real */
    const char *cpus_allowed; /* as a list; points into the text */
} TaskStatus;

/* Parses the lines Uid and Cpus_allowed_list of /proc/PID/status; terminates the latter in place. Returns 0,
 * or -EINVAL if one of them is missing or malformed. */
int taskstat_parse_status(char *text, TaskStatus *ret);
