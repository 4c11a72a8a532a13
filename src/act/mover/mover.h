/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moves memory to nodes (P18, 2 MB clusters; P19, OOM guard; P20, rate limit) outside the event loop.
 *
 * A page takes a microsecond to move and a huge page a quarter of a millisecond, so a process takes seconds.
 * The caller only submits migration requests (MoverOrder) and learns through a descriptor when one is over.
 * Each node has threads that move memory to it (MOVER_LANES_MAX). They run on its CPUs, because copying takes
 * a fifth less time on the node that is written to, or on CPUs of nodes that help, and take requests in
 * turns. Several threads share a large request, each taking some blocks at a time. The address of a block
 * alone decides where it goes, whichever thread takes it.
 *
 * There is no journal and no undo, because a page has the same content wherever it lies. At any instant, and
 * so also after SIGKILL during a call, each page is whole and on its old or its new node; the kernel finishes
 * the call in progress. To undo a migration, submit the reverse request.
 *
 * MoverReason names and counts what is not moved. The mover does not look at memory policies (mbind(2)),
 * evidence or pressure; its callers do. Locked memory is moved like any other: mlock(2) promises that it
 * stays in memory, not where. */

#include "act/mover/ops.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most requests that are not over or not collected; further ones are refused. */
#define MOVER_ORDERS_MAX 1024U

/* Most ranges in one request. */
#define MOVER_RANGES_MAX 65536U

/* How long mover_free() waits for calls in progress. They take 20 ms unless they hang. */
#define MOVER_END_USEC 500000U

/* A thread that has not returned from the kernel for this long hangs: somebody holds the target's lock and
 * does not release it (a mapping of a file on a dead server is enough). */
#define MOVER_HANG_USEC 10000000U

/* Most hung threads that are given up. A further one keeps its place, possibly its node's only one, until it
 * returns. */
#define MOVER_HANGING_MAX 32U

/* Most threads that move to one node. A node gets half as many as it has CPUs, but two if it has two; twice as many,
 * every second one on other nodes, when those help. More would take memory bandwidth, or CPUs, from the target itself.
 *
 * A second thread can help because a thread also waits, at least for a CPU when the target is busy; what else it waits
 * for in a call was not measured. Times with two threads and with one, in an emulated machine with two CPUs per node,
 * on a busy host:
 *
 *                                                 32 MB           256 MB
 *     huge pages, target writing on all CPUs    0.45, 0.65 s    2.3, 3.1 s      medians of six
 *     huge pages, target asleep                 80, 75 ms       0.60, 0.61 s    medians of four
 *     small pages, target asleep                0.39, 0.39 s    4.3, 2.3 s
 *
 * While the target wrote, the longest call took as long with two threads as with one. For small pages a second thread
 * only adds contention. */
#define MOVER_LANES_MAX 4U

/* With this many threads, hung ones included, a node gets only one; TasksMax= of the service leaves room for
 * some more. */
#define MOVER_THREADS_MAX 64U

typedef struct Mover Mover;

/* Why memory stayed where it was. The first five are properties of a mapping and count its length; the others
 * count the bytes that are on another node. */
typedef enum MoverReason {
    MOVER_REASON_FILE,      /* a file: its pages are in the page cache and belong to no one process */
    MOVER_REASON_HUGETLB,   /* reserved huge pages: there are none elsewhere to move to */
    MOVER_REASON_DEVICE,    /* a device, or pages of the kernel itself */
    MOVER_REASON_VAST,      /* larger than the machine's memory: takes too long to query */
    MOVER_REASON_FOREIGN,   /* a line of maps that does not parse; counts as one page */
    MOVER_REASON_SHARED,    /* mapped more than once, mostly by others; see MoverOrder.shared */
    MOVER_REASON_BUSY,      /* failed repeatedly: pinned by a device, or under I/O */
    MOVER_REASON_NO_MEMORY, /* the kernel found no page for it */
    MOVER_REASON_HEADROOM,  /* the node would have too little left (P19) */
    MOVER_REASON_OTHER,     /* any other status the kernel gave for a page */
    MOVER_REASON_MAX,
    MOVER_REASON_INVALID = -EINVAL,
} MoverReason;

/* How a request ended; with several nodes, the outcome that is last in this list. */
typedef enum MoverOutcome {
    MOVER_DONE,      /* everything was examined, and whatever could be moved was */
    MOVER_NO_ROOM,   /* the node is full (P19); the rest was not examined */
    MOVER_OUTSIDE,   /* the target's cpuset does not allow the node */
    MOVER_DENIED,    /* not permitted */
    MOVER_CANCELLED, /* by mover_cancel() */
    MOVER_GONE,      /* the process exited, or its PID belongs to another one */
    MOVER_HUNG,      /* a call did not return; it may still do so and move its pages */
    MOVER_FAILED,    /* something broke: MoverResult.error */
    MOVER_OUTCOME_MAX,
    MOVER_OUTCOME_INVALID = -EINVAL,
} MoverOutcome;

