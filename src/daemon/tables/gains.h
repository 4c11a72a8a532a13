/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a change of home was worth: how much the threads of each group waited, and how much of their memory
 * was local, before and after, and how much that varies by itself. */

#include "base/util.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>

/* Looks that are averaged: the last ones before a change, and the last ones since. */
#define GAIN_LOOKS 32U
/* Fewer looks say nothing. */
#define GAIN_LOOKS_MIN 3U
/* Looks count from this long after a change; until then memory is still on its way. */
#define GAIN_SETTLE_USEC 2000000U

typedef struct GainMean {
    bool known;
    uint32_t permille, noise; /* mean, and standard deviation of one look */
} GainMean;

typedef struct GainSide {
    GainMean waits; /* share of the CPU time wanted that its threads wait */
    GainMean local; /* share of its memory on the nodes where its threads run, as in plan/would.h */
} GainSide;

typedef struct Gain {
    uint64_t since_usec; /* when the home changed */
    GainSide before, after;
} Gain;

typedef struct Gains Gains;

Gains *gains_new(void);
Gains *gains_free(Gains *gains);

/* Takes a look at all groups, and forgets those that are gone. A home has changed if Group.last_home_usec
 * differs from that of the previous look. Returns 0 or -ENOMEM. */
int gains_look(Gains *gains, const World *world);

/* What the last change of a group's home was worth; false: nothing is known of before, or of after. */
bool gains_find(const Gains *gains, uint64_t group_id, Gain *ret);

/* How a group fares since its home changed last, or since it was first seen; false: never looked at. */
bool gains_now(const Gains *gains, uint64_t group_id, GainSide *ret);
