/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "balancing.h"

#include <sys/mount.h>

#define SYSCTL "/proc/sys/kernel/numa_balancing"
#define KNOBS  "/sys/kernel/debug/sched/numa_balancing"

static char sysctl_before[16], knobs_before[3][16];
static const char *const knobs[3] = {"scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"};

int balancing_setup(void **state)
{
    const char *text = file_read(SYSCTL);

    if (!file_exists("/lab/info.json") || !text)
        return 0;
    (void)snprintf(sysctl_before, sizeof(sysctl_before), "%s", text);
    if (!file_exists(KNOBS))
        (void)mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(knobs); i++) {
        text = file_read(KNOBS "/%s", knobs[i]);
        (void)snprintf(knobs_before[i], sizeof(knobs_before[i]), "%s", text ? text : "");
        /* Intervals of less than a second, so that tests need not last long. */
        (void)file_write("100", KNOBS "/%s", knobs[i]);
    }
    return 0;
}

int balancing_teardown(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
        if (*knobs_before[i])
            (void)file_write(knobs_before[i], KNOBS "/%s", knobs[i]);
    return *sysctl_before ? file_write(sysctl_before, SYSCTL) : 0;
}

void need_balancing(void)
{
    need_guest();
    if (!*sysctl_before)
        contract_skip("no kernel.numa_balancing");
}

int balancing_set(const char *mode)
{
    return file_write(mode, SYSCTL);
}