typedef struct MoverRange {
    uint64_t start, end; /* addresses, extended to whole pages */
    NodeIx to;           /* one of to_nodes; used only if `sent` */
} MoverRange;

typedef struct MoverOrder {
    pid_t pid;
    uint64_t start_ticks;
    const MoverRange *ranges; /* ascending, without overlap; copied */
    size_t n_ranges;          /* 0: all memory of the process */

    /* NodeIx; at least one, all with memory. With several, a 2 MB block that has to move goes to the one
     * numbered (address / 2 MB) modulo their number, so a block always goes to the same node. */
    hwloc_const_bitmap_t to_nodes;
    hwloc_const_bitmap_t help_nodes; /* NodeIx; their CPUs run as many threads again; NULL: none */
    bool stripe;                     /* P17, interleave: blocks on another of to_nodes move too */
    bool sent;                       /* each range, all of it, goes to MoverRange.to; excludes `stripe` */

    bool shared; /* also pages that others map (needs CAP_SYS_NICE); they move for all of them */
    int nice;    /* of the moving thread, -20..19 */
    uint32_t headroom_percent; /* of a node's memory, kept free; at most 100 */
    uint64_t reserve_bytes;    /* kept free in addition: expected growth of the group */
    bool spend_cache;          /* cold, clean page cache counts as free */
    uint64_t rate_bytes;       /* per second, to each node; 0: no limit */
} MoverOrder;

typedef struct MoverAccount {
    uint64_t moved_bytes;
    uint64_t refused_bytes[MOVER_REASON_MAX];
    uint64_t n_huge;       /* blocks of moved_bytes that moved as one huge page */
    uint64_t n_calls;      /* that moved pages, or tried to */
    uint64_t blocked_usec; /* time in these calls, the most that anyone was blocked on pages being moved */
    uint64_t longest_usec; /* the longest call */
    uint64_t n_asked;      /* pages whose location was queried */
    uint64_t asked_usec;   /* time in these queries */
} MoverAccount;

typedef struct MoverResult {
    uint64_t id;
    pid_t pid;
    uint64_t start_ticks;
    MoverOutcome outcome;
    int error; /* -errno of MOVER_FAILED */
    MoverAccount account;
} MoverResult;

typedef struct MoverStatistics {
    MoverAccount account; /* of all requests, including those in progress */
    uint64_t n_outcome[MOVER_OUTCOME_MAX];
    size_t n_orders;      /* not over, or not collected */
    size_t n_hanging;     /* threads given up that have not returned */
    uint64_t n_unsettled; /* times a thread did not get its CPUs or nice value; it moves all the same */
    uint64_t rate_bytes;  /* as set by mover_set_rate() */
} MoverStatistics;

/* With `ops` and `context` NULL, uses the real system calls, on files below `root_fd`, of which a copy is
 * kept. With other ops, `root_fd` is ignored, and the context must outlive hung threads, possibly until the
 * process ends. Takes a reference to the topology. Threads start with the first requests. 0 or -errno;
 * -EOPNOTSUPP in a rehearsal, where memory has no location. */
int mover_new(const MoverOps *ops, void *context, int root_fd, Topology *topology, Mover **ret);

/* Cancels everything and waits up to MOVER_END_USEC for calls in progress. Hung threads are left alone; what
 * they use is freed when they return, if they do. Returns NULL. */
Mover *mover_free(Mover *mover);
DEFINE_CLEANUP(Mover *, mover_free)

/* Returns a descriptor, owned by the mover, that is readable when there is a result to collect. */
int mover_fd(const Mover *mover);

/* Accepts a request and gives it an id, never 0. Never blocks. 0; -ENOBUFS: too many requests pending;
 * -E2BIG: too many ranges; -EINVAL: not as described above; -ENOMEM, -EAGAIN: no thread could be started. */
int mover_submit(Mover *mover, const MoverOrder *order, uint64_t *ret_id);

/* Ends a request after the call in progress; its result arrives as usual. 0, or -ESRCH if it is over. */
int mover_cancel(Mover *mover, uint64_t id);

/* Returns what a request has done so far. 0, or -ESRCH if it is over. */
int mover_look(Mover *mover, uint64_t id, MoverAccount *ret);

/* Takes the next result. Returns 1, or 0 if there is none. */
int mover_collect(Mover *mover, MoverResult *ret);

/* Gives up hung threads and replaces them; their requests end as HUNG. To be called regularly, as in each
 * slow tick, because a hung thread cannot report itself. */
void mover_tend(Mover *mover, uint64_t now_usec);

/* Limits the bytes per second that all requests together may move to one node; 0, the initial value: no
 * limit. The lower of this and the request's own rate applies. */
void mover_set_rate(Mover *mover, uint64_t rate_bytes);

void mover_statistics(Mover *mover, MoverStatistics *ret);

/* "hugetlb", "no-room"; NULL-terminated. Part of the interface: never changed. */
extern const char *const mover_reason_names[];
extern const char *const mover_outcome_names[];
