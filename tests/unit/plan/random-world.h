/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random Worlds to plan for, most of them odder than any real machine. The same seed makes the same World
 * everywhere. */

#include "fixture.h"

#define RANDOM_NODES_MAX 8U

/* New index of each node; the identity when nodes are not renamed. */
typedef struct Renaming {
    uint32_t to[RANDOM_NODES_MAX];
} Renaming;

typedef struct Random {
    uint64_t state;
} Random;

extern const Renaming random_no_renaming;

/* A number below `below`. */
uint32_t random_roll(Random *r, uint32_t below);
bool random_chance(Random *r, uint32_t percent);

/* Makes the World of that seed, on a machine with renamed nodes. End with fixture_done(). */
void random_world(Fixture *f, uint64_t seed, const Renaming *renaming);

/* The same on a machine with no idle CPU, and with many more programs of one thread. */
void random_full_world(Fixture *f, uint64_t seed, const Renaming *renaming);
