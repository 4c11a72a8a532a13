/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parts of random-world.c. */

#include "random-world.h"

/* Returns the mask interned, and frees `set`. */
CpuMask random_intern(Fixture *f, hwloc_bitmap_t set);
/* Fills in some nodes, at least one. */
void random_nodes(const Topology *t, Random *r, const Renaming *renaming, hwloc_bitmap_t ret);

/* Fill in what their names say. Call random_moves() after homes and processes. */
void random_memory(Fixture *f, Random *r, const Renaming *renaming);
void random_others(Fixture *f, Random *r, const Renaming *renaming);
void random_moves(Fixture *f, Random *r, const Renaming *renaming);
void random_gathers(Fixture *f, Random *r, const Renaming *renaming);
void random_traffic(Fixture *f, Random *r, const Renaming *renaming);
