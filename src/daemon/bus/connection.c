/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/bus/connection.h"

#include <stddef.h>

int bus_connection_serve(sd_bus *bus, sd_bus_message_handler_t on_message,
                         sd_bus_message_handler_t on_disconnected, void *userdata, BusAddObjects add,
                         BusPeer *peer)
{
    int r = sd_bus_add_filter(bus, NULL, on_message, userdata);

    if (r < 0)
        return r;
    r = sd_bus_match_signal(bus, NULL, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                            "Disconnected", on_disconnected, userdata);
    return r < 0 ? r : add(bus, peer);
}

sd_bus *bus_connection_end(sd_bus *bus)
{
    if (!bus)
        return NULL;
    sd_bus_detach_event(bus);
    sd_bus_close(bus);
    return sd_bus_unref(bus);
}
