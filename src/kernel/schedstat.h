/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /proc/schedstat: how long each CPU ran tasks, and how long tasks waited for it (P1, overload map). */

#include <stddef.h>
#include <stdint.h>

#define SCHEDSTAT_VERSION_MIN 14U
#define SCHEDSTAT_VERSION_MAX 17U

typedef struct SchedstatCpu {
    uint32_t cpu;
    uint64_t run_nsec;  /* updated only when the CPU switches tasks: a lone spinner looks idle */
    uint64_t wait_nsec; /* summed over its tasks; counted when a task finally gets the CPU */
} SchedstatCpu;

typedef struct Schedstat {
    uint32_t version;
    SchedstatCpu *cpus; /* in the order of the file */
    size_t n_cpus, capacity;
} Schedstat;

/* Parses a whole file into *ret, which must be zeroed or hold an earlier result, whose memory is reused; its
 * numbers are invalid after a failure. Returns 0; -ENOMEM; -EINVAL if malformed or cut; -EPROTONOSUPPORT if
 * the fields of its version are not known. */
int schedstat_parse(const char *text, Schedstat *ret);

void schedstat_done(Schedstat *schedstat);
