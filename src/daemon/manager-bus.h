/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods of org.numaplace1.Manager; include/numaplace/bus.h is their manual. */

#include <systemd/sd-bus.h>

/* Its userdata is the BusClient, whose userdata is the Manager. */
extern const sd_bus_vtable manager_vtable[];
