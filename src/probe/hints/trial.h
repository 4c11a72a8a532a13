/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether write hint faults work here, tried on a child of our own: it writes to pages, protects them, writes again,
 * and looks whether each write was told. Nothing but trying tells: without soft-dirty bits the write to clear_refs
 * succeeds and does nothing. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum HintTrialOutcome {
    HINT_TRIAL_WORKS,
    HINT_TRIAL_NO_SOFT_DIRTY, /* the kernel was built without */
    HINT_TRIAL_NO_PROC,       /* pagemap or clear_refs cannot be used; `error` */
    HINT_TRIAL_NO_EVENT,      /* perf_event_open(2) failed; `error` */
    HINT_TRIAL_NO_RING,       /* its ring cannot be had; `error` */
    HINT_TRIAL_NO_SAMPLES,    /* everything can be called, but writes are not told */
    HINT_TRIAL_NO_CHILD,      /* it could not be made, or died; `error` */
} HintTrialOutcome;

typedef struct HintTrial {
    HintTrialOutcome outcome;
    int error;             /* a positive errno, 0: none */
    bool exclude_kernel;   /* only faults of programs themselves may be seen */
    uint32_t fault_nsec;   /* what a fault cost the one that ran into it */
    uint32_t protect_nsec; /* what it cost to protect a page */
} HintTrial;

/* Forks, and waits for the child: 10 ms, with emulated CPUs ten times that. */
void hint_trial(HintTrial *ret);

/* In a child that was just forked by the thread `parent` leads: closes all descriptors but the standard ones, and
 * has the child killed when its parent ends. A child whose parent has ended already exits. */
void hint_trial_detach(pid_t parent);
