/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random Worlds to plan for, most of them odder than any machine. The same seed makes the same World everywhere. */

#include "fixture.h"

#define RANDOM_NODES_MAX 8U

/* Where each node goes when nodes are renamed; the identity otherwise. */
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

/* The World of that seed, on a machine whose nodes are renamed. For fixture_done(). */
void random_world(Fixture *f, uint64_t seed, const Renaming *renaming);

/* The same on a machine of which no CPU is idle, with many programs of one thread besides. */
void random_full_world(Fixture *f, uint64_t seed, const Renaming *renaming);
