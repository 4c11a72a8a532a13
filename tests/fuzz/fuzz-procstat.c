/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernel/procstat.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name that is not terminated or longer than its field would show up here. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    ProcStat s;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (procstat_parse(text, &s) == 0 && strnlen(s.comm, sizeof(s.comm)) == sizeof(s.comm))
        abort();
    free(text);
    return 0;
}
