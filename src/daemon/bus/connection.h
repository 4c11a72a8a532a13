/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the connections of both kinds. */

#include "daemon/bus/peer.h"

/* Serves what `add` adds on a connection, started or not. `on_message` sees each message first; if it returns >0, the
 * objects do not get it. `on_disconnected`: the other end hung up. Returns 0 or -errno. */
int bus_connection_serve(sd_bus *bus, sd_bus_message_handler_t on_message,
                         sd_bus_message_handler_t on_disconnected, void *userdata, BusAddObjects add,
                         BusPeer *peer);

/* Hangs up and returns NULL. Only closes, because flushing would wait for the other end. Takes NULL. */
sd_bus *bus_connection_end(sd_bus *bus);
