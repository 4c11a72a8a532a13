/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/taskstat.h"

#include <inttypes.h>
#include <stdio.h>

/* parse(format(x)) == x for schedstat; a list found in status must be a whole line of it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    char line[TASKSTAT_SCHEDSTAT_SIZE];
    uint64_t run, wait, run_again, wait_again;
    TaskStatus status;

    if (taskstat_parse_schedstat(text, &run, &wait)) {
        (void)snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " 1\n", run, wait);
        if (!taskstat_parse_schedstat(line, &run_again, &wait_again) || run != run_again ||
            wait != wait_again)
            abort();
    }
    if (taskstat_parse_status(text, &status) == 0 &&
        (status.cpus_allowed < text || strlen(status.cpus_allowed) > size ||
         strchr(status.cpus_allowed, '\n')))
        abort();
    return 0;
}
