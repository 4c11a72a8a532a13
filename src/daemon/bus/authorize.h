/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may change something: root, the user the daemon runs as, and on the system bus the callers that polkit
 * authorizes. */

#include "daemon/bus/peer.h"

#include <stdbool.h>
#include <stdint.h>

/* Most changes that wait at a time. BUS_REQUESTS_MAX limits those that wait for the bus to say who calls, and
 * separately those that wait for polkit. A caller is a connection to the system bus; all its changes count. Of a user,
 * only those that wait for polkit count. */
#define BUS_REQUESTS_MAX            64U
#define BUS_REQUESTS_MAX_PER_CALLER 4U
#define BUS_REQUESTS_MAX_PER_USER   8U

typedef struct BusRequest BusRequest;

/* Requests of one connection. Zeroed: none. */
typedef struct BusRequests {
    BusRequest *first;
    uint32_t n;
} BusRequests;

/* Forgets all of them; their callers get no answer. */
void bus_requests_clear(BusRequests *requests);

/* Whether the caller of `message` may make the change that it asks for. The user of a private connection is
 * known. On the system bus, the bus is asked for the user, and unless that is root or the daemon's own,
 * polkit is asked about `action` (a static string), with `workload` ("": none) as a detail. Nothing waits for
 * the answers. Once granted, `handler` is called again with the same message, from its first argument, and
 * its error is answered; otherwise NotPermitted is.
 *
 * Returns >0 if the caller may, 0 while asking (the handler then returns 1), or -errno with `error` set. */
int bus_authorize(sd_bus_message *message, BusPeer *peer, const char *action, const char *workload,
                  sd_bus_message_handler_t handler, sd_bus_error *error);

/* Whether the caller, for whom bus_authorize() returned >0, may do what is only for `owner`: it is the owner,
 * root or the daemon's own user. */
bool bus_is_owner(const sd_bus_message *message, const BusPeer *peer, uid_t owner);
