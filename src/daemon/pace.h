/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides when the next tick is due: soon while a thread waits, later the longer none does, within MaxCPU=. */

#include <stdbool.h>
#include <stdint.h>

/* With nothing to do, both intervals back off to this, so a workload that wakes up without pressure, and so
 * without a PSI event, is seen no later. Longer intervals come only from the configuration or from MaxCPU=. */
#define PACE_IDLE_MAX_USEC 2000000ULL

/* MaxCPU= stretches intervals to at most this, so that a daemon that cannot afford its machine still answers. */
#define PACE_STRETCH_MAX_USEC 60000000ULL

/* New processes are found up to this many times as often as SlowTickSec= says, if MaxCPU= allows. */
#define PACE_DISCOVERIES 10U

/* MaxCPU= holds on average over this time. What is not used is saved, so that the daemon need not be slow
 * when work begins and much is to be done at once. */
#define PACE_SAVING_USEC 60000000ULL

/* A daemon that may change nothing only watches, and nothing waits for it. Its ticks are this far apart and
 * cost at most this much of one CPU (permille, over ten minutes), even if MaxCPU= allows more. The long time lets it
 * look at new processes soon and pay later: at first, and after processes have come or gone, it ticks as SlowTickSec=
 * says, for as long as a first home and its memory take to be known. */
#define PACE_WATCH_USEC        PACE_IDLE_MAX_USEC
#define PACE_WATCH_NEW_USEC    5000000ULL
#define PACE_WATCH_PERMILLE    1U
#define PACE_WATCH_SAVING_USEC (10 * PACE_SAVING_USEC)

typedef struct PaceSettings {
    uint64_t fast_usec;        /* FastTickSec= */
    uint64_t slow_usec;        /* SlowTickSec= */
    uint32_t max_cpu_permille; /* MaxCPU=, of one CPU; 0: no limit */
    bool watches;              /* only watches: nothing may be changed */
} PaceSettings;

/* What the plan of a tick found. */
typedef enum PacePress {
    PACE_CALM,    /* no thread waits that could be helped */
    PACE_PRESSED, /* a thread waits, and a CPU is idle */
    PACE_FULL,    /* a thread waits, and no CPU is idle */
} PacePress;

typedef struct Pace {
    PaceSettings settings; /* in force; while it only watches, PACE_WATCH_... */
    /* SlowTickSec=: the longest interval until `new_until_usec`, if it only watches and there is something new. */
    uint64_t new_usec;
    uint64_t new_until_usec;
    /* FastTickSec=, even if it only watches: interval while something is unfinished. */
    uint64_t step_usec;
    uint64_t fast_wish_usec; /* current intervals before stretching */
    uint64_t slow_wish_usec;
    uint64_t fast_cost_nsec; /* moving mean of the cost of a fast tick, weight 1/8 */
    uint64_t slow_cost_nsec; /* the same of what a slow tick adds */
    uint64_t lately_ppm;     /* moving mean of the share of a CPU, ppm */
    uint64_t lately_usec;    /* moving mean of the interval between ticks */
    uint64_t find_cost_nsec; /* moving mean of finding new processes in fast ticks */
    /* CPU time that MaxCPU= allowed and that was not used; negative: overdrawn, by at most a tenth of what
     * can be saved. */
    int64_t saved_nsec;
    uint32_t stretch_permille; /* factor by which both are stretched, 1000 = none */
    uint64_t last_fast_usec;   /* instants; 0: none yet */
    uint64_t last_slow_usec;
    uint64_t last_discovery_usec;
    uint64_t due_usec; /* of the next tick */
    bool unfinished;   /* see pace_unfinished() */
    PacePress press;   /* of the last tick */
} Pace;

void pace_init(Pace *pace, const PaceSettings *settings);

/* Takes over new settings after a reload; keeps the costs measured so far. */
void pace_set(Pace *pace, const PaceSettings *settings);

/* Whether the tick that starts now is a slow one, too. A slow tick due within half a fast interval is brought
 * forward, so that an idle daemon wakes once for both. */
bool pace_slow_due(const Pace *pace, uint64_t now_usec);

/* Whether new processes may be looked for now, between two slow ticks: as often as MaxCPU= allows if nothing
 * else cost anything, and in any case SlowTickSec= after the last time. Later ticks pay for it. Never while
 * the daemon only watches. */
bool pace_may_discover(const Pace *pace, uint64_t now_usec);

/* Whether a tick may come before it is due: FastTickSec= after the last one, within MaxCPU=. */
bool pace_may_tick(const Pace *pace, uint64_t now_usec);

/* Ends a tick that began at `now_usec`, and sets due_usec. `press` is the plan's. `idle`: no managed task
 * ran, or no home had to change. Costs are CPU time; slow_nsec is that of finding processes, as slow ticks do
 * and others may; 0: not done.
 *
 * After a long tick, a CPU that was busy when waiting began may be idle. So the machine counts as full only
 * if threads waited in the tick before, too. */
void pace_ticked(Pace *pace, uint64_t now_usec, bool slow, PacePress press, bool idle, uint64_t fast_nsec,
                 uint64_t slow_nsec);

/* Threads stalled (PSI): returns to the fast interval, counted from the last tick, so that a storm of events
 * does not shorten it. */
void pace_wake(Pace *pace);

/* Processes have come or gone: homes are looked at SlowTickSec= after the last time, however far that was
 * backed off. */
void pace_members_changed(Pace *pace);

/* Work that takes several ticks has begun or ended. Meanwhile ticks are FastTickSec= apart, at whatever cost;
 * it is paid for afterwards, as if it had been done at once. */
void pace_unfinished(Pace *pace, bool unfinished);

/* The administrator changed something: the next tick is a slow one, and due now. */
void pace_now(Pace *pace, uint64_t now_usec);

/* Charges the cost of something other than ticks to MaxCPU=. */
void pace_pay(Pace *pace, uint64_t cost_nsec);

/* Whether so much of MaxCPU= is saved, more than half of the maximum, that nothing needs to be slow. */
bool pace_has_savings(const Pace *pace);

/* The current intervals, stretched. */
uint64_t pace_fast_usec(const Pace *pace);
uint64_t pace_slow_usec(const Pace *pace);

/* The share of one CPU that recent ticks took, in permille, rounded up, and the interval between them, over
 * some ten seconds. Ticks come early when processes begin or threads wait. */
uint32_t pace_cost_permille(const Pace *pace);
uint64_t pace_lately_usec(const Pace *pace);
