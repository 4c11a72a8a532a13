/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which threads use which memory: the kinds of evidence, which of them work here, and examining a process by
 * one of them.
 *
 * A process is examined in rounds. Every kind puts its findings into a table of access samples
 * (world/touches.h). Beginning and rounds take locks of the process, which can block them. So they run in
 * threads set aside, never in the event loop.
 *
 * Write hint faults change the process: its pages are write-protected for a moment, and nobody else can use
 * its soft-dirty bits (checkpoints and live migration do). Nothing has to be put back, so they are not in the
 * journal, but they must not be used where nothing may be changed (I11). */

#include "base/util.h"
#include "topo/topology.h"
#include "world/regions.h"
#include "world/touches.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order of preference, residency last. */
typedef enum EvidenceKind {
    EVIDENCE_WRITE,     /* W: faults of writes to pages protected for this */
    EVIDENCE_KERNEL,    /* A: what the kernel's own balancing finds out */
    EVIDENCE_RESIDENCY, /* D: where memory lies, whichever thread uses it */
    EVIDENCE_MAX,
    EVIDENCE_INVALID = -EINVAL,
} EvidenceKind;

/* "write", "kernel", ... as in Evidence=; NULL-terminated. */
extern const char *const evidence_names[];

#define EVIDENCE_WHY_SIZE 128U

typedef struct EvidenceAbility {
    bool works;
    char why_not[EVIDENCE_WHY_SIZE]; /* a clause; "" when it works */
} EvidenceAbility;

/* What this machine can do, as tried at the start. */
typedef struct EvidenceMachine {
    EvidenceAbility abilities[EVIDENCE_MAX];
    bool kernel_balances;  /* kernel.numa_balancing is on, between nodes */
    bool exclude_kernel;   /* only write faults in user mode may be sampled */
    uint32_t fault_nsec;   /* what a write fault costs the thread that takes it, its record included */
    uint32_t protect_nsec; /* what protecting a small page costs */
    uint32_t stall_usec;   /* longest stop of a whole process: 20 ms, unless it is changed */
} EvidenceMachine;

/* Tries all kinds. `live`: the root is this machine; otherwise only residency works. Forks a child for a few
 * milliseconds to try write faults. What cannot be tried does not work. */
void evidence_detect(int root_fd, bool live, EvidenceMachine *ret);

/* Tries the kernel's own evidence again, after kernel.numa_balancing was switched. */
void evidence_detect_switched(int root_fd, EvidenceMachine *machine);

/* The best kind that works, or the wanted one (EVIDENCE_MAX: any). If that does not work, residency, never
 * another kind that might cost what was not asked for. Write faults precede the kernel's own evidence: they
 * tell which block is used, so pages move at once, and to their users. */
EvidenceKind evidence_choose(const EvidenceMachine *machine, EvidenceKind wanted);

/* Whether a kind says in which blocks memory is used (EvidenceOps.locates). */
bool evidence_locates(EvidenceKind kind);

/* Explains that in one line: "kernel; not write: perf_event_open() is not permitted". Malloc'd, NULL: no memory. */
char *evidence_explain(const EvidenceMachine *machine, EvidenceKind wanted);

/* Why a process is not examined by this kind. */
#define EVIDENCE_E_GONE      1 /* it has exited, or has no memory any more */
#define EVIDENCE_E_TRACKED   2 /* somebody else uses its soft-dirty bits */
#define EVIDENCE_E_TOO_LARGE 3 /* protecting it would stop it for too long */

typedef struct EvidenceTarget {
    int root_fd;              /* borrowed */
    const Topology *topology; /* borrowed, outlives the session */
    pid_t pid;
    uint64_t start_ticks;
    bool insist; /* Evidence= names the kind: use it even if its soft-dirty bits look used */
    bool marked; /* it, or its parent process, was examined before: we used its bits */
} EvidenceTarget;

typedef struct EvidenceNow {
    uint64_t now_usec;
    uint64_t period_usec;  /* from this round to the next, if its cost permits; plan/scan/pace.h */
    uint32_t cpu_permille; /* CPU time the process uses, of one CPU; its rounds may cost a share of that */
    bool moving;           /* its pages are being moved, or about to be */
} EvidenceNow;

