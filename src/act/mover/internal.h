/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the mover share: jobs, the threads that carry them out, and the one lock over it all. */

#include "act/mover/walk.h"
#include "base/thread.h"

typedef struct MoverJob MoverJob;

/* One lane of a job to one of its nodes: what one thread does of it. The first lane begins; the others are opened
 * when it has found enough to do. */
typedef struct MoverPart {
    MoverJob *job;
    uint32_t index; /* of the node, among the job's */
    NodeIx node;
    bool helps;               /* runs on CPUs of nodes that help */
    hwloc_bitmap_t accept_os; /* of the first lane */
    hwloc_bitmap_t help_cpus; /* of the first lane; empty: none helps */
    Walk *walk;               /* NULL: not begun */
    MoverAccount account;     /* as it was told last */
    bool queued;
    bool open;                     /* has been queued, and is not over */
    struct MoverPart *prev, *next; /* in the queue of the node */
} MoverPart;

/* An order, and what has come of it. */
struct MoverJob {
    unsigned n_ref; /* one, and one for each worker that was given up with it */
    MoverOrder order;
    MoverRange *ranges;
    hwloc_bitmap_t to_nodes;
    bool cancelled;
    MoverPart *parts; /* of each node MOVER_LANES_MAX, in ascending order */
    uint32_t n_parts, n_open;
    MoverResult result;           /* its account: of parts that are over */
    struct MoverJob *prev, *next; /* in the mover's jobs or finished */
};

typedef struct MoverWorker {
    Mover *mover;
    NodeIx node;
    pthread_t thread;
    pthread_cond_t wake;
    WalkNode tools;
    int nice;
    uint64_t helps_id; /* it runs on the CPUs that help in this order; 0: on those of its node */
    MoverPart *part;   /* in hand */
    uint64_t heard_usec;
    bool waiting;  /* for the bucket, for room, or for work */
    bool given_up; /* it hangs: it has no node any more, and frees itself */
    bool left;     /* about to end */
} MoverWorker;

/* What there is for each node. */
typedef struct MoverSeat {
    MoverPart *queue;
    size_t n_queued;
    pthread_cond_t work;                   /* something was queued */
    MoverWorker *workers[MOVER_LANES_MAX]; /* NULL: none there */
    uint32_t n_own;                        /* parts that may be in hand on its CPUs; and as many elsewhere */
    hwloc_bitmap_t cpus;                   /* a copy: a worker that was given up may outlive the topology */
    MoverGate gate;
} MoverSeat;

struct Mover {
    unsigned n_ref; /* one, and one for each thread */
    const MoverOps *ops;
    void *context;
    int root_fd;
    int event_fd;
    Topology *topology;
    uint64_t memory_device, vast_bytes, rate_bytes;
    pthread_mutex_t lock;
    pthread_cond_t left;
    bool ending;
    uint64_t last_id;
    MoverJob *jobs, *finished;
    size_t n_orders, n_hanging;
    MoverStatistics total; /* of parts that are over */
    MoverSeat *seats;      /* [n_seats], by node */
    uint32_t n_seats;
};

void mover_account_add(MoverAccount *to, const MoverAccount *account);

/*
 * mover/job.c. But for the first two, called with the lock held.
 */

/* Whether the order is of the form that mover_submit() asks for: 0, -EINVAL or -E2BIG. */
int mover_job_check(const Mover *mover, const MoverOrder *order);
int mover_job_new(const Mover *mover, const MoverOrder *order, MoverJob **ret);
MoverJob *mover_job_unref(MoverJob *order);
DEFINE_CLEANUP(MoverJob *, mover_job_unref)

/* One more part of its job is to be done: queues it, and finds somebody. Its node has a worker. */
void mover_part_open(Mover *mover, MoverPart *part);
/* A part is over; when it was the last one, so is the order. */
void mover_part_finish(Mover *mover, MoverPart *part, MoverOutcome outcome, int error);
void mover_part_queue(Mover *mover, MoverPart *part);
/* Returns the part. */
MoverPart *mover_part_unqueue(Mover *mover, MoverPart *part);

/*
 * mover/worker.c. Called with the lock held.
 */

/* Gives the node a worker, if it has none. 0 or -errno. */
int mover_worker_need(Mover *mover, NodeIx node);
/* Something was queued for the node, which has a worker: wakes one that is free, or starts one more if there is
 * none. */
void mover_worker_call(Mover *mover, NodeIx node);
/* The one that has the part in hand, or NULL. */
MoverWorker *mover_worker_of(Mover *mover, const MoverPart *part);
/* Lets go of a worker that has a part in hand and hangs; the part is over. */
void mover_worker_give_up(Mover *mover, MoverWorker *worker);
/* Of one whose thread has ended. */
void mover_worker_free(MoverWorker *worker);

/* Gives back a reference; the last one takes the mover along. */
void mover_unref_and_unlock(Mover *mover);
