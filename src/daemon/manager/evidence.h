/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which thread uses which memory, in the daemon. */

#include "daemon/manager/manager.h"
#include "plan/memory/watch.h"
#include "probe/memory/evidence-crew.h"

/* One process that the crew samples. */
typedef struct EvidenceWatch {
    TaskKey subject; /* the process */
    EvidenceKind kind;
    EvidenceReport report; /* as of the last look; outcome not 0: it is over */
    EvidenceRange *asked;
    size_t asked_capacity;
    MemoryWatch use;
} EvidenceWatch;

typedef struct ManagerEvidence {
    EvidenceMachine machine;
    EvidenceCrew *crew; /* NULL: not started */
    sd_event_source *source;
    EvidenceWatch *watches[EVIDENCE_CREW_MAX]; /* in no order */
    size_t n_watches;
    size_t n_left_out;     /* processes, at the last slow tick: too many are looked at */
    Plan plan;             /* of the last orders */
    uint64_t paid_usec;    /* of what the crew has cost */
    uint64_t take_in_nsec; /* CPU time of the event loop */
} ManagerEvidence;

/* What a policy wants; EVIDENCE_MAX: the best. */
EvidenceKind manager_evidence_wanted(const Policy *policy);

/* NULL: the process is not looked at. */
EvidenceWatch *manager_evidence_find(const Manager *manager, pid_t pid);

/* Beginning and end, with every World. What cannot be done is said, and then residency is all there is. */
void manager_evidence_start(Manager *manager);
void manager_evidence_stop(Manager *manager);
void manager_evidence_free(Manager *manager);

/* Policies have changed: says what cannot be done of what they ask for. */
void manager_evidence_reloaded(Manager *manager);

/* After processes were found: whose memory is not to be dealt out to a home of several nodes, if a plan gives it
 * one, because it would be looked at from then on; and whose first home is put off, because it will be. */
void manager_evidence_foresee(Manager *manager);

/* At the end of a tick. 0 or -ENOMEM. */
int manager_evidence_ticked(Manager *manager, bool slow);

/* An order to move memory is over, and was folded in: there may be another one. */
void manager_evidence_order_over(Manager *manager, TaskKey subject);

/* manager/evidence-news.c: takes in what is new, and orders what is to move of it. 0 or -ENOMEM. */
int manager_evidence_take_in(Manager *manager);
/* The crew has something new; `userdata` is the manager. */
int manager_evidence_on_news(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* The least time between two rounds: by what they find (P10), and by what all may cost. */
uint64_t manager_evidence_period_usec(const Manager *manager, const EvidenceWatch *watch);
/* manager/evidence.c: tells the crew what has changed about the process of a watch. */
void manager_evidence_tell(const Manager *manager, const EvidenceWatch *watch, const Process *process);
