/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random numbers that are the same on every machine: splitmix64, after Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014. Its state is one word, every seed is good, and it passes
 * the usual batteries of tests, which is enough here. */

#include "sim/scenario/spec.h"

#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

/* Returns a separate generator for one of several purposes, so that draws for one do not shift the numbers of
 * another. */
Random random_split(uint64_t seed, uint64_t purpose);

uint64_t random_next(Random *random);

/* Returns a number from 0 to n - 1; 0 if n is 0. */
uint32_t random_below(Random *random, uint32_t n);

/* Returns a length of time in nanoseconds; 0 only if it is constantly 0. */
uint64_t random_time(Random *random, const SimDist *dist);
