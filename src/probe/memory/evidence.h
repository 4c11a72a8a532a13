/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who uses which memory: the kinds of evidence, which of them this machine has, and looking at one process by one of
 * them.
 *
 * A process is looked at in rounds. What they find is in a table of touches (world/touches.h), whatever the kind.
 * Beginning and rounds take the locks of the process, on which it can keep us waiting: they are made in a thread set
 * aside for that, never in the event loop.
 *
 * Write hint faults change the process: its pages are write-protected for a moment, and nobody else can use the
 * soft-dirty bits of it (checkpoints and live migration do). Nothing has to be put back after them, so they are not
 * in the journal, but where nothing may be changed they must not be used (I11). */

#include "base/util.h"
#include "topo/topology.h"
#include "world/regions.h"
#include "world/touches.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order of preference. */
typedef enum EvidenceKind {
    EVIDENCE_WRITE,     /* W: faults of writes to pages protected for that */
    EVIDENCE_KERNEL,    /* A: what the kernel's own balancing finds out */
    EVIDENCE_RESIDENCY, /* D: where memory lies, whoever uses it */
    EVIDENCE_MAX,
    EVIDENCE_INVALID = -EINVAL,
} EvidenceKind;

/* "write", "kernel", ... as Evidence= has them; NULL-terminated. */
extern const char *const evidence_names[];

#define EVIDENCE_WHY_SIZE 128U

typedef struct EvidenceAbility {
    bool works;
    char why_not[EVIDENCE_WHY_SIZE]; /* a clause; "" when it works */
} EvidenceAbility;

/* What the trial at the start found. */
typedef struct EvidenceMachine {
    EvidenceAbility abilities[EVIDENCE_MAX];
    bool kernel_balances;  /* kernel.numa_balancing is on, between nodes */
    bool exclude_kernel;   /* of write faults, only those of programs themselves may be seen */
    uint32_t fault_nsec;   /* what one costs the thread that runs into it, its record included */
    uint32_t protect_nsec; /* what protecting a small page costs */
    uint32_t stall_usec;   /* a process is not held up as a whole for longer: 20 ms, unless it is changed */
} EvidenceMachine;

/* Tries what there is. `live`: the root is this machine; else nothing works but residency. Forks a child for a few
 * milliseconds, in which write faults are tried. 0 or -errno. */
int evidence_detect(int root_fd, bool live, EvidenceMachine *ret);

/* kernel.numa_balancing was switched: tries again what depends on it, the kernel's own evidence. */
void evidence_detect_switched(int root_fd, EvidenceMachine *machine);

/* The best kind that works, or the one that is wanted (EVIDENCE_MAX: any). A wanted one that does not work gives way to
 * residency, never to another that might cost what was not asked for.
 *
 * Write faults go before the kernel's own: they tell which block, so that pages move at once, and to who uses them. */
EvidenceKind evidence_choose(const EvidenceMachine *machine, EvidenceKind wanted);

/* Says it in one line: "kernel; not write: perf_event_open() is not permitted". Malloc'd, NULL: no memory. */
char *evidence_explain(const EvidenceMachine *machine, EvidenceKind wanted);

/* Why a process is not looked at by this kind. */
#define EVIDENCE_E_GONE      1 /* it has exited, or runs another program's memory */
#define EVIDENCE_E_TRACKED   2 /* somebody else uses its soft-dirty bits */
#define EVIDENCE_E_TOO_LARGE 3 /* protecting it would stop it for too long */

typedef struct EvidenceTarget {
    int root_fd;              /* borrowed */
    const Topology *topology; /* borrowed, outlives the session */
    pid_t pid;
    uint64_t start_ticks;
    bool insist; /* Evidence= names the kind: that its soft-dirty bits look used does not matter */
    bool marked; /* it, or whom it was forked from, was looked at before: its bits look used because of us */
} EvidenceTarget;

/* What a round is told. */
typedef struct EvidenceNow {
    uint64_t now_usec;
    uint64_t period_usec; /* from this round to the next, if its cost allows; plan/scan/pace.h */
    uint32_t
        cpu_permille; /* what the process uses, of one CPU: what its rounds may cost is a share of that */
    bool moving;      /* its pages are being moved, or about to be */
} EvidenceNow;

