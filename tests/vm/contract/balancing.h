/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernel's own NUMA balancing, set to scan memory ten times a second, so that tests need not last long. */

#include "support.h"

/* Remembers the settings, and shortens the intervals. Does nothing outside a guest. For cmocka. */
int balancing_setup(void **state);
/* Restores all settings. For cmocka. */
int balancing_teardown(void **state);

/* Skips outside a guest, and where the kernel has no balancing. Call after balancing_setup(). */
void need_balancing(void);
/* Writes kernel.numa_balancing. Returns 0 or -errno. */
int balancing_set(const char *mode);
