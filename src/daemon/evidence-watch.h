/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One process whose memory use is sampled by the crew of probe/memory/evidence-crew.h. Its findings go into the World,
 * and migration requests come out of them (plan/memory/sorting.h). */

#include "plan/memory/sorting.h"
#include "plan/scan/pace.h"
#include "plan/scan/scan.h"
#include "probe/memory/evidence-crew.h"

typedef struct EvidenceWatch {
    TaskKey subject; /* the process */
    EvidenceKind kind;
    bool insist;           /* its policy names the kind */
    uint64_t since_usec;   /* when it was begun */
    EvidenceReport report; /* as of the last look; outcome not 0: it is over */
    uint32_t n_counted;    /* rounds taken in, as Touches.n_rounds */
    size_t n_told;         /* threads of which the last plan of homes knew what they use */
    uint64_t homes; /* where its threads lived when its blocks were judged last: thread_homes_digest() */
    TouchesSummary summary;
    bool followed; /* `busy` is known */
    TaskKey *busy; /* ascending: threads that were busy at the last look */
    size_t n_busy, busy_capacity;
    TaskKey *busy_now; /* and at the last tick; taken over by a look */
    size_t n_busy_now, busy_now_capacity;
    uint64_t n_rounds; /* made, as of the last look */
    ScanPace pace;
    Scan scan;
    ScanWindow window;
    EvidenceRange *asked;
    size_t asked_capacity;
    Sorting sorting;
} EvidenceWatch;

/* NULL: memory is out. */
EvidenceWatch *evidence_watch_new(TaskKey subject, EvidenceKind kind, bool insist, uint32_t n_nodes,
                                  uint64_t now_usec);
EvidenceWatch *evidence_watch_free(EvidenceWatch *watch);
DEFINE_CLEANUP(EvidenceWatch *, evidence_watch_free)

/* Notes which of its threads are busy, and goes back to first rounds when others are than before. 0 or -ENOMEM. */
int evidence_watch_note_busy(EvidenceWatch *watch, const World *world, const Process *process);
/* Takes it over: whose work has begun or ended since it was done last is seen anew. Who was busy before the first
 * time was seen at nothing else. 0 or -ENOMEM. */
int evidence_watch_follow_busy(EvidenceWatch *watch, Touches *touches);
/* Whether a plan of homes could give more threads a node than the last one. */
bool evidence_watch_has_news(const EvidenceWatch *watch, const World *world, const Process *process,
                             const Policy *policy);
/* A plan of homes was made of what is known now. */
void evidence_watch_told(EvidenceWatch *watch, const World *world, const Process *process,
                         const Policy *policy);

/* Its home or that of a thread may have changed: it is looked at sooner then. */
void evidence_watch_note_moved(EvidenceWatch *watch, const World *world, const Process *process,
                               const Policy *policy);

typedef struct EvidenceWatchLook {
    EvidenceWatch *watch;
    World *world;
    Process *process; /* in it */
    const Policy *policy;
    uint64_t now_usec;
    bool news; /* out: a round was counted since the last look */
} EvidenceWatchLook;

/* Takes in what is new, as evidence_crew_look() calls it; `userdata` is an EvidenceWatchLook. Blocks are judged after a
 * round, and when threads have got other nodes since. 0 or -ENOMEM. */
int evidence_watch_look(void *userdata, const EvidenceReport *report, EvidenceSession *session);
