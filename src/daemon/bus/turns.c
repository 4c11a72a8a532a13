/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* With a thousand connections, sd-event would collect all ready ones before each message, and ticks would wait for a
 * message of each. So clients have an epoll set of their own, one descriptor to the event loop, and a queue:
 *
 *   socket ready --> end of the queue --> served one message --> more to do: end of the queue
 *                                                            --> nothing: until the socket is ready again
 *
 * Every client's next message comes before any client's second. When the budget is used up, the loop does everything
 * else; a timer that is always due brings it back. Sockets are watched for edges: a client that was served until there
 * was nothing left has seen all its data. */

#include "daemon/bus/turns.h"

#include "base/time.h"

#include <sys/epoll.h>
#include <utlist.h>

/* Events taken from epoll at a time. */
#define READY_MAX 64

struct BusTurns {
    BusTurnServe serve;
    int epoll_fd;
    sd_event_source *ready_source;
    sd_event_source *again_source;
    BusTurn *queue;
};

static void enqueue(BusTurns *turns, BusTurn *turn)
{
    if (turn->queued)
        return;
    turn->queued = true;
    DL_APPEND(turns->queue, turn);
}

static void dequeue(BusTurns *turns, BusTurn *turn)
{
    if (!turn->queued)
        return;
    turn->queued = false;
    DL_DELETE(turns->queue, turn);
}

static void collect(BusTurns *turns)
{
    struct epoll_event ready[READY_MAX];
    int n = epoll_wait(turns->epoll_fd, ready, READY_MAX, 0);

    for (int i = 0; i < n; i++)
        enqueue(turns, ready[i].data.ptr);
}

static int take_turns(BusTurns *turns)
{
    uint64_t end = time_now_usec() + BUS_TURNS_BUDGET_USEC;

    collect(turns);
    while (turns->queue && time_now_usec() < end) {
        BusTurn *turn = turns->queue;

        dequeue(turns, turn);
        /* A client that was removed has no socket any more, and nothing left to do. */
        if (turns->serve(turn) && turn->fd >= 0)
            enqueue(turns, turn);
    }
    return sd_event_source_set_enabled(turns->again_source, turns->queue ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    return take_turns(userdata);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
    return take_turns(userdata);
}

int bus_turns_new(sd_event *event, BusTurnServe serve, BusTurns **ret)
{
    CLEANUP(bus_turns_free_p) BusTurns *turns = calloc(1, sizeof(*turns));
    int r;

    if (!turns)
        return -ENOMEM;
    turns->serve = serve;
    turns->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (turns->epoll_fd < 0)
        return -errno;
    r = sd_event_add_io(event, &turns->ready_source, turns->epoll_fd, EPOLLIN, on_ready, turns);
    if (r < 0)
        return r;
    r = sd_event_add_time(event, &turns->again_source, CLOCK_MONOTONIC, 0, 1, on_again, turns);
    if (r < 0)
        return r;
    r = sd_event_source_set_enabled(turns->again_source, SD_EVENT_OFF);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(turns);
    return 0;
}

BusTurns *bus_turns_free(BusTurns *turns)
{
    if (!turns)
        return NULL;
    sd_event_source_disable_unref(turns->ready_source);
    sd_event_source_disable_unref(turns->again_source);
    close_p(&turns->epoll_fd);
    free(turns);
    return NULL;
}

int bus_turns_add(BusTurns *turns, BusTurn *turn, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = turn};

    *turn = (BusTurn){.fd = -1};
    if (epoll_ctl(turns->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    turn->fd = fd; /* it is writable, so its first edge is there */
    return 0;
}

void bus_turns_remove(BusTurns *turns, BusTurn *turn)
{
    if (turn->fd < 0)
        return;
    dequeue(turns, turn);
    (void)epoll_ctl(turns->epoll_fd, EPOLL_CTL_DEL, turn->fd, NULL);
    turn->fd = -1;
}
