/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Migration requests, and the threads that carry them out.
 *
 *     submit --> job --> a part for each node --> the queue of the node --> one of its workers:
 *                 |        |                         ^   ^                  a step of the part's walk
 *                 |        `-- parts to help it -----'   `-- more to do ------'         |
 *                 |            if there is enough to do                                 |
 *                 `<---------------------- when all parts are over ---------------------'
 *                 |
 *                 `--> finished jobs --> collect
 *
 * One lock guards everything except the walk and the WalkNode that a worker is using; state that walks share
 * and the gate of a node have their own locks. Steps take turns, so that a small request does not wait for a
 * large one. A worker that hangs in the kernel cannot be ended. It is given up, and keeps its job and the
 * mover itself (n_ref) alive until it returns, or forever. */

#include "act/mover/internal.h"
#include "base/time.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <utlist.h>

/* The size of the largest mappings on today's machines. A mapping is refused only if it is larger than this
 * and than the machine's memory. */
#define VAST_BYTES_MIN (UINT64_C(1) << 40)

const char *const mover_reason_names[] = {
    [MOVER_REASON_FILE] = "file",
    [MOVER_REASON_HUGETLB] = "hugetlb",
    [MOVER_REASON_DEVICE] = "device",
    [MOVER_REASON_VAST] = "vast",
    [MOVER_REASON_FOREIGN] = "foreign",
    [MOVER_REASON_SHARED] = "shared",
    [MOVER_REASON_BUSY] = "busy",
    [MOVER_REASON_NO_MEMORY] = "no-memory",
    [MOVER_REASON_HEADROOM] = "headroom",
    [MOVER_REASON_OTHER] = "other",
    [MOVER_REASON_MAX] = NULL,
};

const char *const mover_outcome_names[] = {
    [MOVER_DONE] = "done",     [MOVER_NO_ROOM] = "no-room",     [MOVER_OUTSIDE] = "outside",
    [MOVER_DENIED] = "denied", [MOVER_CANCELLED] = "cancelled", [MOVER_GONE] = "gone",
    [MOVER_HUNG] = "hung",     [MOVER_FAILED] = "failed",       [MOVER_OUTCOME_MAX] = NULL,
};

static uint64_t memory_of(const Topology *topology)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        sum += topology->nodes[i].memory_bytes;
    return sum;
}

/* How many threads may move to a node on its CPUs. A target that waits for its memory leaves at most a few
 * CPUs idle, so half of the CPUs, but two if there are two. */
static uint32_t count_lanes(const Topology *topology, uint32_t node)
{
    int n = hwloc_bitmap_weight(topology->nodes[node].cpus);

    return (uint32_t)CLAMP(MAX(n / 2, MIN(n, 2)), 1, (int)MOVER_LANES_MAX);
}

static int make_seats(Mover *mover)
{
    int r = 0;

    mover->seats = calloc(mover->topology->n_nodes, sizeof(*mover->seats));
    if (!mover->seats)
        return -ENOMEM;
    mover->n_seats = mover->topology->n_nodes;
    for (uint32_t i = 0; i < mover->n_seats; i++) {
        mover->seats[i].n_own = count_lanes(mover->topology, i);
        thread_cond_init(&mover->seats[i].work);
        mover_gate_init(&mover->seats[i].gate);
        mover->seats[i].cpus = hwloc_bitmap_dup(mover->topology->nodes[i].cpus);
        if (!mover->seats[i].cpus)
            r = -ENOMEM;
    }
    return r;
}

static int open_descriptors(Mover *mover, const MoverOps *ops, int root_fd)
{
    if (!ops) {
        mover->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
        if (mover->root_fd < 0)
            return -errno;
    }
    mover->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mover->event_fd < 0 ? -errno : 0;
}

