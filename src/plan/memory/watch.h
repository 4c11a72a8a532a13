/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is decided about the memory of one process that is sampled: what a round of samples says of its threads (World:
 * Task.use), what of its memory moves to its users (sorting.h), what is looked at next (P8, P9, P16) and when (P10).
 * Whoever senses and acts drives it: the daemon with rounds of evidence, the simulator with those of its model. */

#include "plan/memory/sorting.h"
#include "plan/scan/pace.h"
#include "plan/scan/scan.h"

/* With or without an answer, memory is not kept from following its home for longer because somebody may know better. */
#define MEMORY_WATCH_AWAIT_USEC 5000000U

/* Of one process. */
typedef struct MemoryWatch {
    uint64_t since_usec; /* when it was begun */
    uint32_t n_counted;  /* rounds taken in, as Touches.n_rounds */
    size_t n_told;       /* threads of which the last plan of homes knew what they use */
    uint64_t homes;      /* where its threads lived when its blocks were judged last: thread_homes_digest() */
    TouchesSummary summary;
    bool followed; /* `busy` is known */
    TaskKey *busy; /* ascending: threads that were busy at the last look */
    size_t n_busy, busy_capacity;
    TaskKey *busy_now; /* and at the last tick; taken over by a look */
    size_t n_busy_now, busy_now_capacity;
    ScanPace pace;
    uint64_t over_usec; /* the last order, as of the last round: MemoryMove.over_usec */
    Scan scan;
    ScanWindow window;
    uint64_t window_bytes; /* it was to take in at most */
    Sorting sorting;
} MemoryWatch;

/* 0 or -ENOMEM. */
int memory_watch_init(MemoryWatch *watch, uint32_t n_nodes, uint64_t now_usec);
void memory_watch_done(MemoryWatch *watch);

/* Whether which thread uses which memory of the process may be worth knowing. Memory that is to be interleaved is,
 * whoever uses it. */
bool memory_watch_wanted(const World *world, const Policy *policy, const Process *process);

/* A first home is not put off for longer than this: less than LOAD_YOUNG_USEC, so that it need not wait for a slow tick
 * then. */
#define MEMORY_WATCH_FIRST_USEC 1500000U

/* Whether it has to be known for its first home, which is chosen (Mode=auto): it is new, has several threads that may
 * be placed and want more than may press on one node without a reason (P5), and its memory lies on several nodes, as it
 * does when each has touched its own first (P4). A small home would take it together for nothing. */
bool memory_watch_precedes_home(const World *world, const Policy *policy, const Process *process);
/* Whether looking need not wait for a slow tick or a home: it precedes the home, or the process has so many threads
 * that it is likely to live on all nodes. These get a node each as soon as it is seen what they use. */
bool memory_watch_begins_early(const World *world, const Policy *policy, const Process *process);
/* Whether it is worth it now: it begins early, its threads have several nodes to choose from, or they are on one,
 * and more than may press on its memory unless they share it. */
bool memory_watch_is_asked(const World *world, const Policy *policy, const Process *process);

/* Notes which of its threads are busy, and goes back to first rounds when others are than before. 0 or -ENOMEM. */
int memory_watch_note_busy(MemoryWatch *watch, const World *world, const Process *process);
/* Takes it over: whose work has begun or ended since it was done last is seen anew. Who was busy before the first
 * time was seen at nothing else. 0 or -ENOMEM. */
int memory_watch_follow_busy(MemoryWatch *watch, Touches *touches);
/* Whether a plan of homes could give more threads a node than the last one. */
bool memory_watch_has_news(const MemoryWatch *watch, const World *world, const Process *process,
                           const Policy *policy);
/* A plan of homes was made of what is known now. Its home or that of a thread may have changed: then it is looked at
 * sooner. */
void memory_watch_planned(MemoryWatch *watch, const World *world, const Process *process,
                          const Policy *policy);
/* Whether its first home is put off, or its memory kept from following, because who uses it is about to be known. */
bool memory_watch_is_awaited(const MemoryWatch *watch, const World *world, const Policy *policy,
                             const Process *process);
/* It is not sampled any more: what was known grows old from here on. */
void memory_watch_forget(World *world, Process *process);

/* What there is to be taken in. */
typedef struct MemoryWatchLook {
    MemoryWatch *watch;
    World *world;
    Process *process; /* in it */
    const Policy *policy;
    uint64_t now_usec;
    Touches *touches;       /* folded, and its blocks located */
    MemoryRegions *regions; /* of its blocks; NULL: the evidence has none */
    bool whole;             /* a round was made, and was not held back: it shows all that was touched */
    uint64_t cost_usec;     /* of that round, of the process's time or ours */

    bool news;   /* out: a round was counted since the last look */
    bool window; /* out: watch->window is what to ask about next */
} MemoryWatchLook;

/* Takes in what is new. Blocks are judged after a round, and when threads have got other nodes since. 0 or -ENOMEM. */
int memory_watch_look(MemoryWatchLook *look);
