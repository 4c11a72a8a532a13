/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Queries where pages are and moves them, in calls of some ten milliseconds, within the rate limit and the
 * room on the node (act/mover/gate.h). For the system calls see tests/vm/contract/contract-move-pages.c. */

#include "act/mover/walk-internal.h"

#include <inttypes.h>
#include <stdio.h>

MoverOutcome walk_fail(Walk *w, int error)
{
    w->error = error;
    return MOVER_FAILED;
}

MoverOutcome walk_judge(Walk *w, int error)
{
    if (error == -ESRCH || !w->node->ops->is_alive(w->node->context, w->process_fd))
        return MOVER_GONE;
    switch (error) {
    case -EACCES:
        return MOVER_OUTSIDE;
    case -EPERM:
    case -EINVAL: /* a kernel thread, or a process whose memory is gone already */
        return MOVER_DENIED;
    default:
        return walk_fail(w, error);
    }
}

bool walk_go_on(Walk *w)
{
    return w->host->go_on(w->host->userdata, &w->account);
}

/*
 * Asking
 */

MoverOutcome walk_ask(Walk *w, size_t first, size_t n, int *status)
{
    WalkNode *node = w->node;
    uint64_t began = node->ops->now_usec(node->context);
    long r;

    if (n == 0)
        return MOVER_DONE;
    r = node->ops->move_pages(node->context, w->memory_pid, n, node->pages + first, NULL, status + first,
                              false);
    w->account.n_asked += n;
    w->account.asked_usec += node->ops->now_usec(node->context) - began;
    if (r < 0)
        return walk_judge(w, (int)r);
    return node->ops->is_alive(node->context, w->process_fd) ? MOVER_DONE : MOVER_GONE;
}

bool walk_misplaced(const Walk *w, int status)
{
    return status >= 0 && !hwloc_bitmap_isset(w->accept_os, (unsigned)status);
}

void walk_put_page(WalkNode *node, size_t *n, uint64_t address, size_t block)
{
    /* Addresses in another process. */
    node->pages[*n] = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
    node->owner[*n] = (uint8_t)block;
    (*n)++;
}

size_t walk_keep_misplaced(Walk *w, size_t n)
{
    WalkNode *node = w->node;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (walk_misplaced(w, node->status[i])) {
            node->pages[kept] = node->pages[i];
            node->owner[kept] = node->owner[i];
            kept++;
        }
    return kept;
}

/*
 * Moving
 */

uint64_t walk_rate(const Walk *w)
{
    uint64_t host = w->node->rate_bytes, own = w->order->rate_bytes;

    return host == 0 || (own != 0 && own < host) ? own : host;
}

/* Pauses; returns false if the walk should stop. */
static bool pause_for(Walk *w, uint64_t usec)
{
    w->host->pause(w->host->userdata, usec);
    return walk_go_on(w);
}

static MoverOutcome wait_for(Walk *w, MoverGate *gate, uint64_t rate, uint64_t bytes)
{
    WalkNode *node = w->node;
    uint64_t usec;

    while ((usec = mover_gate_take(gate, &node->pass, rate, bytes, node->ops->now_usec(node->context))) > 0)
        if (!pause_for(w, usec)) {
            mover_gate_forgo(gate, &node->pass);
            return MOVER_CANCELLED;
        }
    return MOVER_DONE;
}

static MoverOutcome take_rate(Walk *w, uint64_t bytes)
{
    WalkNode *node = w->node;
    uint64_t own = w->order->rate_bytes, host = node->rate_bytes;
    MoverOutcome outcome = own != 0 ? wait_for(w, mover_gate_own(node->gate, own), own, bytes) : MOVER_DONE;

    return outcome == MOVER_DONE && host != 0 ? wait_for(w, node->gate, host, bytes) : outcome;
}

void walk_return(Walk *w, uint64_t bytes)
{
    WalkNode *node = w->node;

    if (w->order->rate_bytes != 0)
        mover_gate_return(mover_gate_own(node->gate, w->order->rate_bytes), bytes);
    if (node->rate_bytes != 0)
        mover_gate_return(node->gate, bytes);
}

static int read_room(const Walk *w, uint64_t *ret)
{
    const WalkNode *node = w->node;
    CLEANUP_FREE char *text = NULL;
    NodeMemory memory;
    char path[64];
    int r;

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%" PRIu32 "/meminfo", node->os_index);
    r = node->ops->read_file(node->context, path, NODE_MEMORY_TEXT_SIZE, &text);
    if (r == 0)
        r = node_memory_parse(text, &memory);
    if (r < 0)
        return r;
    *ret = mover_room(&memory, &w->guard);
    return 0;
}

/* Reserves room for up to `n` pages; *ret_n is 0 unless the outcome is DONE. */
static MoverOutcome take_room(Walk *w, size_t n, uint64_t bytes, size_t *ret_n)
{
    WalkNode *node = w->node;

    *ret_n = 0;
    for (;;) {
        uint64_t room;
        int r;

        mover_gate_look(node->gate, &node->pass);
        r = read_room(w, &room);
        if (r < 0)
            return walk_fail(w, r);
        *ret_n = mover_gate_enter(node->gate, &node->pass, room, n, bytes);
        if (*ret_n > 0)
            return MOVER_DONE;
        if (room < bytes)
            return MOVER_NO_ROOM;
        /* Other threads are filling it, and may leave some. */
        if (!pause_for(w, MOVER_AIM_USEC))
            return MOVER_CANCELLED;
    }
}

