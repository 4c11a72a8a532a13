/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moving memory to nodes (P18, P19, P20), beside the event loop.
 *
 * A page takes a microsecond to move and a huge one a quarter of a millisecond, so a process takes seconds. The caller
 * only submits orders, and is told through a descriptor when one is over. Each node has threads that move memory to it
 * (MOVER_LANES_MAX), run on its CPUs (a copy is made in a fifth less time where it is written) or on those of nodes
 * that help, and take orders in turns. Of a large order each takes some blocks at a time; a block goes where its
 * address says, whoever takes it.
 *
 * There is no journal here, and nothing to undo: wherever a page lies, its content is the same to its process. At any
 * instant, and so after SIGKILL in the midst of a call too, each page is on its old node or on its new one, whole; the
 * call that is under way is finished by the kernel. Who wants memory back where it was orders it there.
 *
 * What is not moved, and is counted by name: MoverReason. The mover does not look at memory policies (mbind(2)),
 * evidence or pressure: whoever gives orders does. Locked memory is moved like any other: mlock(2) promises that it
 * stays in memory, not where. */

#include "act/mover/ops.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Orders that are not over, or not collected; further ones are refused. */
#define MOVER_ORDERS_MAX 1024U

/* Ranges in one order. */
#define MOVER_RANGES_MAX 65536U

/* How long mover_free() waits for calls under way. They take 20 ms, if they do not hang. */
#define MOVER_END_USEC 500000U

/* A thread that has not come back from the kernel for so long hangs: the target's lock is held by somebody who does not
 * let it go (a mapping of a dead server's file is enough). */
#define MOVER_HANG_USEC 10000000U

/* So many threads may be given up as hanging. The next one keeps its place, which may be the only one of its node,
 * until it comes back. */
#define MOVER_HANGING_MAX 32U

/* Threads to one node, where it has the CPUs: half as many as CPUs, but two if it has two; twice as many, every second
 * one elsewhere, when other nodes help. More would take the memory's bandwidth, or the CPUs, from the target itself.
 *
 * A thread waits as well as copies, for a CPU on those of a busy target at least; what else it waits for in a call
 * was not measured. Moves of huge pages in an emulated machine of two CPUs a node, on a busy host, took with two
 * threads and with one, medians of six: 0.45 and 0.65 s for 32 MB, 2.3 and 3.1 s for 256 MB, while the target wrote
 * with all CPUs; the longest call was as long. From a target that slept, medians of four: 80 and 75 ms, 0.60 and
 * 0.61 s; and for small pages, where there only is more to contend for, 0.39 and 0.39 s, 4.3 and 2.3 s. */
#define MOVER_LANES_MAX 4U

/* From so many on, hanging ones included, a node gets only one; the service has room for some more (TasksMax=). */
#define MOVER_THREADS_MAX 64U

typedef struct Mover Mover;

/* Why memory stayed where it was. Of the first five, which are properties of a mapping, the length of the mapping is
 * counted, of the others what lies elsewhere. */
typedef enum MoverReason {
    MOVER_REASON_FILE,      /* a file: its pages are the page cache's, and everybody's */
    MOVER_REASON_HUGETLB,   /* huge pages that were set aside: there are none elsewhere to move to */
    MOVER_REASON_DEVICE,    /* a device, or pages of the kernel itself */
    MOVER_REASON_VAST,      /* larger than the machine's memory: looking through it takes too long */
    MOVER_REASON_FOREIGN,   /* a line of maps that is not understood; counted as one page */
    MOVER_REASON_SHARED,    /* mapped more than once, mostly by others; see MoverOrder.shared */
    MOVER_REASON_BUSY,      /* refused again and again: pinned by a device, or under I/O */
    MOVER_REASON_NO_MEMORY, /* the kernel found no page for it */
    MOVER_REASON_HEADROOM,  /* the node would have too little left (P19) */
    MOVER_REASON_OTHER,     /* anything else the kernel said of a page */
    MOVER_REASON_MAX,
    MOVER_REASON_INVALID = -EINVAL,
} MoverReason;

/* How an order ended; of several nodes the last in this list counts. */
typedef enum MoverOutcome {
    MOVER_DONE,      /* everything was looked at, and what could be moved was */
    MOVER_NO_ROOM,   /* the node is full (P19): what comes behind was not looked at */
    MOVER_OUTSIDE,   /* the target's cpuset does not allow the node */
    MOVER_DENIED,    /* we may not */
    MOVER_CANCELLED, /* by mover_cancel() */
    MOVER_GONE,      /* the process exited, or its number belongs to another one */
    MOVER_HUNG,      /* a call did not come back; it may do so later, and move what it was told to */
    MOVER_FAILED,    /* something broke: MoverResult.error */
    MOVER_OUTCOME_MAX,
    MOVER_OUTCOME_INVALID = -EINVAL,
} MoverOutcome;

