/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplaced.conf. Accepted values are within the ranges of the manual, and a file that is read twice gives
 * the same settings as one read once, whatever it repeats. */

#include "base/time.h"
#include "daemon/config.h"
#include "fuzz.h"

static int parse(Config *config, const uint8_t *data, size_t size)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    int r = config_parse(config, (const char *)data, size, "f", &report);

    check(r == 0 || r == -EBADMSG || r == -ENOMEM);
    check((r == -EBADMSG) == (report.n_errors > 0));
    return r;
}

static void check_ranges(const Config *config)
{
    check(config->fast_tick_usec >= 10 * USEC_PER_MSEC && config->fast_tick_usec <= 10 * USEC_PER_SEC);
    check(config->slow_tick_usec >= 100 * USEC_PER_MSEC && config->slow_tick_usec <= 10 * USEC_PER_SEC);
    check(config->max_cpu_permille >= 1 && config->max_cpu_permille <= 1000);
    check(config->max_tasks >= 1 && config->max_tasks <= 4194304);
    check(config->cross_node_moves_per_sec <= 1000000);
    /* No file can change a constant. */
    check(config->idle_permille == 50 && config->max_workloads == 1024 &&
          config->cross_node_burst == CONF_AUTO);
}

static bool same_set(hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    return a == b || (a && b && hwloc_bitmap_isequal(a, b));
}

static bool same(const Config *a, const Config *b)
{
    return a->fast_tick_usec == b->fast_tick_usec && a->slow_tick_usec == b->slow_tick_usec &&
           a->max_cpu_permille == b->max_cpu_permille && same_set(a->reserved_cpus, b->reserved_cpus) &&
           a->dry_run == b->dry_run && a->keep_on_stop == b->keep_on_stop && a->max_tasks == b->max_tasks &&
           a->cross_node_moves_per_sec == b->cross_node_moves_per_sec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(config_free_p) Config *once = NULL, *twice = NULL;

    if (config_new(&once) < 0 || config_new(&twice) < 0)
        return 0;
    if (parse(once, data, size) < 0)
        return 0;
    check_ranges(once);
    check(parse(twice, data, size) == 0 && parse(twice, data, size) == 0);
    check(same(once, twice));
    return 0;
}
