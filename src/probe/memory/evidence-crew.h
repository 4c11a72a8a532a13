/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks at many processes beside the event loop: a few threads make the rounds of evidence.h as they fall due.
 * Whoever owns the crew says which processes, what has changed about them, and looks at what was found; it never
 * waits. Not for several threads at once. */

#include "probe/memory/evidence.h"

/* Rounds made at a time; a process that keeps one waiting takes one of the threads away until it lets go. So of one
 * user there are only a few: others are looked at whatever the processes of three users do. */
#define EVIDENCE_CREW_THREADS  12U
#define EVIDENCE_CREW_USER_MAX 3U

/* Processes looked at, at most. */
#define EVIDENCE_CREW_MAX 256U

typedef struct EvidenceCrew EvidenceCrew;

/* `root_fd` is duplicated, a reference to the topology is taken. Threads begin with the first process. 0 or
 * -errno. */
int evidence_crew_new(const EvidenceMachine *machine, int root_fd, Topology *topology, EvidenceCrew **ret);

/* Rounds under way that hang cannot be ended: what they use is left to them. Returns NULL. */
EvidenceCrew *evidence_crew_free(EvidenceCrew *crew);

typedef struct EvidenceSubject {
    EvidenceKind kind; /* EVIDENCE_WRITE or EVIDENCE_KERNEL */
    pid_t pid, parent;
    uint64_t start_ticks;
    uid_t uid;
    bool insist; /* the kind was asked for by name */
} EvidenceSubject;

/* Begins to look at a process. That it, or its parent, was looked at by this crew before is remembered: its
 * soft-dirty bits look used because of that. 0; -EEXIST: it is looked at already; -E2BIG: too many; -ENOMEM; -errno
 * when no thread can be had. */
int evidence_crew_add(EvidenceCrew *crew, const EvidenceSubject *subject);

/* Ends it, as soon as a round under way lets go. 0 or -ENOENT. */
int evidence_crew_drop(EvidenceCrew *crew, pid_t pid);

/* Says what has changed: all of `now` but its time. The period is from the last round on; when its pages are moved
 * no more, the next round is made at once. Returns 1 when a round is under way, which does not know it yet, else 0;
 * -ENOENT. */
int evidence_crew_tell(EvidenceCrew *crew, pid_t pid, const EvidenceNow *now);

/* What is known of the looking itself. */
typedef struct EvidenceReport {
    EvidenceKind kind;
    int outcome;        /* 0: it goes on; else EVIDENCE_E_... or -errno: it is over */
    EvidenceRound last; /* the last round */
    uint64_t n_rounds;  /* made */
    uint64_t n_samples, n_lost;
    uint64_t cost_usec;        /* CPU time of ours */
    uint64_t target_usec;      /* what it cost the process, estimated */
    uint64_t protect_max_usec; /* the longest it was held up */
} EvidenceReport;

/* Lets `look` see what is known of a process; `session` NULL: there is none (yet, or any more). Returns its result;
 * -ENOENT; -EAGAIN: a round is being made just now, ask again in the next tick. */
int evidence_crew_look(EvidenceCrew *crew, pid_t pid,
                       int (*look)(void *userdata, const EvidenceReport *report, EvidenceSession *session),
                       void *userdata);

/* Readable when a round has counted something, or the looking at a process is over; to be waited for, and cleared
 * before looking. */
int evidence_crew_fd(const EvidenceCrew *crew);
void evidence_crew_clear(EvidenceCrew *crew);

/* CPU time of all rounds so far, those of processes that were dropped, too. */
uint64_t evidence_crew_cost_usec(EvidenceCrew *crew);
