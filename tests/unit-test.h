/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* cmocka with the headers that it needs before it, and those that nearly every test uses. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A random number below `below`, from 31 bits. A 64-bit LCG with Knuth's MMIX constants: its high bits are
 * good enough, and the same on every machine. */
static inline uint64_t lcg_below(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 33) % below;
}
