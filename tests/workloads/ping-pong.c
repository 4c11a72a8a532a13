/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups of senders and receivers that pass small messages, as in hackbench.
 *
 * Each process is a group: half of its threads send, half receive, and every sender writes to every receiver
 * in turn, through a socket pair or a pipe that belongs to the receiver. There is no memory worth placing; a
 * placement changes how far messages and wake-ups travel. The right placement is each group within a node, or
 * better within a cache. This workload does not bind its threads. */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "work.h"

/* A usual size of a request, and below PIPE_BUF, so that a pipe writes it in one piece. */
#define WORDS 32u

enum {
    RECEIVE,
    SEND
};

static int (*channels)[2]; /* one of each receiver */
static unsigned n_receivers;
static _Atomic unsigned n_sending; /* senders that have not ended yet */

static int prepare(unsigned n_threads, uint64_t pipes)
{
    n_receivers = n_threads / 2;
    n_sending = n_threads / 2;
    channels = calloc(n_receivers, sizeof(*channels));
    if (!channels)
        return -ENOMEM;
    for (unsigned i = 0; i < n_receivers; i++)
        if ((pipes ? pipe(channels[i]) : socketpair(AF_UNIX, SOCK_STREAM, 0, channels[i])) < 0)
            return -errno;
    return 0;
}

static void fill_message(uint32_t *message, uint32_t sender, uint64_t number)
{
    for (uint32_t i = 0; i < WORDS; i++)
        message[i] = sender * 2654435761U + (uint32_t)number + i;
}

static void send_all(WorkThread *thread)
{
    uint32_t message[WORDS];

    for (uint64_t number = 0; work_more(thread); number++) {
        fill_message(message, thread->index, number);
        if (write(channels[(thread->index + number) % n_receivers][SEND], message, sizeof(message)) !=
            (ssize_t)sizeof(message))
            work_fail("sending", errno);
    }
    /* The last sender tells the receivers that no more messages will come. */
    if (atomic_fetch_sub(&n_sending, 1) == 1)
        for (unsigned i = 0; i < n_receivers; i++)
            (void)close(channels[i][SEND]);
}

/* Returns false at the end of the input. A message may come in pieces. */
static bool receive(int fd, uint32_t *message)
{
    size_t got = 0;

    while (got < WORDS * sizeof(*message)) {
        ssize_t n = read(fd, (char *)message + got, WORDS * sizeof(*message) - got);

        if (n < 0 && errno != EINTR)
            work_fail("receiving", errno);
        if (n == 0)
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void receive_all(WorkThread *thread)
{
    int fd = channels[thread->index - n_receivers][RECEIVE];
    uint32_t message[WORDS];

    while (receive(fd, message)) {
        for (uint32_t i = 1; i < WORDS; i++)
            thread->n_errors += message[i] != message[0] + i;
        thread->sum++;
    }
    (void)close(fd);
}

static void run(WorkThread *thread)
{
    if (thread->index < n_receivers)
        send_all(thread);
    else
        receive_all(thread);
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "ping-pong",
        .about = "groups (processes) whose first half of threads sends small messages to the second half",
        .unit = "messages",
        .layout = WORK_NONE,
        .processes = 4,
        .threads = 8,
        .threads_step = 2,
        .steps = 10000,
        .pass_steps = 1000,
        .step_operations = 1,
        .step_sum = 1,
        .extra = {.name = "pipe", .help = "          pipes instead of socket pairs", .flag = true},
        .prepare = prepare,
        .run = run,
    };

    return work_main(&shape, argc, argv);
}