int mover_new(const MoverOps *ops, void *context, int root_fd, Topology *topology, Mover **ret)
{
    Mover *mover;
    int r;

    if (topology->rehearsal != 0)
        return -EOPNOTSUPP;
    mover = calloc(1, sizeof(*mover));
    if (!mover)
        return -ENOMEM;
    mover->n_ref = 1;
    mover->topology = topology_ref(topology);
    mover->root_fd = mover->event_fd = -1;
    mover->ops = ops ? ops : &mover_ops_kernel;
    mover->context = ops ? context : &mover->root_fd;
    mover->vast_bytes = MAX(memory_of(topology), VAST_BYTES_MIN);
    (void)pthread_mutex_init(&mover->lock, NULL);
    thread_cond_init(&mover->left);
    r = make_seats(mover);
    if (r == 0)
        r = open_descriptors(mover, ops, root_fd);
    if (r == 0)
        r = mover->ops->memory_device(mover->context, &mover->memory_device);
    *ret = r < 0 ? mover_free(mover) : mover;
    return MIN(r, 0);
}

/* Waits for a thread until `until_usec`. From then on, gives up threads that are in a step instead. */
static void end_worker(Mover *mover, MoverWorker *worker, uint64_t until_usec, bool *late)
{
    while (!worker->left && !*late)
        *late = thread_cond_wait_until(&mover->left, &mover->lock, until_usec) != 0;
    if (!worker->left && worker->part) {
        mover_worker_give_up(mover, worker);
        return;
    }
    /* The thread has ended or is waking up, and needs nothing but the lock. */
    (void)pthread_mutex_unlock(&mover->lock);
    (void)pthread_join(worker->thread, NULL);
    (void)pthread_mutex_lock(&mover->lock);
    mover_worker_free(worker);
}

static void end_threads(Mover *mover)
{
    uint64_t until_usec = time_now_usec() + MOVER_END_USEC;
    bool late = false;

    mover->ending = true;
    for (uint32_t i = 0; i < mover->n_seats; i++) {
        (void)pthread_cond_broadcast(&mover->seats[i].work);
        for (uint32_t k = 0; k < MOVER_LANES_MAX; k++)
            if (mover->seats[i].workers[k])
                (void)pthread_cond_signal(&mover->seats[i].workers[k]->wake);
    }
    for (uint32_t i = 0; i < mover->n_seats; i++)
        for (uint32_t k = 0; k < MOVER_LANES_MAX; k++)
            if (mover->seats[i].workers[k])
                end_worker(mover, TAKE_PTR(mover->seats[i].workers[k]), until_usec, &late);
}

static void free_jobs(MoverJob *first)
{
    MoverJob *job, *next;

    DL_FOREACH_SAFE(first, job, next)
    mover_job_unref(job);
}

Mover *mover_free(Mover *mover)
{
    if (!mover)
        return NULL;
    (void)pthread_mutex_lock(&mover->lock);
    end_threads(mover);
    free_jobs(mover->jobs);
    free_jobs(mover->finished);
    /* Only this thread changes the reference count; a worker that was given up does not use the topology. */
    mover->topology = topology_unref(mover->topology);
    mover_unref_and_unlock(mover);
    return NULL;
}

int mover_fd(const Mover *mover)
{
    return mover->event_fd;
}

void mover_tend(Mover *mover, uint64_t now_usec)
{
    (void)pthread_mutex_lock(&mover->lock);
    for (uint32_t i = 0; i < mover->n_seats; i++) {
        MoverSeat *seat = &mover->seats[i];
        const NodeIx node = {(int32_t)i};

        for (uint32_t k = 0; k < MOVER_LANES_MAX; k++)
            if (seat->workers[k] && !seat->workers[k]->waiting &&
                now_usec > seat->workers[k]->heard_usec + MOVER_HANG_USEC &&
                mover->n_hanging < MOVER_HANGING_MAX)
                mover_worker_give_up(mover, seat->workers[k]);
        /* If that fails, the next call tries again. */
        if (seat->queue && mover_worker_need(mover, node) == 0)
            mover_worker_call(mover, node);
    }
    (void)pthread_mutex_unlock(&mover->lock);
}

