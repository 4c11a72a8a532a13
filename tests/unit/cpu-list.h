/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sets of CPUs or nodes, written as the kernel lists them: "0-3,8". */

#include "base/intern.h"
#include "base/parse.h"
#include "unit-test.h"

/* A mask that lives as long as the pool. */
static inline CpuMask test_mask(InternPool *pool, const char *list)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    CpuMask mask;

    assert_int_equal(parse_list(list, PARSE_CPU_MAX, set), 0);
    mask = intern_mask(pool, set);
    assert_non_null(mask);
    return mask;
}

static inline void assert_list(hwloc_const_bitmap_t set, const char *expected)
{
    CLEANUP_FREE char *list = NULL;

    assert_non_null(set);
    list = format_list(set, PARSE_CPU_MAX);
    assert_string_equal(list, expected);
}