/* Why no new samples are being made since this round. */
typedef enum EvidenceHeld {
    EVIDENCE_HELD_NOT,   /* they are */
    EVIDENCE_HELD_EARLY, /* it has cost enough for now */
    EVIDENCE_HELD_MOVING,
    EVIDENCE_HELD_GROWING, /* it touches memory for the first time, which gives samples anyway */
    EVIDENCE_HELD_MAX,
    EVIDENCE_HELD_INVALID = -EINVAL,
} EvidenceHeld;

/* What one round was. */
typedef struct EvidenceRound {
    EvidenceHeld held;
    bool counted;             /* touches_fold() was: there were samples */
    uint64_t rest_until_usec; /* the next one is not to be made before, for what this one cost */
    uint64_t due_usec;        /* when to make it: that, or after the period */
    uint64_t n_samples, n_lost;
    uint64_t cost_usec;    /* CPU time of ours */
    uint64_t protect_usec; /* how long it was held up as a whole, at most; 0: not at all */
    uint64_t target_usec;  /* what it cost the process: that, and its faults */
} EvidenceRound;

typedef struct EvidenceRange {
    uint64_t start, end; /* addresses */
} EvidenceRange;

/* What is known of a process. A kind fills in what it can. */
typedef struct EvidenceFinds {
    Touches touches;
    MemoryRegions regions; /* as of the last round that counted */
    EvidenceRange *asked;  /* ascending; see evidence_ask() */
    size_t n_asked, asked_capacity;
} EvidenceFinds;

typedef struct EvidenceSession EvidenceSession;

/* One kind. Members return 0, -errno, or EVIDENCE_E_...; `context` is theirs. */
typedef struct EvidenceOps {
    void (*detect)(int root_fd, bool live, EvidenceMachine *machine);
    int (*begin)(const EvidenceTarget *target, const EvidenceMachine *machine, void **ret_context);
    int (*round)(void *context, const EvidenceNow *now, EvidenceFinds *finds, EvidenceRound *ret);
    void (*end)(void *context);
} EvidenceOps;

extern const EvidenceOps evidence_write, evidence_kernel;

/* Begins to look at a process by a kind that works: EVIDENCE_WRITE or EVIDENCE_KERNEL; -EOPNOTSUPP: another one. May
 * block. */
int evidence_begin(const EvidenceMachine *machine, EvidenceKind kind, const EvidenceTarget *target,
                   EvidenceSession **ret);
EvidenceSession *evidence_end(EvidenceSession *session);
DEFINE_CLEANUP(EvidenceSession *, evidence_end)

/* Makes a round: what happened since the last one is counted, and the next is prepared. May block. After anything but 0
 * the session is over. */
int evidence_round(EvidenceSession *session, const EvidenceNow *now, EvidenceRound *ret);

/* Belongs to the session; nobody else reads it while a round is made. */
Touches *evidence_touches(EvidenceSession *session);

/* Likewise: what its memory is made of. Of EVIDENCE_WRITE only, after a round that counted; else empty. What a scan
 * notes in there (RegionScan) is kept. */
MemoryRegions *evidence_regions(EvidenceSession *session);

/* Which memory the next rounds are to find the place of, besides what is touched: `n` ranges, ascending and apart;
 * copied. At first all. Of blocks that are neither it is not known where they lie. 0 or -ENOMEM. */
int evidence_ask(EvidenceSession *session, const EvidenceRange *ranges, size_t n);

/* For the implementations: opens the directory of the process in /proc. Descriptor; -ESRCH: it is gone; -errno. */
int evidence_open_process(const EvidenceTarget *target);

/* Whether it is still that process, and how large. 0, EVIDENCE_E_GONE or -errno. */
int evidence_look(const EvidenceTarget *target, int proc_fd, uint64_t *ret_rss_pages);

/* For the implementations: brings the threads of the table in line with those of the process, ascending in *tids. 0,
 * EVIDENCE_E_GONE or -errno. */
int evidence_follow_threads(int proc_fd, pid_t pid, Touches *touches, pid_t **tids, size_t *capacity,
                            size_t *ret_n);
