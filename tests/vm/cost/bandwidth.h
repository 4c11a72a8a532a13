/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bandwidth of one node's memory: how many lines it hands out in each slot of time.
 *
 * CPUs take turns, so one may ask for the beginning of a slot when another has already asked for its end. Who asks
 * gets a line of the slot it is in when any is left, whoever came before, and otherwise the next slot's: no CPU
 * waits because of the order in which they are emulated. While all that there is is taken, each CPU gets no more
 * than its share, or the first in that order would never wait. */

#include "config.h"

#define BANDWIDTH_SLOTS 64U

typedef struct BandwidthSlot {
    uint64_t number;
    uint32_t used;
    uint32_t users;
    uint16_t used_by[COST_CPUS_MAX];
} BandwidthSlot;

typedef struct Bandwidth {
    uint64_t slot_psec; /* 0: unlimited */
    uint32_t capacity;  /* lines of a slot */
    BandwidthSlot slots[BANDWIDTH_SLOTS];
} Bandwidth;

/* `line_psec`: what a line takes, 0 when bandwidth is unlimited. A slot is `slot_psec` long, or as long as it takes
 * to be worth some lines. */
void bandwidth_init(Bandwidth *b, uint64_t line_psec, uint64_t slot_psec);

/* Takes a line at `now_psec`. Returns how long `cpu` has to wait for it, in picoseconds. */
uint64_t bandwidth_take(Bandwidth *b, unsigned cpu, uint64_t now_psec);

/* Takes a line that nobody waits for: one that is written back. */
void bandwidth_post(Bandwidth *b, uint64_t now_psec);
