/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out which thread uses which memory: the daemon's side. */

#include "daemon/manager/manager.h"
#include "plan/memory/watch.h"
#include "probe/memory/evidence-crew.h"

/* One process that the crew samples. */
typedef struct EvidenceWatch {
    TaskKey subject; /* the process */
    EvidenceKind kind;
    EvidenceReport report; /* as of the last look; outcome not 0: sampling has ended */
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
    size_t n_left_out;     /* processes that were not sampled at the last slow tick: there are too many */
    Plan plan;             /* of the last migration requests */
    uint64_t paid_usec;    /* of the crew's cost, charged to MaxCPU= so far */
    uint64_t take_in_nsec; /* CPU time of the event loop */
} ManagerEvidence;

/* The evidence that a policy asks for; EVIDENCE_MAX: the best. */
EvidenceKind manager_evidence_wanted(const Policy *policy);

/* NULL: the process is not sampled. */
EvidenceWatch *manager_evidence_find(const Manager *manager, pid_t pid);

/* Start and stop, with every World. Failures are logged; then residency is the only evidence. */
void manager_evidence_start(Manager *manager);
void manager_evidence_stop(Manager *manager);
void manager_evidence_free(Manager *manager);

/* Policies have changed: logs which evidence they ask for that does not work here. */
void manager_evidence_reloaded(Manager *manager);

/* After a discovery: sets Process.use_awaited of processes that are not sampled yet. If a process would be sampled
 * in a home of several nodes, its memory is not interleaved when a plan gives it one. If it is about to be sampled
 * before it has a home, its first home is put off. */
void manager_evidence_foresee(Manager *manager);

/* At the end of a tick. Returns 0 or -ENOMEM. */
int manager_evidence_ticked(Manager *manager, bool slow);

/* A migration request has ended and was folded in: the next one may be made. */
void manager_evidence_order_over(Manager *manager, TaskKey subject, FollowEnd end);

/* manager/evidence-news.c: takes in what is new, and makes the migration requests that follow. Returns 0 or
 * -ENOMEM. */
int manager_evidence_take_in(Manager *manager);
/* The crew has news; `userdata` is the manager. */
int manager_evidence_on_news(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* Shortest time between two rounds: by what they find (P10, adaptive period), and by what all may cost. */
uint64_t manager_evidence_period_usec(const Manager *manager, const EvidenceWatch *watch);
/* manager/evidence.c: tells the crew what has changed about a sampled process. */
void manager_evidence_tell(const Manager *manager, const EvidenceWatch *watch, const Process *process);
