/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sim/model/random.h"

#include "base/time.h"

uint64_t random_next(Random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

Random random_split(uint64_t seed, uint64_t purpose)
{
    Random mix = {seed ^ (purpose * 0xd1342543de82ef95U)};

    return (Random){random_next(&mix)};
}

/* From 0 to 2^32 - 1. */
static uint32_t even(Random *random)
{
    return (uint32_t)(random_next(random) >> 32);
}

/* Multiplication is biased by less than n / 2^32, which is too little to matter here. */
uint32_t random_below(Random *random, uint32_t n)
{
    return (uint32_t)(((uint64_t)even(random) * n) >> 32);
}

/* Exponential with mean 2^32, by von Neumann's method. It only compares, so no logarithm can differ between
 * libraries. The first of a run of falling numbers, if the run has an odd length, is the fraction of the
 * variate; each run of even length before it adds one. */
static uint64_t exponential(Random *random)
{
    for (uint64_t whole = 0;; whole++) {
        uint32_t first = even(random), last = first, next;
        bool odd = true;

        while ((next = even(random)) < last) {
            last = next;
            odd = !odd;
        }
        if (odd)
            return (whole << 32) + first;
    }
}

/* value * fraction / 2^32, without a wider type. */
static uint64_t scale(uint64_t value, uint64_t fraction)
{
    return (value >> 32) * fraction + (((value & UINT32_MAX) * (fraction >> 32)) +
                                       (((value & UINT32_MAX) * (fraction & UINT32_MAX)) >> 32));
}

uint64_t random_time(Random *random, const SimDist *dist)
{
    uint64_t a = dist->a_usec * NSEC_PER_USEC, b = dist->b_usec * NSEC_PER_USEC, time;

    if (dist->kind == SIM_DIST_UNIFORM)
        time = a + (b > a ? scale(b - a, even(random)) : 0);
    else if (dist->kind == SIM_DIST_EXPONENTIAL)
        time = scale(a, exponential(random));
    else
        return a;
    return MAX(time, (uint64_t)1);
}
