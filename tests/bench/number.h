/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers on the command lines of the benchmarks, and comparing measured ones. */

#include "base/parse.h"

/* Parses a decimal number from `least` to `most`. Returns false when `text` is none. */
static inline bool number_between(const char *text, uint32_t least, uint32_t most, uint32_t *ret)
{
    uint32_t n;

    if (parse_u32(text, &n) < 0 || n < least || n > most)
        return false;
    *ret = n;
    return true;
}

/* For qsort(), in ascending order. */
static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}
