/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/schedstat.h"

/* An accepted text has a known version and names CPUs. The result must not depend on what was parsed before. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    Schedstat s = {0}, again = {0};

    (void)schedstat_parse("version 15\ncpu0 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 7 8 9\n", &again);
    if (schedstat_parse(text, &s) == 0) {
        if (s.n_cpus == 0 || s.version < SCHEDSTAT_VERSION_MIN || s.version > SCHEDSTAT_VERSION_MAX)
            abort();
        if (schedstat_parse(text, &again) != 0 || again.n_cpus != s.n_cpus)
            abort();
        for (size_t i = 0; i < s.n_cpus; i++)
            if (s.cpus[i].cpu != again.cpus[i].cpu || s.cpus[i].run_nsec != again.cpus[i].run_nsec ||
                s.cpus[i].wait_nsec != again.cpus[i].wait_nsec)
                abort();
    }
    schedstat_done(&s);
    schedstat_done(&again);
    return 0;
}
