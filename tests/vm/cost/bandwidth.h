/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bandwidth of one node's memory: how many lines it supplies in each slot of time.
 *
 * CPUs take turns, so a CPU may ask for the beginning of a slot after another has asked for its end. A CPU
 * gets a line of the slot it is in if any is left, whoever asked before, and otherwise one of the next slot:
 * no CPU waits because of the order in which they are emulated. While all bandwidth is used, each CPU gets no
 * more than its share, or the first CPU in that order would never wait. */

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

/* `line_psec`: time that a line takes; 0: bandwidth is unlimited. A slot is `slot_psec` long, or longer if it
 * would have too few lines. */
void bandwidth_init(Bandwidth *b, uint64_t line_psec, uint64_t slot_psec);

/* Takes a line at `now_psec`. Returns how long `cpu` waits for it, in picoseconds. */
uint64_t bandwidth_take(Bandwidth *b, unsigned cpu, uint64_t now_psec);

/* Takes a line that no CPU waits for: one that is written back. */
void bandwidth_post(Bandwidth *b, uint64_t now_psec);
