/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may change something: root, the user the daemon runs as, and on the system bus the callers that polkit
 * authorizes. */

#include "daemon/bus/peer.h"

#include <stdbool.h>
#include <stdint.h>

/* Changes that wait for an answer at a time: of one connection to the system bus; of the bus, about who they are; of
 * polkit, of all users, and of one. */
#define BUS_REQUESTS_MAX            64U
#define BUS_REQUESTS_MAX_PER_CALLER 4U
#define BUS_REQUESTS_MAX_PER_USER   8U

typedef struct BusRequest BusRequest;

/* Those of one connection. Zeroed: none. */
typedef struct BusRequests {
    BusRequest *first;
    uint32_t n;
} BusRequests;

/* Forgets all of them; who asked gets no answer. */
void bus_requests_clear(BusRequests *requests);

/* Whether the caller of `message`, a method that changes something, may do so. On a private connection that is known;
 * on the system bus the bus is asked who it is and then, unless that is root or the daemon's own user, polkit about
 * `action` (a static string), with `workload` ("": none) as a detail. Nothing waits for the answers: when it is
 * granted, `handler` is called again with the same message, from its first argument, and its error is answered;
 * otherwise NotPermitted is.
 *
 * Returns >0 when it may, 0 when that is being asked (the handler returns 1 then), -errno with `error` set when not. */
int bus_authorize(sd_bus_message *message, BusPeer *peer, const char *action, const char *workload,
                  sd_bus_message_handler_t handler, sd_bus_error *error);

/* Whether the caller of a message for which bus_authorize() returned >0 may also do what is only for `owner`: the
 * owner may, and root and the daemon's own user. */
bool bus_is_owner(const sd_bus_message *message, const BusPeer *peer, uid_t owner);
