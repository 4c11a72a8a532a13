/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Field positions depend on the version and on the number of fields, because patched kernels have added
 * fields without changing the version (a "16" with seven more at the end of the CPU line exists).
 *
 *     version       fields of a cpu line   run, wait
 *     14            12                     10, 11     three counters of sched_yield() come first
 *     15, 16, 17    9 or more              7, 8
 *
 * Domain lines (36 numbers in 14 and 15; another order in 16; a name and 45 in 17) are ignored: they count
 * only with sched_schedstats=1. A newer version is refused rather than guessed at. */

#include "kernel/schedstat.h"

#include "base/parse.h"
#include "base/scan.h"
#include "base/util.h"

#include <string.h>

#define FIELDS_V14    12U
#define FIELDS_V15    9U
#define RUN_FIELD_V14 10U
#define RUN_FIELD_V15 7U

static int scan_version(const char **p, uint32_t *ret)
{
    uint64_t v;

    if (!scan_word(p, "version ") || !scan_u64(p, &v) || **p != '\n')
        return -EINVAL;
    if (v < SCHEDSTAT_VERSION_MIN || v > SCHEDSTAT_VERSION_MAX)
        return -EPROTONOSUPPORT;
    (*p)++;
    *ret = (uint32_t)v;
    return 0;
}

/* The rest of "cpuN 1 2 3 ...\n". */
static int scan_cpu(const char **p, uint32_t version, SchedstatCpu *ret)
{
    const unsigned run_field = version == 14 ? RUN_FIELD_V14 : RUN_FIELD_V15;
    SchedstatCpu cpu = {0};
    unsigned n = 0;
    uint64_t v;

    if (!scan_u64(p, &v) || v > PARSE_CPU_MAX)
        return -EINVAL;
    cpu.cpu = (uint32_t)v;

    while (**p == ' ') {
        (*p)++;
        if (!scan_u64(p, &v))
            return -EINVAL;
        n++;
        if (n == run_field)
            cpu.run_nsec = v;
        else if (n == run_field + 1)
            cpu.wait_nsec = v;
    }
    if (**p != '\n' || (version == 14 ? n != FIELDS_V14 : n < FIELDS_V15))
        return -EINVAL;

    (*p)++;
    *ret = cpu;
    return 0;
}

int schedstat_parse(const char *text, Schedstat *ret)
{
    const char *s = text;
    int r;

    ret->n_cpus = 0;
    r = scan_version(&s, &ret->version);
    if (r < 0)
        return r;

    while (*s) {
        if (scan_word(&s, "cpu")) {
            if (!GROW(ret->cpus, ret->capacity, ret->n_cpus + 1))
                return -ENOMEM;
            r = scan_cpu(&s, ret->version, &ret->cpus[ret->n_cpus]);
            if (r < 0)
                return r;
            ret->n_cpus++;
        } else {
            s = strchr(s, '\n');
            if (!s)
                return -EINVAL;
            s++;
        }
    }
    return ret->n_cpus > 0 ? 0 : -EINVAL;
}

void schedstat_done(Schedstat *schedstat)
{
    free(schedstat->cpus);
    *schedstat = (Schedstat){0};
}