MoverOutcome walk_admit(Walk *w, size_t n, uint64_t bytes, size_t *ret_n)
{
    uint64_t rate = walk_rate(w);
    MoverOutcome outcome;
    size_t some;

    n = MIN(n, bytes == WALK_BLOCK_BYTES ? w->node->blocks_limit : w->node->pages_limit);
    if (rate != 0) {
        n = MIN(n, mover_bucket_burst(rate) / bytes);
        outcome = take_rate(w, n * bytes);
        if (outcome != MOVER_DONE)
            return outcome;
    }
    outcome = take_room(w, n, bytes, &some);
    walk_return(w, (n - some) * bytes);
    if (outcome == MOVER_DONE)
        *ret_n = some;
    return outcome;
}

void walk_leave(Walk *w)
{
    mover_gate_leave(w->node->gate, &w->node->pass);
}

/* Completes status[] after a call that left pages. The kernel queues consecutive pages and moves them
 * together. If some of them could not be moved, it sets no status for any page of the queue; it sets the
 * status of the page after the queue, and stops there. So the first run of pages without a status is the
 * queue that was tried, and a query shows which of those moved. Pages beyond the one after it were not tried.
 * *ret_n is how many of the `n` pages were tried. */
static MoverOutcome settle(Walk *w, size_t first, size_t n, int error, size_t *ret_n)
{
    WalkNode *node = w->node;
    size_t from = first, to, end = first + n;
    MoverOutcome outcome;

    while (from < end && node->status[from] != WALK_UNSAID)
        from++;
    for (to = from; to < end && node->status[to] == WALK_UNSAID;)
        to++;
    outcome = walk_ask(w, from, to - from, node->where);
    if (outcome != MOVER_DONE)
        return outcome;
    for (size_t i = from; i < to; i++) {
        if (node->where[i] < 0)
            node->status[i] = -ENOENT; /* not there any more */
        else if (walk_misplaced(w, node->where[i]))
            node->status[i] = error;
        else
            node->status[i] = node->where[i];
    }
    *ret_n = MIN(to + 1, end) - first;
    return MOVER_DONE;
}

void walk_count_call(Walk *w, uint64_t took_usec)
{
    w->account.n_calls++;
    w->account.blocked_usec += took_usec;
    w->account.longest_usec = MAX(w->account.longest_usec, took_usec);
}

/* Sets how many pages the next call may move, after one that tried `n` of them. Blocks that are moved as huge
 * pages may turn out to be small ones. So the limit for blocks goes down at once, but up only when all were huge
 * (find_huge() in walk.c). */
static void set_pace(WalkNode *node, size_t n, uint64_t bytes, uint64_t took_usec)
{
    if (bytes != WALK_BLOCK_BYTES) {
        node->pages_limit = mover_pace_next(node->pages_limit, n, took_usec, (uint32_t)node->capacity);
        return;
    }
    node->blocks_next = mover_pace_next(node->blocks_limit, n, took_usec, WALK_BLOCKS);
    node->blocks_limit = MIN(node->blocks_limit, node->blocks_next);
}

/* One call, for `n` pages of `bytes` each; *ret_n is how many of them it tried. */
static MoverOutcome call(Walk *w, size_t first, size_t n, uint64_t bytes, size_t *ret_n)
{
    WalkNode *node = w->node;
    MoverOutcome outcome = MOVER_DONE;
    uint64_t began, took;
    long r;

    if (!walk_go_on(w))
        return MOVER_CANCELLED;
    if (!node->ops->is_alive(node->context, w->process_fd))
        return MOVER_GONE;
    began = node->ops->now_usec(node->context);
    r = node->ops->move_pages(node->context, w->memory_pid, n, node->pages + first, node->nodes,
                              node->status + first, w->order->shared);
    took = node->ops->now_usec(node->context) - began;
    walk_count_call(w, took);
    if (!node->ops->is_alive(node->context, w->process_fd))
        return MOVER_GONE;

    w->n_exhausted = r == -ENOMEM ? w->n_exhausted + 1 : 0;
    *ret_n = n;
    if (r < 0 && r != -ENOMEM)
        return walk_judge(w, (int)r);
    if (r != 0)
        outcome = settle(w, first, n, r == -ENOMEM ? -ENOMEM : -EBUSY, ret_n);
    set_pace(node, *ret_n, bytes, took);
    return outcome;
}

MoverOutcome walk_pour(Walk *w, size_t n, uint64_t bytes, size_t *ret_n)
{
    MoverOutcome outcome = MOVER_DONE;
    size_t done = 0, some, admitted;

    for (size_t i = 0; i < n; i++)
        w->node->status[i] = WALK_UNSAID;
    while (done < n && outcome == MOVER_DONE) {
        bool exhausted = w->n_exhausted >= WALK_TRIES;

        outcome = exhausted ? MOVER_NO_ROOM : walk_admit(w, n - done, bytes, &some);
        if (outcome == MOVER_NO_ROOM)
            w->account.refused_bytes[exhausted ? MOVER_REASON_NO_MEMORY : MOVER_REASON_HEADROOM] +=
                (n - done) * bytes;
        if (outcome == MOVER_DONE) {
            admitted = some;
            outcome = call(w, done, admitted, bytes, &some);
            walk_leave(w);
        }
        if (outcome == MOVER_DONE) {
            walk_return(w, (admitted - some) * bytes);
            done += some;
        }
    }
    *ret_n = done;
    return outcome;
}
