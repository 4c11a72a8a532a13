/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/procstat.h"

/* A name that is not terminated or longer than its field would show up here. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    ProcStat s;

    if (procstat_parse(text, &s) == 0 && strnlen(s.comm, sizeof(s.comm)) == sizeof(s.comm))
        abort();
    return 0;
}
