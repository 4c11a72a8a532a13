/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* AllowedCPUs= or AllowedMemoryNodes= of units, through the service manager: over its own socket if allowed,
 * which needs no bus daemon, else over the system bus. Nothing here waits except FenceOps.wait(), at the end
 * of the program. */

#include "act/fence/fence.h"

#include <systemd/sd-bus.h>

typedef struct FenceUnits FenceUnits;

/* `property` is one of the two, and must outlive this. `bus`, for tests, gets a new reference; NULL: connects
 * on first use. Returns NULL when out of memory. */
FenceUnits *fence_units_new(const char *property, sd_bus *bus);
FenceUnits *fence_units_free(FenceUnits *units);

/* The context is a FenceUnits. */
extern const FenceOps fence_ops_unit;
