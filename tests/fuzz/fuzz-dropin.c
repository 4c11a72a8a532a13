/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/fence/dropin.h"
#include "base/parse.h"
#include "fuzz.h"

#include <stdio.h>

/* A set that was read is read again from a file that has only that set. */
static void check_set(hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX), *text = NULL;
    CLEANUP_BITMAP hwloc_bitmap_t again = hwloc_bitmap_alloc();

    if (!list || !again || asprintf(&text, "[Service]\nAllowedCPUs=\nAllowedCPUs=%s\n", list) < 0 ||
        fence_dropin_parse(text, "AllowedCPUs", again) != 0 || !hwloc_bitmap_isequal(set, again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (set && fence_dropin_parse(text, "AllowedCPUs", set) == 0)
        check_set(set);
    return 0;
}
