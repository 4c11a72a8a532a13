/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A walk that moves the memory of the machine's one process to node 1. */

#include "mover-machine.h"

#include "act/mover/walk.h"

#define HEAP UINT64_C(0x7f0000000000)

typedef struct WalkFixture {
    Machine machine;
    MoverGate gate;
    WalkNode node;
    WalkHost host;
    MoverOrder order;
    hwloc_bitmap_t accept; /* node 1 */
    Walk *walk;
    unsigned n_go_on, stop_after; /* 0: never */
    uint64_t paused_usec;
    MoverOutcome outcome;
    int error;
    MoverAccount account;
} WalkFixture;

/* cmocka set-up and tear-down. */
int walk_setup(void **state);
int walk_teardown(void **state);

/* Carries out the migration request, or a part of it. */
MoverOutcome walk_run(WalkFixture *f);
MoverOutcome walk_run_part(WalkFixture *f, uint32_t part, uint32_t n_parts);
/* Resets what the node has learned. */
void walk_reset_node(WalkFixture *f);

size_t walk_pages(const WalkFixture *f, uint64_t bytes);
/* Bytes refused, for any reason. */
uint64_t walk_refused(const WalkFixture *f);
