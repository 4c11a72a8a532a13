/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides about the memory of one sampled process: what a round of samples says of its threads (World:
 * Task.use), what memory moves to its users (sorting.h), what is looked at next (P8, P9, P16) and when (P10).
 * The daemon drives it with rounds of evidence, the simulator with those of its model. */

#include "plan/memory/sorting.h"
#include "plan/scan/pace.h"
#include "plan/scan/scan.h"

/* The state of one process. */
typedef struct MemoryWatch {
    uint64_t since_usec; /* when sampling began */
    uint32_t n_counted;  /* rounds taken in, as Touches.n_rounds */
    size_t n_told;       /* threads whose use the last plan of homes knew */
    uint64_t homes;      /* where its threads lived at the last judgement: thread_homes_digest() */
    TouchesSummary summary;
    bool followed; /* `busy` is known */
    TaskKey *busy; /* ascending: threads busy at the last look */
    size_t n_busy, busy_capacity;
    TaskKey *busy_now; /* ascending: threads busy at the last tick; a look takes them over */
    size_t n_busy_now, busy_now_capacity;
    ScanPace pace;
    uint64_t over_usec; /* MemoryMove.over_usec as of the last round */
    Scan scan;
    ScanWindow window;
    uint64_t window_bytes; /* upper limit of the window */
    Sorting sorting;
} MemoryWatch;

/* 0 or -ENOMEM. */
int memory_watch_init(MemoryWatch *watch, uint32_t n_nodes, uint64_t now_usec);
void memory_watch_done(MemoryWatch *watch);

/* Whether it may be worth knowing which thread uses which memory of the process. Not if its memory is to be
 * interleaved whoever uses it. */
bool memory_watch_wanted(const World *world, const Policy *policy, const Process *process);

/* How long a first home may be put off: less than LOAD_YOUNG_USEC, so that it then need not wait for a slow tick. */
#define MEMORY_WATCH_FIRST_USEC 1500000U

/* Whether the first home waits until the users of memory are known: with Mode=auto, for a new process with several
 * placeable threads that want more than may press on one node without a reason (P5), and with memory on several
 * nodes, as when each thread touched its own first (P4). A small home would gather that memory for nothing. */
bool memory_watch_precedes_home(const World *world, const Policy *policy, const Process *process);
/* Whether sampling need not wait for a slow tick or a home: it precedes the home, or the process has so many
 * threads that it is likely to get all nodes. Its threads get a node each as soon as their use is seen. */
bool memory_watch_begins_early(const World *world, const Policy *policy, const Process *process);
/* Whether threads have several nodes to choose from. A single thread has them only to find an idle CPU. */
bool memory_watch_has_choice(const World *world, const Process *process);
/* Whether sampling is worth it now: it begins early, the threads have several nodes to choose from, or they
 * press on the memory of one node more than they may unless they share it. */
bool memory_watch_is_asked(const World *world, const Policy *policy, const Process *process);

/* Notes which threads are busy; if these are others than before, first rounds begin again. Returns 0 or -ENOMEM. */
int memory_watch_note_busy(MemoryWatch *watch, const World *world, const Process *process);
/* Takes over what was noted, and forgets samples of threads that became busy or idle since the last time. The
 * first time it forgets nothing: threads busy until then were seen at nothing else. Returns 0 or -ENOMEM. */
int memory_watch_follow_busy(MemoryWatch *watch, Touches *touches);
/* Whether a plan of homes could give more threads a node than the last one. */
bool memory_watch_has_news(const MemoryWatch *watch, const World *world, const Process *process,
                           const Policy *policy);
/* A plan of homes was made with what is known now. If the home or a thread's node changed, the next round
 * comes sooner. */
void memory_watch_planned(MemoryWatch *watch, const World *world, const Process *process,
                          const Policy *policy);
/* The process is sampled no more: drops what its threads use, which would only grow old. */
void memory_watch_forget(World *world, Process *process);

/* What a look takes in. */
typedef struct MemoryWatchLook {
    MemoryWatch *watch;
    World *world;
    Process *process; /* in it */
    const Policy *policy;
    uint64_t now_usec;
    Touches *touches;       /* folded, and its blocks located */
    MemoryRegions *regions; /* of its blocks; NULL: the evidence has none */
    bool whole;             /* a round was made, and not held back: it shows all that was touched */
    uint64_t cost_usec;     /* of that round: time of the process, or ours */

    bool news;   /* out: a round was counted since the last look */
    bool window; /* out: watch->window is what to ask about next */
} MemoryWatchLook;

/* Takes in what is new. Blocks are judged after a round, and when threads have got other nodes since. Returns
 * 0 or -ENOMEM. */
int memory_watch_look(MemoryWatchLook *look);
