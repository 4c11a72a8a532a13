/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the CPUs of each node read and write, counted by this program itself between two snapshots: only while somebody
 * watches is it worth what reading the counters costs. */

#include "ctl/top/snapshot.h"
#include "probe/memory/bandwidth.h"

/* Zeroed before but for root_fd; released by traffic_done(). */
typedef struct TopTraffic {
    int root_fd;        /* borrowed */
    Topology *topology; /* NULL: this machine's is loaded once there is anything to be counted */
    bool tried;
    Bandwidth before, after, rate;
    uint64_t before_usec; /* 0: nothing was counted */
} TopTraffic;

void traffic_done(TopTraffic *traffic);

/* Adds to a snapshot of this machine what was counted since the last call. Where nothing is counted, or by so many
 * groups that reading them would cost too much, nothing is known. Returns 0 or -ENOMEM. */
int traffic_look(TopTraffic *traffic, TopSnapshot *snapshot);
