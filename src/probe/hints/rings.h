/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The rings that samples of page faults come in: perf_event_open(2), a software event, so no PMU is needed.
 *
 * A ring per thread tells of this process only, and costs a descriptor and 68 KiB that cannot be swapped. With many
 * threads there is one per CPU instead, that sees the control group of the process, or where there is none the whole
 * machine: then every fault of others is recorded too and left out later. */

#include "base/util.h"
#include "probe/hints/fault-ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* So many threads have a ring each: 4.3 MiB. On larger machines two for each CPU, since more rings than there would be
 * for the CPUs gain nothing but precision. */
#define HINT_RINGS_THREADS   64U
#define HINT_RINGS_PER_CPU   2U
#define HINT_RING_DATA_PAGES 16U /* 1638 samples; halved while the kernel does not let us have that much */

/* Of so many faults one is told at most: of 512 small pages of a block that leaves two. */
#define HINT_RINGS_PERIOD_MAX 256U

typedef enum HintRingsScope {
    HINT_RINGS_THREAD,
    HINT_RINGS_CGROUP,
    HINT_RINGS_MACHINE,
    HINT_RINGS_SCOPE_MAX,
    HINT_RINGS_SCOPE_INVALID = -EINVAL,
} HintRingsScope;

typedef struct HintRingsOptions {
    uint32_t n_cpus;      /* numbers of CPUs are below that */
    int cgroup_fd;        /* directory of the control group of the process, borrowed; -1: none, or the root */
    uint32_t max_threads; /* with a ring of their own; 0: as above */
    bool exclude_kernel; /* not those that the kernel runs into for the process: the only ones some may see */
} HintRingsOptions;

typedef struct HintRings HintRings;

/* Opens nothing yet. 0 or -ENOMEM. */
int hint_rings_new(const HintRingsOptions *options, HintRings **ret);
HintRings *hint_rings_free(HintRings *rings);
DEFINE_CLEANUP(HintRings *, hint_rings_free)

/* Says which threads there are, ascending: new ones get a ring, rings of others are closed (what is in them is
 * lost). Goes over to rings of CPUs when there are too many, and stays there. Threads that are gone are passed over.
 * Returns 0; -EACCES, -EPERM: we may not; -EMFILE, -ENOMEM and the like: there are fewer rings than wanted. */
int hint_rings_follow(HintRings *rings, const pid_t *tids, size_t n_tids);

HintRingsScope hint_rings_scope(const HintRings *rings);
size_t hint_rings_n(const HintRings *rings);

typedef struct HintRingsCount {
    uint64_t n_samples;
    uint64_t n_lost; /* did not fit */
    uint64_t n_bad;  /* rings whose rest was no record and was skipped */
    uint32_t period; /* one of so many faults is told */
} HintRingsCount;

/* Hands all samples there are to `take`, whose negative result ends the reading and is returned; else 0. When some
 * were lost, fewer are asked for from now on, and more again when there is ample room. */
int hint_rings_read(HintRings *rings, int (*take)(void *userdata, const FaultSample *sample), void *userdata,
                    HintRingsCount *ret);

/* The clock of the samples is CLOCK_MONOTONIC. Opens one event on thread `tid` (0: the caller), or on `cpu` and
 * everybody or a cgroup. For hint_rings_new() and the trial at the start. Descriptor or -errno. */
int hint_rings_open_event(pid_t tid, int cpu, int cgroup_fd, uint32_t period, bool exclude_kernel);
