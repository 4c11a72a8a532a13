/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether write hint faults work here. A child writes to pages, protects them, writes again, and checks that each
 * write was recorded. Only trying tells: without soft-dirty bits the write to clear_refs succeeds and does nothing. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum HintTrialOutcome {
    HINT_TRIAL_WORKS,
    HINT_TRIAL_NO_SOFT_DIRTY, /* the kernel was built without them */
    HINT_TRIAL_NO_PROC,       /* pagemap or clear_refs cannot be used; `error` */
    HINT_TRIAL_NO_EVENT,      /* perf_event_open(2) failed; `error` */
    HINT_TRIAL_NO_RING,       /* its ring cannot be mapped; `error` */
    HINT_TRIAL_NO_SAMPLES,    /* all calls succeed, but writes are not recorded */
    HINT_TRIAL_NO_CHILD,      /* the child could not be made, or died; `error` */
} HintTrialOutcome;

typedef struct HintTrial {
    HintTrialOutcome outcome;
    int error;             /* a positive errno, 0: none */
    bool exclude_kernel;   /* only faults in user mode may be sampled */
    uint32_t fault_nsec;   /* what a fault costs the thread that takes it */
    uint32_t protect_nsec; /* what protecting a page costs */
} HintTrial;

/* Forks, and waits for the child: 10 ms, ten times that with emulated CPUs. */
void hint_trial(HintTrial *ret);

/* For a child that process `parent` has just forked. Closes all descriptors but the standard ones, and has
 * the child killed when the thread that forked it ends (prctl(2)). Exits if the parent has ended already. */
void hint_trial_detach(pid_t parent);
