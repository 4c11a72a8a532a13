/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The threads that move memory, a few for each node. A thread holds the lock except in a step of a walk, in
 * which it has its part, the part's walk and its WalkNode to itself. */

#include "act/mover/internal.h"
#include "base/time.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <utlist.h>

void mover_worker_free(MoverWorker *worker)
{
    walk_node_done(&worker->tools);
    (void)pthread_cond_destroy(&worker->wake);
    free(worker);
}

/* Called with the lock held, by the last holder of a reference, so nobody else can want the lock. */
static void destroy(Mover *mover)
{
    (void)pthread_mutex_unlock(&mover->lock);
    (void)pthread_mutex_destroy(&mover->lock);
    (void)pthread_cond_destroy(&mover->left);
    close_p(&mover->root_fd);
    close_p(&mover->event_fd);
    for (uint32_t i = 0; i < mover->n_seats; i++) {
        (void)pthread_cond_destroy(&mover->seats[i].work);
        hwloc_bitmap_free(mover->seats[i].cpus);
        mover_gate_done(&mover->seats[i].gate);
    }
    free(mover->seats);
    free(mover);
}

void mover_unref_and_unlock(Mover *mover)
{
    if (--mover->n_ref == 0)
        destroy(mover);
    else
        (void)pthread_mutex_unlock(&mover->lock);
}

static bool must_stop(const MoverWorker *worker)
{
    return worker->given_up || worker->mover->ending || (worker->part && worker->part->job->cancelled);
}

static bool host_go_on(void *userdata, const MoverAccount *account)
{
    MoverWorker *worker = userdata;
    Mover *mover = worker->mover;
    bool r;

    (void)pthread_mutex_lock(&mover->lock);
    if (!worker->given_up)
        worker->part->account = *account;
    worker->heard_usec = time_now_usec();
    worker->tools.rate_bytes = mover->rate_bytes;
    r = !must_stop(worker);
    (void)pthread_mutex_unlock(&mover->lock);
    return r;
}

static void host_pause(void *userdata, uint64_t usec)
{
    MoverWorker *worker = userdata;
    Mover *mover = worker->mover;
    uint64_t end = time_now_usec() + usec;
    int r = 0;

    (void)pthread_mutex_lock(&mover->lock);
    worker->waiting = true;
    while (!must_stop(worker) && r == 0)
        r = thread_cond_wait_until(&worker->wake, &mover->lock, end);
    worker->waiting = false;
    worker->heard_usec = time_now_usec();
    (void)pthread_mutex_unlock(&mover->lock);
}

static bool step(MoverWorker *worker, MoverPart *part, MoverOutcome *ret_outcome, int *ret_error)
{
    const WalkHost host = {.go_on = host_go_on, .pause = host_pause, .userdata = worker};

    if (!part->walk) {
        *ret_error = walk_new(&part->job->order, part->accept_os, part->index,
                              part->job->n_parts / MOVER_LANES_MAX, &part->walk);
        if (*ret_error < 0) {
            *ret_outcome = MOVER_FAILED;
            return false;
        }
    }
    return walk_step(part->walk, &worker->tools, &host, ret_outcome, ret_error);
}

/* Counts a failure, which is no reason not to move. */
static void count_unsettled(Mover *mover, int r)
{
    if (r == 0)
        return;
    (void)pthread_mutex_lock(&mover->lock);
    mover->total.n_unsettled++;
    (void)pthread_mutex_unlock(&mover->lock);
}

/* Opens further lanes for a part that has taken its first step; fewer when out of memory. */
static void open_lanes(Mover *mover, MoverPart *first)
{
    uint32_t n_own = mover->seats[first->node.i].n_own, n;

    n = walk_share(first->walk, first[1].helps ? MIN(2 * n_own, MOVER_LANES_MAX) : n_own);
    for (uint32_t i = 1; i < n && walk_join(first->walk, &first[i].walk) == 0; i++)
        mover_part_open(mover, &first[i]);
}

/* Returns the first part in the queue for which there is a place on the CPUs it is to run on, or NULL. A
 * worker looks again when it is done with its part, so it need not be woken for a place that becomes free. */
static MoverPart *pick(const MoverSeat *seat)
{
    uint32_t n[2] = {0};
    MoverPart *part;

    for (uint32_t i = 0; i < ARRAY_SIZE(seat->workers); i++)
        if (seat->workers[i] && seat->workers[i]->part)
            n[seat->workers[i]->part->helps]++;
    DL_FOREACH (seat->queue, part)
        if (n[part->helps] < seat->n_own)
            return part;
    return NULL;
}

/* Moves the thread to the CPUs the part is to run on. For a node without CPUs, the mask stays the daemon's, or, after
 * helping elsewhere, becomes all CPUs. */
static void go(MoverWorker *worker, const MoverPart *part)
{
    Mover *mover = worker->mover;
    uint64_t helps_id = part->helps ? part->job->result.id : 0;
    hwloc_const_bitmap_t cpus = part->helps
                                    ? part->job->parts[(size_t)part->index * MOVER_LANES_MAX].help_cpus
                                    : mover->seats[worker->node.i].cpus;

    if (hwloc_bitmap_iszero(cpus) && worker->helps_id != UINT64_MAX)
        cpus = mover->topology->all_cpus;
    if (helps_id != worker->helps_id && !hwloc_bitmap_iszero(cpus))
        count_unsettled(mover, mover->ops->set_cpus(mover->context, cpus));
    if (!hwloc_bitmap_iszero(cpus))
        worker->helps_id = helps_id;
}

