/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When the next tick is due: fast while a thread waits, slower the longer none does, and never above MaxCPU=. */

#include <stdbool.h>
#include <stdint.h>

/* Both ticks back off to this when there is nothing to do: a workload that wakes up without pressure (and so
 * without a PSI event) is seen no later. A larger value would be set by configuration, not by backing off. */
#define PACE_IDLE_MAX_USEC 2000000ULL

/* MaxCPU= stretches intervals at most to this, so that a daemon that cannot afford its machine still answers.
 */
#define PACE_STRETCH_MAX_USEC 60000000ULL

/* Processes that are new are found up to so many times as often as SlowTickSec= says, if that can be afforded. */
#define PACE_DISCOVERIES 10U

/* MaxCPU= holds on average over this time: what was not used of it is saved, and a daemon that has much to do at
 * once, when work begins, need not be slow just then. */
#define PACE_SAVING_USEC 60000000ULL

/* While nothing may be changed, nobody waits for the daemon: it looks this far apart, and costs at most so much of one
 * CPU, in permille and on average over ten minutes, whatever MaxCPU= says: what is new is looked at soon, and the bill
 * is paid later. At first, and after processes have come or gone, it looks as often as SlowTickSec= says for so long
 * as a first home and its memory take to be known. */
#define PACE_WATCH_USEC        PACE_IDLE_MAX_USEC
#define PACE_WATCH_NEW_USEC    5000000ULL
#define PACE_WATCH_PERMILLE    1U
#define PACE_WATCH_SAVING_USEC (10 * PACE_SAVING_USEC)

typedef struct PaceSettings {
    uint64_t fast_usec;        /* FastTickSec= */
    uint64_t slow_usec;        /* SlowTickSec= */
    uint32_t max_cpu_permille; /* MaxCPU=, of one CPU; 0: no limit */
    bool watches;              /* nothing may be changed */
} PaceSettings;

/* What the plan of a tick found. */
typedef enum PacePress {
    PACE_CALM,    /* nobody waits who could be helped */
    PACE_PRESSED, /* somebody waits, and a CPU is idle */
    PACE_FULL,    /* somebody waits, and none is */
} PacePress;

typedef struct Pace {
    PaceSettings settings; /* in force: of a daemon that only watches PACE_WATCH_... */
    uint64_t new_usec;     /* SlowTickSec=, whether or not it only watches: between looks at what is new */
    uint64_t new_until_usec;
    uint64_t step_usec;    /* FastTickSec=, whether or not it only watches: between steps of what was begun */
    uint64_t fast_wish_usec; /* present intervals before stretching */
    uint64_t slow_wish_usec;
    uint64_t fast_cost_nsec; /* moving mean of what one fast tick costs, weight 1/8 */
    uint64_t slow_cost_nsec; /* what a slow tick costs on top */
    uint64_t lately_ppm;     /* what all of it took of a CPU */
    uint64_t lately_usec;    /* from one tick to the next */
    uint64_t find_cost_nsec; /* what finding newcomers costs between them */
    int64_t saved_nsec; /* of what MaxCPU= allows, not used yet; or used too much, up to six seconds' worth */
    uint32_t stretch_permille; /* factor both are stretched by, 1000 = none */
    uint64_t last_fast_usec;   /* instants; 0: none yet */
    uint64_t last_slow_usec;
    uint64_t last_discovery_usec;
    uint64_t due_usec; /* of the next tick */
    bool unfinished;   /* see pace_unfinished() */
    PacePress press;   /* of the last tick */
} Pace;

void pace_init(Pace *pace, const PaceSettings *settings);

/* Takes new settings after a reload; costs are kept. */
void pace_set(Pace *pace, const PaceSettings *settings);

/* Whether the tick that starts now is a slow one too. One that would be due within half a fast interval is
 * drawn in, so that an idle daemon wakes once for both. */
bool pace_slow_due(const Pace *pace, uint64_t now_usec);

/* Whether processes that are new may be looked for at once, between two slow ticks: as often as MaxCPU= allows if
 * nothing else cost anything, and SlowTickSec= after the last time in any case. What it costs is paid by ticks, which
 * become rarer. */
bool pace_may_discover(const Pace *pace, uint64_t now_usec);

/* Whether there may be a tick now, earlier than due: FastTickSec= after the last one, within MaxCPU=. */
bool pace_may_tick(const Pace *pace, uint64_t now_usec);

/* A tick that began at `now_usec` is over: `press` is the plan's, `idle` says that no managed task ran or that
 * nothing about homes was to be changed, costs are CPU time. Who begins to wait is seen after a long tick, in which a
 * CPU may have been busy that is idle now, so that a machine is believed to be full only when somebody waited in the
 * tick before, too. slow_nsec
 * is that of finding processes, which slow ticks do and others may; 0: this one did not. Sets due_usec. */
void pace_ticked(Pace *pace, uint64_t now_usec, bool slow, PacePress press, bool idle, uint64_t fast_nsec,
                 uint64_t slow_nsec);

/* Somebody stalled (PSI): back to the fast interval, counted from the last tick, so that a storm of events
 * does not make ticks shorter than FastTickSec=. */
void pace_wake(Pace *pace);

/* Somebody has come or gone: homes are looked at SlowTickSec= after the last time, however far that was backed
 * off. */
void pace_members_changed(Pace *pace);

/* Something was begun that takes several ticks, or is over: meanwhile they are FastTickSec= apart, at whatever cost.
 * That is paid afterwards, as if it had been done at once. */
void pace_unfinished(Pace *pace, bool unfinished);

/* The administrator changed something: the next tick is a slow one, and due now. */
void pace_now(Pace *pace, uint64_t now_usec);

/* Something beside the ticks cost so much of what MaxCPU= allows. */
void pace_pay(Pace *pace, uint64_t cost_nsec);

/* Whether much of it is saved, so that nothing needs to be slow. */
bool pace_has_savings(const Pace *pace);

/* Intervals as they are now, stretched. */
uint64_t pace_fast_usec(const Pace *pace);
uint64_t pace_slow_usec(const Pace *pace);

/* What ticks took of one CPU lately, over some ten seconds, in permille, rounded up; and how far apart they were. Some
 * come before they are due: processes begin, or somebody waits. */
uint32_t pace_cost_permille(const Pace *pace);
uint64_t pace_lately_usec(const Pace *pace);
