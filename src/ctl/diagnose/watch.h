/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks at processes for some seconds with the daemon's own senses and plans (probe, plan/would.h) and one policy that
 * observes. What plans do not need and a verdict does is added up beside it: on which node each thread was seen to run,
 * tick by tick, and what the CPUs were busy with. */

#include "ctl/diagnose/survey.h"
#include "plan/would.h"
#include "probe/probe.h"

#include <uthash.h>

/* What one thread ran and waited, in permille x microseconds. */
typedef struct Track {
    TaskKey key; /* the hash is over its bytes */
    UT_hash_handle hh;
    uint64_t run, wait;
    uint64_t seen[]; /* [n_nodes]: of `run`, while it was looked where */
} Track;

typedef struct Watch {
    const SurveyTarget *target;
    int root_fd;
    Topology *topology;
    PolicySet *policies;
    World *world;
    Probe *probe;
    Would would;
    Track *tracks;
    uint64_t *busy; /* [cpu_limit] permille x microseconds */
    uint64_t usec;  /* of which the sums are */
    size_t cursor;
    bool met; /* the target */
    Progress *progress;
    int progress_error; /* errno */
} Watch;

/* Begins to look at who `target` names. w->target is set, all else zeroed, w->root_fd -1. Returns 0 or -errno;
 * watch_done() is to be called in any case. */
int watch_init(Watch *w);
void watch_done(Watch *w);

/* Looks for so long, saying so on a terminal. Returns 0 or -errno. */
int watch_look(Watch *w, uint32_t seconds);

/* What is known of a thread, begun when nothing is. NULL when memory is out. */
Track *watch_track(Watch *w, TaskKey key);

/* Of what a thread ran, what that was on a node: as it was where it was looked. */
uint64_t watch_located(const Watch *w, const Track *track, uint32_t node);
