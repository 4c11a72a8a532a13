/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/procstat.h"

/* Finds a name that is not terminated or longer than its field. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    ProcStat s;

    if (procstat_parse(text, &s) == 0 && strnlen(s.comm, sizeof(s.comm)) == sizeof(s.comm))
        abort();
    return 0;
}
