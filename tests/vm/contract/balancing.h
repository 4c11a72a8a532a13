/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The kernel's own NUMA balancing, made to look at memory ten times a second, so that tests need not last long. */

#include "support.h"

/* Remembers how things are set, and shortens the intervals; does nothing outside a guest. For cmocka. */
int balancing_setup(void **state);
/* Sets everything as it was. For cmocka. */
int balancing_teardown(void **state);

/* Skips outside a guest, and where the kernel has no balancing. After balancing_setup(). */
void need_balancing(void);
/* Writes kernel.numa_balancing. 0 or -errno. */
int balancing_set(const char *mode);
