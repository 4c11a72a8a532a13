/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* cmocka with the headers that it wants in front of it, and those that nearly every test uses. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A number of 31 bits, below `below`. A 64-bit LCG (the constants are Knuth's, MMIX): its high bits are good enough,
 * and the same everywhere. */
static inline uint64_t lcg_below(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 33) % below;
}
