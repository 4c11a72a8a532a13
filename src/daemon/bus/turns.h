/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which client is served next. Clients with something to do take turns, a message each, and together return the event
 * loop to other work after a while. */

#include "base/util.h"

#include <systemd/sd-event.h>

/* How long clients may keep the loop from a tick that is due, beyond the one message that was begun: a twentieth of
 * the default FastTickSec=, and some fifty messages. */
#define BUS_TURNS_BUDGET_USEC 5000U

typedef struct BusTurns BusTurns;

/* Part of a client. */
typedef struct BusTurn {
    int fd; /* its socket, borrowed */
    bool queued;
    struct BusTurn *prev, *next;
} BusTurn;

/* Serves one message of a client. Returns whether there may be more to do now; if not, it is called again when
 * something can be read from the socket that could not be before, or written. It may remove clients, this one too,
 * but not free it. */
typedef bool (*BusTurnServe)(BusTurn *turn);

/* Returns 0 or -errno. */
int bus_turns_new(sd_event *event, BusTurnServe serve, BusTurns **ret);
BusTurns *bus_turns_free(BusTurns *turns);
DEFINE_CLEANUP(BusTurns *, bus_turns_free)

/* Adds a client, whose turn comes soon. Returns 0 or -errno. */
int bus_turns_add(BusTurns *turns, BusTurn *turn, int fd);
/* The socket must still be open. Takes one that is not there. */
void bus_turns_remove(BusTurns *turns, BusTurn *turn);
