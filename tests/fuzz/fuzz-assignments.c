/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/assignments.h"
#include "fuzz.h"

/* Assignments that were read are written as a text that reads back as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new(), *b = assignments_new();
    CLEANUP_FREE char *text = NULL, *again = NULL;

    if (!a || !b)
        return 0;
    (void)assignments_parse(a, (const char *)data, size);
    text = assignments_format(a);
    if (!text)
        return 0;
    if (assignments_parse(b, text, strlen(text)) != 0)
        abort();
    again = assignments_format(b);
    if (again && strcmp(text, again) != 0)
        abort();
    return 0;
}