/* Why no new samples are made from this round on. */
typedef enum EvidenceHeld {
    EVIDENCE_HELD_NOT,   /* they are made */
    EVIDENCE_HELD_EARLY, /* it has cost enough for now */
    EVIDENCE_HELD_MOVING,
    EVIDENCE_HELD_GROWING, /* it touches memory for the first time, which makes samples anyway */
    EVIDENCE_HELD_MAX,
    EVIDENCE_HELD_INVALID = -EINVAL,
} EvidenceHeld;

typedef struct EvidenceRound {
    EvidenceHeld held;
    bool counted;             /* touches_fold() counted it: there were samples */
    uint64_t rest_until_usec; /* no next round before that, because of what this one cost */
    uint64_t due_usec;        /* when the next round is due: the later of that and the end of the period */
    uint64_t n_samples, n_lost;
    uint64_t cost_usec;    /* our CPU time */
    uint64_t protect_usec; /* how long the whole process was stopped, at most; 0: not at all */
    uint64_t target_usec;  /* what the round cost the process: protect_usec and the faults */
} EvidenceRound;

typedef struct EvidenceRange {
    uint64_t start, end; /* addresses */
} EvidenceRange;

/* What is known of a process. Each kind fills in what it can. */
typedef struct EvidenceFinds {
    Touches touches;
    MemoryRegions regions; /* as of the last round that counted */
    EvidenceRange *asked;  /* ascending; see evidence_ask() */
    size_t n_asked, asked_capacity;
} EvidenceFinds;

typedef struct EvidenceSession EvidenceSession;

/* One kind. Members return 0, -errno, or EVIDENCE_E_...; `context` belongs to the kind. */
typedef struct EvidenceOps {
    void (*detect)(int root_fd, bool live, EvidenceMachine *machine);
    int (*begin)(const EvidenceTarget *target, const EvidenceMachine *machine, void **ret_context);
    int (*round)(void *context, const EvidenceNow *now, EvidenceFinds *finds, EvidenceRound *ret);
    void (*end)(void *context);
    bool locates; /* it finds blocks and regions, soon enough that a plan waits for them */
} EvidenceOps;

extern const EvidenceOps evidence_write, evidence_kernel;

/* Begins to examine a process. 0, EVIDENCE_E_... or -errno; -EOPNOTSUPP: by residency, or by write where that does not
 * work. The kernel's own evidence may have begun to work since it was tried. May block. */
int evidence_begin(const EvidenceMachine *machine, EvidenceKind kind, const EvidenceTarget *target,
                   EvidenceSession **ret);
EvidenceSession *evidence_end(EvidenceSession *session);
DEFINE_CLEANUP(EvidenceSession *, evidence_end)

/* Makes a round: counts what happened since the last one, and prepares the next. May block. After anything
 * but 0 the session is over. */
int evidence_round(EvidenceSession *session, const EvidenceNow *now, EvidenceRound *ret);

/* Belongs to the session; must not be read while a round is made. */
Touches *evidence_touches(EvidenceSession *session);

/* Likewise: the regions of its memory, empty before a round that counted. NULL with a kind that does not find them.
 * What a scan notes in there (RegionScan) is kept. */
MemoryRegions *evidence_regions(EvidenceSession *session);

/* Sets the memory that the next rounds locate besides what is touched: `n` ranges, ascending and disjoint;
 * copied. Initially all memory. The nodes of other blocks are not known. 0 or -ENOMEM. */
int evidence_ask(EvidenceSession *session, const EvidenceRange *ranges, size_t n);

/* For the implementations: opens the directory of the process in /proc, and gives its PID (may be NULL). If the first
 * thread has ended before the others, it is the directory of one of these, with its TID, because that of the process
 * shows no memory; it has the same files. Descriptor; -ESRCH: the process is gone; -errno. */
int evidence_open_process(const EvidenceTarget *target, pid_t *ret_memory_pid);

/* Checks that it is still the same process, and that its memory is still shown there, and reads its size. 0,
 * EVIDENCE_E_GONE or -errno. */
int evidence_look(const EvidenceTarget *target, int proc_fd, uint64_t *ret_rss_pages);

/* For the implementations: updates the threads of the table to those of the process, which *tids holds in
 * ascending order. 0, EVIDENCE_E_GONE or -errno. */
int evidence_follow_threads(int proc_fd, pid_t pid, Touches *touches, pid_t **tids, size_t *capacity,
                            size_t *ret_n);
