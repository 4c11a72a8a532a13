/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The other end of a connection. The objects are served on private connections of one client each
 * (daemon/bus/server.h), and on one to the system bus for all clients there (daemon/bus/system.h). */

#include <sys/types.h>
#include <systemd/sd-bus.h>

/* The userdata of handlers of methods and properties. */
typedef struct BusPeer {
    void *userdata;               /* the manager */
    struct BusRequests *requests; /* of the system bus (daemon/bus/authorize.h); NULL: a private connection */
    uid_t uid;                    /* of the client of a private connection, from its socket */
} BusPeer;

/* Adds the objects to a new connection, with `peer` as their userdata. Returns 0 or -errno. */
typedef int (*BusAddObjects)(sd_bus *bus, BusPeer *peer);

/* Sends signals to one connection that is ready. */
typedef void (*BusTell)(sd_bus *bus, void *userdata);
