/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Examines many processes beside the event loop: a few threads make the rounds of evidence.h when they are
 * due. The owner of the crew names the processes, reports changes and reads results; it never waits. Not for
 * several threads at once. */

#include "probe/memory/evidence.h"

/* Rounds made at a time. A process that blocks a round keeps one of the threads. So each user gets only a
 * few: the processes of three users cannot keep others from being examined. */
#define EVIDENCE_CREW_THREADS  12U
#define EVIDENCE_CREW_USER_MAX 3U

/* Most processes examined at a time. */
#define EVIDENCE_CREW_MAX 256U

typedef struct EvidenceCrew EvidenceCrew;

/* Duplicates `root_fd` and takes a reference to the topology. Threads start with the first process. 0 or -errno. */
int evidence_crew_new(const EvidenceMachine *machine, int root_fd, Topology *topology, EvidenceCrew **ret);

/* Rounds that hang cannot be ended: what they use is left to them. Returns NULL. */
EvidenceCrew *evidence_crew_free(EvidenceCrew *crew);

typedef struct EvidenceSubject {
    EvidenceKind kind; /* not EVIDENCE_RESIDENCY */
    pid_t pid, parent;
    uint64_t start_ticks;
    uid_t uid;
    bool insist; /* the kind was requested by name */
} EvidenceSubject;

/* Begins to examine a process. The crew remembers those examined by write faults, because their soft-dirty
 * bits, and those of their children, look used then. 0; -EEXIST: a process of this number is examined already,
 * which is to be dropped first if it is another one; -E2BIG: too many;
 * -ENOMEM; -errno when no thread can be started. */
int evidence_crew_add(EvidenceCrew *crew, const EvidenceSubject *subject);

/* Stops examining it, as soon as a round under way ends. 0 or -ENOENT. */
int evidence_crew_drop(EvidenceCrew *crew, pid_t pid);

/* Reports what has changed: all of `now` but its time. The period counts from the last round; when its pages
 * are no longer moved, the next is due at once. Returns 1 when a round is under way, which does not know it
 * yet, else 0; -ENOENT. */
int evidence_crew_tell(EvidenceCrew *crew, pid_t pid, const EvidenceNow *now);

typedef struct EvidenceReport {
    EvidenceKind kind;
    int outcome; /* 0: it continues; else EVIDENCE_E_... or -errno: it is over */
    EvidenceRound last;
    uint64_t n_rounds;
    uint64_t n_samples, n_lost;
    uint64_t cost_usec;        /* our CPU time */
    uint64_t target_usec;      /* what it cost the process, estimated */
    uint64_t protect_max_usec; /* the longest stop of the whole process */
} EvidenceReport;

/* Passes what is known of a process to `look`; `session` NULL: there is none (yet, or any more). Returns its
 * result; -ENOENT; -EAGAIN: a round is being made, ask again in the next tick. */
int evidence_crew_look(EvidenceCrew *crew, pid_t pid,
                       int (*look)(void *userdata, const EvidenceReport *report, EvidenceSession *session),
                       void *userdata);

/* Becomes readable when a round has counted something, or the examination of a process is over. To be polled,
 * and cleared before looking. */
int evidence_crew_fd(const EvidenceCrew *crew);
void evidence_crew_clear(EvidenceCrew *crew);

/* CPU time of all rounds so far, including those of dropped processes. */
uint64_t evidence_crew_cost_usec(EvidenceCrew *crew);
