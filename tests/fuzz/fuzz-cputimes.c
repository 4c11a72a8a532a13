/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/cpu-times.h"

/* Whatever the counters were before, in a tick in which the idle time does not change, a CPU is not busy for
 * longer than the tick lasted. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    CLEANUP(cpu_times_done) CpuTimes times = {0};
    CpuBusy busy = {0};

    if (cpu_times_parse(text, &times) == 0) {
        if (times.n_cpus == 0)
            abort();
        /* All lines are readings of one CPU. */
        for (size_t i = 0; i < times.n_cpus; i++)
            (void)cpu_busy_update(&busy, i * 100000000, times.cpus[i].idle_ticks, 10000000);
        if (cpu_busy_update(&busy, times.n_cpus * 100000000, times.cpus[times.n_cpus - 1].idle_ticks,
                            10000000) > 100000000)
            abort();
    }
    return 0;
}