static int submit(Mover *mover, MoverJob *job)
{
    if (mover->n_orders >= MOVER_ORDERS_MAX)
        return -ENOBUFS;
    for (uint32_t i = 0; i < job->n_parts; i += MOVER_LANES_MAX) {
        int r = mover_worker_need(mover, job->parts[i].node);

        if (r < 0)
            return r;
    }
    job->result.id = ++mover->last_id;
    DL_APPEND(mover->jobs, job);
    mover->n_orders++;
    for (uint32_t i = 0; i < job->n_parts; i += MOVER_LANES_MAX)
        mover_part_open(mover, &job->parts[i]);
    return 0;
}

int mover_submit(Mover *mover, const MoverOrder *order, uint64_t *ret_id)
{
    CLEANUP(mover_job_unref_p) MoverJob *new = NULL;
    int r = mover_job_check(mover, order);

    if (r < 0)
        return r;
    r = mover_job_new(mover, order, &new);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&mover->lock);
    r = submit(mover, new);
    if (r == 0) {
        *ret_id = new->result.id;
        new = NULL;
    }
    (void)pthread_mutex_unlock(&mover->lock);
    return r;
}

static MoverJob *find(Mover *mover, uint64_t id)
{
    MoverJob *job;

    DL_FOREACH (mover->jobs, job)
        if (job->result.id == id)
            return job;
    return NULL;
}

static void cancel(Mover *mover, MoverJob *job)
{
    job->cancelled = true;
    for (uint32_t i = 0; i < job->n_parts; i++) {
        MoverPart *part = &job->parts[i];
        MoverWorker *worker = mover_worker_of(mover, part);

        if (part->queued)
            mover_part_finish(mover, mover_part_unqueue(mover, part), MOVER_CANCELLED, 0);
        else if (worker)
            (void)pthread_cond_signal(&worker->wake);
    }
}

int mover_cancel(Mover *mover, uint64_t id)
{
    MoverJob *job;

    (void)pthread_mutex_lock(&mover->lock);
    job = find(mover, id);
    if (job)
        cancel(mover, job);
    (void)pthread_mutex_unlock(&mover->lock);
    return job ? 0 : -ESRCH;
}

/* Adds what the parts still open have done. */
static void add_running(const MoverJob *job, MoverAccount *to)
{
    for (uint32_t i = 0; i < job->n_parts; i++)
        if (job->parts[i].open)
            mover_account_add(to, &job->parts[i].account);
}

int mover_look(Mover *mover, uint64_t id, MoverAccount *ret)
{
    MoverJob *job;

    (void)pthread_mutex_lock(&mover->lock);
    job = find(mover, id);
    if (job) {
        *ret = job->result.account;
        add_running(job, ret);
    }
    (void)pthread_mutex_unlock(&mover->lock);
    return job ? 0 : -ESRCH;
}

int mover_collect(Mover *mover, MoverResult *ret)
{
    uint64_t count;
    MoverJob *job;

    (void)pthread_mutex_lock(&mover->lock);
    job = mover->finished;
    if (job) {
        *ret = job->result;
        DL_DELETE(mover->finished, job);
        mover->n_orders--;
        mover_job_unref(job);
    }
    if (!mover->finished)
        (void)!read(mover->event_fd, &count, sizeof(count));
    (void)pthread_mutex_unlock(&mover->lock);
    return job ? 1 : 0;
}

void mover_set_rate(Mover *mover, uint64_t rate_bytes)
{
    (void)pthread_mutex_lock(&mover->lock);
    mover->rate_bytes = rate_bytes;
    (void)pthread_mutex_unlock(&mover->lock);
}

void mover_statistics(Mover *mover, MoverStatistics *ret)
{
    MoverJob *job;

    (void)pthread_mutex_lock(&mover->lock);
    *ret = mover->total;
    ret->n_orders = mover->n_orders;
    ret->n_hanging = mover->n_hanging;
    ret->rate_bytes = mover->rate_bytes;
    DL_FOREACH (mover->jobs, job)
        add_running(job, &ret->account);
    (void)pthread_mutex_unlock(&mover->lock);
}
