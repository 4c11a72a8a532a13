/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a change of home was worth: how much the threads of each group waited, and how much of their memory was local to
 * them, before and after, with how much that varies by itself. */

#include "base/util.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>

/* So many looks are averaged, the last ones before a change and the last ones after. */
#define GAIN_LOOKS 32U
/* Fewer say nothing. */
#define GAIN_LOOKS_MIN 3U
/* After a change so long passes before looks count: memory is still on its way. */
#define GAIN_SETTLE_USEC 2000000U

typedef struct GainMean {
    bool known;
    uint32_t permille, noise; /* the mean, and the standard deviation of one look */
} GainMean;

typedef struct GainSide {
    GainMean waits; /* of the CPU time that its threads want, what they wait */
    GainMean local; /* of its memory, what is on the node that its threads run on, as in plan/would.h */
} GainSide;

typedef struct Gain {
    uint64_t since_usec; /* when the home changed */
    GainSide before, after;
} Gain;

typedef struct Gains Gains;

Gains *gains_new(void);
Gains *gains_free(Gains *gains);

/* Takes a look at all groups; those that are gone are forgotten. A group whose Group.last_home_usec is another one than
 * at the look before has changed its home. Returns 0 or -ENOMEM. */
int gains_look(Gains *gains, const World *world);

/* What the last change of home of a group was worth; false: nothing is known of before, or of after. */
bool gains_find(const Gains *gains, uint64_t group_id, Gain *ret);

/* How it is since the last change of its home, or since it was first seen. False: no look was taken at it. */
bool gains_now(const Gains *gains, uint64_t group_id, GainSide *ret);
