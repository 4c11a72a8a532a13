/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Observes processes for some seconds with the daemon's own probe and plans (probe, plan/would.h) and one
 * policy that observes. Also sums up what a verdict needs and plans do not: on which node each thread was
 * seen to run, tick by tick, and how busy the CPUs were. */

#include "ctl/diagnose/survey.h"
#include "plan/would.h"
#include "probe/probe.h"

#include <uthash.h>

/* Run and waiting time of one thread, permille x microseconds. */
typedef struct Track {
    TaskKey key; /* hashed by its bytes */
    UT_hash_handle hh;
    uint64_t run, wait;
    uint64_t seen[]; /* [n_nodes]: the part of `run` in ticks when its node was read */
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
    uint64_t usec;  /* that the sums cover */
    size_t cursor;
    bool met; /* the target was found */
    Progress *progress;
    int progress_error; /* errno */
} Watch;

/* Starts to observe the processes that `target` names. w->target and w->topology are set, w->root_fd is -1,
 * all else is zeroed. Returns 0 or -errno, -EREMOTE where /proc is not that of this process's PID namespace;
 * watch_done() must be called in any case. */
int watch_init(Watch *w);
void watch_done(Watch *w);

/* Observes for `seconds`, with a countdown on a terminal. Returns 0 or -errno. */
int watch_look(Watch *w, uint32_t seconds);

/* The track of a thread, added if there is none. NULL when out of memory. */
Track *watch_track(Watch *w, TaskKey key);

/* Run time of a thread on a node, in proportion to the ticks when its node was read. */
uint64_t watch_located(const Watch *w, const Track *track, uint32_t node);
