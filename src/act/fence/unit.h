/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* AllowedCPUs= or AllowedMemoryNodes= of units, through the service manager: over its own socket where that may be
 * used, which needs no bus daemon, else over the system bus. Nothing here waits, but the FenceOps.wait() that is for
 * the end of the program. */

#include "act/fence/fence.h"

#include <systemd/sd-bus.h>

typedef struct FenceUnits FenceUnits;

/* `property` is that of the two, and must outlive this. NULL: out of memory. `bus` is for tests, and a reference is
 * taken; NULL: connects when there is something to say. */
FenceUnits *fence_units_new(const char *property, sd_bus *bus);
FenceUnits *fence_units_free(FenceUnits *units);

/* The context is a FenceUnits. */
extern const FenceOps fence_ops_unit;
