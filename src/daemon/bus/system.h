/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The system bus: org.numaplace1 with the objects of the private socket. The bus may be missing, appear late,
 * or go away; the daemon works without it and tries again. */

#include "base/util.h"
#include "daemon/bus/peer.h"
#include "daemon/log.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct BusSystem BusSystem;

/* Begins to connect; a missing bus is no error. Keeps a reference to `event`, and borrows `log`. Returns 0 or
 * -errno. */
int bus_system_new(sd_event *event, Log *log, BusAddObjects add, void *userdata, BusSystem **ret);
/* Releases the name and hangs up, without waiting for anything. */
BusSystem *bus_system_free(BusSystem *system);
DEFINE_CLEANUP(BusSystem *, bus_system_free)

/* Whether clients of the system bus are served now. */
bool bus_system_ready(const BusSystem *system);

/* Calls `tell` when the bus is there and reads what it is sent; otherwise clients ask for what they missed. */
void bus_system_tell(BusSystem *system, BusTell tell, void *userdata);
