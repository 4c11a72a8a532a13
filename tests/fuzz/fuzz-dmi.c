/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "topo/dmi.h"

/* Nothing beyond the table is read. A module takes six bytes at least, and no number in it is above 65534. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE uint8_t *table = malloc(MAX(size, (size_t)1));

    check(table);
    if (size > 0)
        memcpy(table, data, size);
    check(dmi_memory_mb(table, size) <= size / 6 * (65534ULL * 65534 / 8));
    return 0;
}
