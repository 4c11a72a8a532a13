/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is served on the buses: the manager and one object per workload; include/numaplace/bus.h is their manual. */

#include "daemon/bus/peer.h"

/* BusAddObjects; the peer's userdata is the Manager. */
int manager_bus_add(sd_bus *bus, BusPeer *peer);
