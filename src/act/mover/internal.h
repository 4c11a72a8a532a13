/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the mover share: jobs, the threads that carry them out, and the one lock over them. */

#include "act/mover/walk.h"
#include "base/thread.h"

typedef struct MoverJob MoverJob;

/* One lane of a job to one of its nodes: the share of one thread. The first lane begins; the others are
 * opened when it has found enough to do. */
typedef struct MoverPart {
    MoverJob *job;
    uint32_t index; /* of the node, among the job's */
    NodeIx node;
    bool helps;               /* runs on CPUs of nodes that help */
    hwloc_bitmap_t accept_os; /* in the first lane only */
    hwloc_bitmap_t help_cpus; /* in the first lane only; empty: no node helps */
    Walk *walk;               /* NULL: not begun */
    MoverAccount account;     /* as last reported */
    bool queued;
    bool open;                     /* has been queued, and is not over */
    struct MoverPart *prev, *next; /* in the queue of the node */
} MoverPart;

/* A migration request and its progress. */
struct MoverJob {
    unsigned n_ref; /* one, plus one for each worker given up with it */
    MoverOrder order;
    MoverRange *ranges;
    hwloc_bitmap_t to_nodes;
    bool cancelled;
    MoverPart *parts; /* MOVER_LANES_MAX per node, nodes in ascending order */
    uint32_t n_parts, n_open;
    MoverResult result;           /* its account covers parts that are over */
    struct MoverJob *prev, *next; /* in the mover's jobs or finished */
};

typedef struct MoverWorker {
    Mover *mover;
    NodeIx node;
    pthread_t thread;
    pthread_cond_t wake;
    WalkNode tools;
    int nice;
    uint64_t helps_id; /* runs on the CPUs that help this request; 0: on those of its node; UINT64_MAX: the daemon's */
    MoverPart *part;   /* the one it works on */
    uint64_t heard_usec;
    bool waiting;  /* for the bucket, for room, or for work */
    bool given_up; /* hung: it has no node any more, and frees itself */
    bool left;     /* about to end */
} MoverWorker;

/* What belongs to each node. */
typedef struct MoverSeat {
    MoverPart *queue;
    size_t n_queued;
    pthread_cond_t work;                   /* something was queued */
    MoverWorker *workers[MOVER_LANES_MAX]; /* NULL: no worker */
    uint32_t n_own;                        /* most parts in progress on its CPUs; and as many elsewhere */
    hwloc_bitmap_t cpus;                   /* a copy, because a worker given up may outlive the topology */
    MoverGate gate;
} MoverSeat;

struct Mover {
    unsigned n_ref; /* one, plus one for each thread */
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

/* mover/job.c. All but the first two are called with the lock held. */

/* Checks that a request has the form mover_submit() asks for: 0, -EINVAL or -E2BIG. */
int mover_job_check(const Mover *mover, const MoverOrder *order);
int mover_job_new(const Mover *mover, const MoverOrder *order, MoverJob **ret);
MoverJob *mover_job_unref(MoverJob *order);
DEFINE_CLEANUP(MoverJob *, mover_job_unref)

/* Queues one more part of its job and finds a worker for it. The part's node must have a worker. */
void mover_part_open(Mover *mover, MoverPart *part);
/* Ends a part; with the last part, the job ends. */
void mover_part_finish(Mover *mover, MoverPart *part, MoverOutcome outcome, int error);
void mover_part_queue(Mover *mover, MoverPart *part);
/* Returns the part. */
MoverPart *mover_part_unqueue(Mover *mover, MoverPart *part);

/*
 * mover/worker.c. Called with the lock held.
 */

/* Gives the node a worker if it has none. 0 or -errno. */
int mover_worker_need(Mover *mover, NodeIx node);
/* Wakes a free worker of the node, for which something was queued, or starts another worker if none is free.
 * The node must have a worker. */
void mover_worker_call(Mover *mover, NodeIx node);
/* Returns the worker that works on the part, or NULL. */
MoverWorker *mover_worker_of(Mover *mover, const MoverPart *part);
/* Gives up a worker that hangs while it works on a part; the part is over. */
void mover_worker_give_up(Mover *mover, MoverWorker *worker);
/* Frees a worker whose thread has ended. */
void mover_worker_free(MoverWorker *worker);

/* Drops a reference; the last one frees the mover. */
void mover_unref_and_unlock(Mover *mover);
