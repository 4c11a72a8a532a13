/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The other end of a connection. The objects are served on two kinds of connections: private ones, each of one client
 * (daemon/bus/server.h), and the one to the system bus, of all clients there (daemon/bus/system.h). */

#include <sys/types.h>
#include <systemd/sd-bus.h>

/* What the handlers of methods and properties are given as their userdata. */
typedef struct BusPeer {
    void *userdata;               /* the manager */
    struct BusRequests *requests; /* of the system bus (daemon/bus/authorize.h); NULL: a private connection */
    uid_t uid;                    /* of a private connection's client, by its socket */
} BusPeer;

/* Adds the objects to a new connection; what is added is given `peer` as its userdata. Returns 0 or -errno. */
typedef int (*BusAddObjects)(sd_bus *bus, BusPeer *peer);

/* Sends signals to one connection that is ready. */
typedef void (*BusTell)(sd_bus *bus, void *userdata);
