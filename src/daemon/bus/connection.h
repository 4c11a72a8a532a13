/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the connections of both kinds. */

#include "daemon/bus/peer.h"

typedef struct BusConnection {
    sd_bus_message_handler_t on_message;      /* sees each message first; >0: the objects do not get it */
    sd_bus_message_handler_t on_disconnected; /* the other end hung up */
    void *userdata;                           /* of both */
    BusAddObjects add;
    BusPeer *peer; /* for `add` */
} BusConnection;

/* Serves the objects on a connection, started or not. Returns 0 or -errno. */
int bus_connection_serve(sd_bus *bus, const BusConnection *connection);

/* Hangs up and returns NULL. Only closes, because flushing would wait for the other end. Takes NULL. */
sd_bus *bus_connection_end(sd_bus *bus);
