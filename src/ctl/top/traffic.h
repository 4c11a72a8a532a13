/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the CPUs of each node read and write, counted by this program between two snapshots. Reading the
 * counters is worth its cost only while somebody watches. */

#include "ctl/top/snapshot.h"
#include "probe/memory/bandwidth.h"

/* Zeroed by the caller except root_fd; released by traffic_done(). */
typedef struct TopTraffic {
    int root_fd;        /* borrowed */
    Topology *topology; /* NULL: this machine's is loaded once there is something to count */
    bool tried;
    Bandwidth before, after, rate;
    uint64_t before_usec; /* 0: nothing counted yet */
} TopTraffic;

void traffic_done(TopTraffic *traffic);

/* Adds what was counted since the last call to a snapshot of this machine. Adds nothing if nothing is
 * counted, or if reading so many groups would cost too much. Returns 0 or -ENOMEM. */
int traffic_look(TopTraffic *traffic, TopSnapshot *snapshot);
