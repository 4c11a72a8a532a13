/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One process whose use of memory is looked at by the crew of probe/evidence-crew.h: what was found goes into the World, and
 * out of it come orders (plan/sorting.h). */

#include "plan/scan.h"
#include "plan/sorting.h"
#include "probe/evidence-crew.h"

typedef struct EvidenceWatch {
    TaskKey subject; /* the process */
    EvidenceKind kind;
    bool insist;           /* its policy names the kind */
    uint64_t since_usec;   /* when it was begun */
    EvidenceReport report; /* as of the last look; outcome not 0: it is over */
    uint32_t n_counted;    /* rounds taken in, as Touches.n_rounds */
    bool told;             /* enough was known for a plan */
    TouchesSummary summary;
    pid_t *busy; /* ascending: threads that were busy at the last look */
    size_t n_busy, busy_capacity;
    pid_t *busy_now; /* and at the slow tick; taken over by a look */
    size_t n_busy_now, busy_now_capacity;
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

/* Notes which of its threads are busy. 0 or -ENOMEM. */
int evidence_watch_note_busy(EvidenceWatch *watch, const World *world, const Process *process);

typedef struct EvidenceWatchLook {
    EvidenceWatch *watch;
    World *world;
    Process *process; /* in it */
    const Policy *policy;
    uint64_t now_usec;
    bool news; /* out: a round was counted since the last look */
} EvidenceWatchLook;

/* Takes in what is new, as evidence_crew_look() calls it; `userdata` is an EvidenceWatchLook. 0 or -ENOMEM. */
int evidence_watch_look(void *userdata, const EvidenceReport *report, EvidenceSession *session);
