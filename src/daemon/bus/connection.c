/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/bus/connection.h"

#include <stddef.h>

int bus_connection_serve(sd_bus *bus, const BusConnection *connection)
{
    int r = sd_bus_add_filter(bus, NULL, connection->on_message, connection->userdata);

    if (r < 0)
        return r;
    r = sd_bus_match_signal(bus, NULL, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                            "Disconnected", connection->on_disconnected, connection->userdata);
    return r < 0 ? r : connection->add(bus, connection->peer);
}

sd_bus *bus_connection_end(sd_bus *bus)
{
    if (!bus)
        return NULL;
    sd_bus_detach_event(bus);
    sd_bus_close(bus);
    return sd_bus_unref(bus);
}
