/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rings for samples of page faults: perf_event_open(2) with a software event, so no PMU is needed.
 *
 * A ring per thread sees this process only, and costs a descriptor and 68 KiB that cannot be swapped. With
 * many threads there is one per CPU instead. It sees the control group of the process or, without one, the
 * whole machine; faults of other processes are recorded too and left out later. */

#include "base/util.h"
#include "probe/hints/fault-ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Most threads that have a ring each: 64 rings take 4.3 MiB. On larger machines the limit is two threads for
 * each CPU: more rings than one for each CPU gain nothing but precision. */
#define HINT_RINGS_THREADS   64U
#define HINT_RINGS_PER_CPU   2U
#define HINT_RING_DATA_PAGES 16U /* 1638 samples; halved while the kernel refuses to lock as much */

/* Longest sampling period: one sample for this many faults. Of the 512 small pages of a block two are left. */
#define HINT_RINGS_PERIOD_MAX 256U

typedef enum HintRingsScope {
    HINT_RINGS_THREAD,
    HINT_RINGS_CGROUP,
    HINT_RINGS_MACHINE,
    HINT_RINGS_SCOPE_MAX,
    HINT_RINGS_SCOPE_INVALID = -EINVAL,
} HintRingsScope;

typedef struct HintRingsOptions {
    uint32_t n_cpus;      /* CPU numbers are below this */
    int cgroup_fd;        /* directory of the process's control group, borrowed; -1: none, or the root */
    uint32_t max_threads; /* with a ring each; 0: as above */
    uint32_t n_spared;    /* descriptors left for all else, but at most half of RLIMIT_NOFILE */
    bool exclude_kernel;  /* leave out faults taken in the kernel, which some users may not see */
} HintRingsOptions;

typedef struct HintRings HintRings;

/* Opens nothing yet. 0 or -ENOMEM. */
int hint_rings_new(const HintRingsOptions *options, HintRings **ret);
HintRings *hint_rings_free(HintRings *rings);
DEFINE_CLEANUP(HintRings *, hint_rings_free)

/* Sets the threads, ascending: new ones get a ring, and rings of others are closed (their samples are lost).
 * With too many threads, changes to rings of CPUs for good. Threads that are gone are skipped. Returns 0;
 * -EACCES, -EPERM: not permitted; -EMFILE (also if only descriptors to be spared are free), -ENOMEM and the like: there
 * are fewer rings than wanted, and the next call tries to open the rest. CPUs that come online later get no ring. */
int hint_rings_follow(HintRings *rings, const pid_t *tids, size_t n_tids);

HintRingsScope hint_rings_scope(const HintRings *rings);
size_t hint_rings_n(const HintRings *rings);

typedef struct HintRingsCount {
    uint64_t n_samples;
    uint64_t n_lost; /* did not fit */
    uint64_t n_bad;  /* rings in which the rest was no record and was skipped */
    uint32_t period; /* one sample for this many faults */
} HintRingsCount;

/* Passes all samples to `take`. A negative result of that ends the reading and is returned; else 0. The
 * sampling period grows after losses, and shrinks when there is ample room. */
int hint_rings_read(HintRings *rings, int (*take)(void *userdata, const FaultSample *sample), void *userdata,
                    HintRingsCount *ret);

/* Opens one event on thread `tid` (0: the caller), or on `cpu` for all threads or a cgroup, with the clock
 * CLOCK_MONOTONIC. For hint_rings_follow() and the trial at the start. Descriptor or -errno. */
int hint_rings_open_event(pid_t tid, int cpu, int cgroup_fd, uint32_t period, bool exclude_kernel);
