/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which client is served next. Clients take turns, one message each, and soon let the event loop do
 * other work. */

#include "base/util.h"

#include <systemd/sd-event.h>

/* How long clients may delay a tick that is due, beyond the message being served: a twentieth of the default
 * FastTickSec=, and some fifty messages. */
#define BUS_TURNS_BUDGET_USEC 5000U

typedef struct BusTurns BusTurns;

/* Embedded in a client. */
typedef struct BusTurn {
    int fd; /* its socket, borrowed */
    bool queued;
    struct BusTurn *prev, *next;
} BusTurn;

/* Serves one message of a client. Returns whether there may be more to do now. If not, it is called again when
 * more can be read from the socket, or written. It may remove clients, also this one, but not free it. */
typedef bool (*BusTurnServe)(BusTurn *turn);

/* Returns 0 or -errno. */
int bus_turns_new(sd_event *event, BusTurnServe serve, BusTurns **ret);
BusTurns *bus_turns_free(BusTurns *turns);
DEFINE_CLEANUP(BusTurns *, bus_turns_free)

/* Adds a client, whose turn comes soon. Returns 0 or -errno. */
int bus_turns_add(BusTurns *turns, BusTurn *turn, int fd);
/* Removes a client, whose socket must still be open. Does nothing if it is not there. */
void bus_turns_remove(BusTurns *turns, BusTurn *turn);
