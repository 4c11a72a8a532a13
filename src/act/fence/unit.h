/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sets AllowedCPUs= or AllowedMemoryNodes= of units through the service manager. The manager's own socket is
 * used where that is allowed, since it needs no bus daemon; otherwise the system bus. Nothing here waits
 * except FenceOps.wait(), which is for the end of the program. */

#include "act/fence/fence.h"

#include <systemd/sd-bus.h>

typedef struct FenceUnits FenceUnits;

/* `property` is one of the two, and must outlive this object. `bus` is for tests, and a reference to it is
 * taken; NULL: connect on first use. NULL is returned when out of memory. */
FenceUnits *fence_units_new(const char *property, sd_bus *bus);
FenceUnits *fence_units_free(FenceUnits *units);

/* The context is a FenceUnits. */
extern const FenceOps fence_ops_unit;