/* Takes a step of the part. Called and returns with the lock held. */
static void work(MoverWorker *worker, MoverPart *part)
{
    Mover *mover = worker->mover;
    MoverOutcome outcome = MOVER_DONE;
    int error = 0, nice = part->job->order.nice;
    bool begins = !part->walk, more;

    (void)mover_part_unqueue(mover, part);
    worker->part = part;
    worker->waiting = false;
    worker->heard_usec = time_now_usec();
    (void)pthread_mutex_unlock(&mover->lock);
    if (nice != worker->nice)
        count_unsettled(mover, mover->ops->set_nice(mover->context, nice));
    worker->nice = nice;
    go(worker, part);
    more = step(worker, part, &outcome, &error);
    (void)pthread_mutex_lock(&mover->lock);
    worker->waiting = true;
    if (worker->given_up) {
        mover_job_unref(part->job);
        return;
    }
    worker->part = NULL;
    if (part->walk)
        part->account = *walk_account(part->walk);
    if (!more) {
        mover_part_finish(mover, part, outcome, error);
        return;
    }
    mover_part_queue(mover, part);
    if (begins && !part->job->cancelled && !mover->ending)
        open_lanes(mover, part);
}

static void *run(void *userdata)
{
    MoverWorker *worker = userdata;
    Mover *mover = worker->mover;
    MoverSeat *seat = &mover->seats[worker->node.i];
    MoverPart *part;

    (void)pthread_mutex_lock(&mover->lock);
    while (!must_stop(worker)) {
        part = pick(seat);
        if (part)
            work(worker, part);
        else
            (void)pthread_cond_wait(&seat->work, &mover->lock);
    }
    worker->left = true;
    (void)pthread_cond_signal(&mover->left);
    if (worker->given_up) {
        mover->n_hanging--;
        mover_worker_free(worker);
    }
    mover_unref_and_unlock(mover);
    return NULL;
}

static int start_thread(MoverWorker *worker)
{
    char name[16];
    int r = thread_start(&worker->thread, run, worker);

    if (r < 0)
        return r;
    (void)snprintf(name, sizeof(name), "mover/%" PRIu32, worker->tools.os_index % 100000);
    (void)pthread_setname_np(worker->thread, name);
    return 0;
}

/* Starts another worker in a free place. */
static int start_worker(Mover *mover, NodeIx node, MoverWorker **place)
{
    MoverWorker *worker;
    int r;

    worker = calloc(1, sizeof(*worker));
    if (!worker)
        return -ENOMEM;
    worker->mover = mover;
    worker->node = node;
    worker->waiting = true;
    worker->nice = INT_MAX;        /* unknown: the daemon's, */
    worker->helps_id = UINT64_MAX; /* and so are the CPUs */
    thread_cond_init(&worker->wake);
    worker->tools = (WalkNode){
        .ops = mover->ops,
        .context = mover->context,
        .gate = &mover->seats[node.i].gate,
        .node = node,
        .os_index = mover->topology->nodes[node.i].os_index,
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
        .memory_device = mover->memory_device,
        .vast_bytes = mover->vast_bytes,
    };
    r = walk_node_init(&worker->tools);
    if (r == 0)
        r = start_thread(worker);
    if (r < 0) {
        mover_worker_free(worker);
        return r;
    }
    mover->n_ref++;
    *place = worker;
    return 0;
}

int mover_worker_need(Mover *mover, NodeIx node)
{
    MoverSeat *seat = &mover->seats[node.i];

    for (uint32_t i = 0; i < ARRAY_SIZE(seat->workers); i++)
        if (seat->workers[i])
            return 0;
    return start_worker(mover, node, &seat->workers[0]);
}

void mover_worker_call(Mover *mover, NodeIx node)
{
    MoverSeat *seat = &mover->seats[node.i];
    MoverWorker **place = NULL;
    size_t n_free = 0;

    for (uint32_t i = 0; i < ARRAY_SIZE(seat->workers); i++) {
        if (!seat->workers[i])
            place = &seat->workers[i];
        else if (!seat->workers[i]->part)
            n_free++;
    }
    /* If this fails, the present workers will do. */
    if (place && seat->n_queued > n_free && pick(seat) && mover->n_ref <= MOVER_THREADS_MAX)
        (void)start_worker(mover, node, place);
    (void)pthread_cond_signal(&seat->work);
}

MoverWorker *mover_worker_of(Mover *mover, const MoverPart *part)
{
    MoverSeat *seat = &mover->seats[part->node.i];

    for (uint32_t i = 0; i < ARRAY_SIZE(seat->workers); i++)
        if (seat->workers[i] && seat->workers[i]->part == part)
            return seat->workers[i];
    return NULL;
}

void mover_worker_give_up(Mover *mover, MoverWorker *worker)
{
    MoverSeat *seat = &mover->seats[worker->node.i];

    worker->given_up = true;
    worker->part->job->n_ref++;
    mover->n_hanging++;
    for (uint32_t i = 0; i < ARRAY_SIZE(seat->workers); i++)
        if (seat->workers[i] == worker)
            seat->workers[i] = NULL;
    mover_gate_leave(&seat->gate, &worker->tools.pass);
    (void)pthread_detach(worker->thread);
    mover_part_finish(mover, worker->part, MOVER_HUNG, 0);
}