typedef struct MoverRange {
    uint64_t start, end; /* addresses; the pages they touch */
    NodeIx to;           /* one of to_nodes; counts if the order says `sent` */
} MoverRange;

typedef struct MoverOrder {
    pid_t pid;
    uint64_t start_ticks;
    const MoverRange *ranges; /* ascending and apart; copied */
    size_t n_ranges;          /* 0: all there is */

    /* NodeIx; at least one, all with memory. Several: a block of 2 MB that has to move goes to the one its address
     * divided by 2 MB, modulo their number, points at: the same block always to the same. */
    hwloc_const_bitmap_t to_nodes;
    hwloc_const_bitmap_t
        help_nodes; /* NodeIx; their CPUs move, too, as many lanes as the node's; NULL: none */
    bool stripe;    /* P17: also what lies on another of to_nodes than that; else it may stay there */
    bool sent; /* each range says where it goes to (MoverRange.to), and all of it does; there are ranges */

    bool shared; /* also pages that others map (needs CAP_SYS_NICE); they move for all of them */
    int nice;    /* of the thread that moves, -20..19 */
    uint32_t headroom_percent; /* of a node's memory, stays free; at most 100 */
    uint64_t reserve_bytes;    /* stays free besides: what the group is expected to grow by */
    bool spend_cache;          /* cold, clean page cache counts as free */
    uint64_t rate_bytes;       /* a second, to each node; 0: no limit */
} MoverOrder;

typedef struct MoverAccount {
    uint64_t moved_bytes;
    uint64_t refused_bytes[MOVER_REASON_MAX];
    uint64_t n_huge;       /* blocks of moved_bytes that moved as one huge page */
    uint64_t n_calls;      /* that moved, or tried to */
    uint64_t blocked_usec; /* in them all: so long at most was somebody kept from memory that was under way */
    uint64_t longest_usec; /* the longest of them */
    uint64_t n_asked;      /* pages whose place was asked for */
    uint64_t asked_usec;   /* time that took */
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
    MoverAccount account; /* of all orders, those under way included */
    uint64_t n_outcome[MOVER_OUTCOME_MAX];
    size_t n_orders;      /* not over, or not collected */
    size_t n_hanging;     /* threads given up that have not come back */
    uint64_t n_unsettled; /* times a thread did not get its CPUs or nice value; it moves all the same */
    uint64_t rate_bytes;  /* what mover_set_rate() said */
} MoverStatistics;

/* `ops` and `context` NULL: the real system calls, on files below `root_fd` (a copy of it is kept). With others
 * `root_fd` is not looked at, and their context must outlive threads that hang, which may be as long as the process.
 * Takes a reference of the topology. 0 or -errno; -EOPNOTSUPP: in a rehearsal memory has no place. Threads begin with
 * the first orders. */
int mover_new(const MoverOps *ops, void *context, int root_fd, Topology *topology, Mover **ret);

/* Cancels everything, waits for the calls under way as long as MOVER_END_USEC, and leaves those that hang to
 * themselves: what their threads use is freed when they come back, if they do. Returns NULL. */
Mover *mover_free(Mover *mover);
DEFINE_CLEANUP(Mover *, mover_free)

/* Readable when there is something to collect. */
int mover_fd(const Mover *mover);

/* Takes an order and gives it a number, never 0. Never waits. 0; -ENOBUFS: too many are waiting; -E2BIG: too many
 * ranges; -EINVAL: not of the form above; -ENOMEM, -EAGAIN: no thread to be had. */
int mover_submit(Mover *mover, const MoverOrder *order, uint64_t *ret_id);

/* The order ends after the call that is under way; its result comes as always. 0, or -ESRCH when it is over. */
int mover_cancel(Mover *mover, uint64_t id);

/* What an order has done so far. 0, or -ESRCH when it is over. */
int mover_look(Mover *mover, uint64_t id, MoverAccount *ret);

/* Takes the next result. 1; 0: there is none. */
int mover_collect(Mover *mover, MoverResult *ret);

/* Gives up threads that hang, and goes on with new ones; their orders end as HUNG. To be called now and then, as in
 * each slow tick; what hangs cannot say so. */
void mover_tend(Mover *mover, uint64_t now_usec);

/* Bytes a second that all orders together may move to one node; 0, as at the start: no limit. The lower one of this and
 * the order's holds. */
void mover_set_rate(Mover *mover, uint64_t rate_bytes);

void mover_statistics(Mover *mover, MoverStatistics *ret);

/* "hugetlb", "no-room"; NULL-terminated. Part of the interface: never changed. */
extern const char *const mover_reason_names[];
extern const char *const mover_outcome_names[];
