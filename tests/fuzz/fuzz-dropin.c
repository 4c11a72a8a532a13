/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/fence/dropin.h"
#include "base/parse.h"
#include "base/util.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is read again from a file that says just that. */
static void check(hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX), *text = NULL;
    hwloc_bitmap_t again = hwloc_bitmap_alloc();

    if (!list || !again || asprintf(&text, "[Service]\nAllowedCPUs=\nAllowedCPUs=%s\n", list) < 0 ||
        fence_dropin_parse(text, "AllowedCPUs", again) != 0 || !hwloc_bitmap_isequal(set, again))
        abort();
    hwloc_bitmap_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = malloc(size + 1);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (text && set) {
        memcpy(text, data, size);
        text[size] = '\0';
        if (fence_dropin_parse(text, "AllowedCPUs", set) == 0)
            check(set);
    }
    hwloc_bitmap_free(set);
    return 0;
}
