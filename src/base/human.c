/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints a fraction of one unit, or the two largest units. Spans are truncated, not rounded, so that a span
 * just below the next unit does not read as more than it is. */

#include "base/human.h"

#include "base/time.h"
#include "base/util.h"

#include <inttypes.h>
#include <stdio.h>

char *human_bytes(uint64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(buf, size, unit > 0 && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buf;
}

char *human_span(uint64_t usec, char *buf, size_t size)
{
    size_t i = 0;
    uint64_t whole, rest;

    while (i + 1 < TIME_UNITS && usec < time_units[i].usec)
        i++;
    whole = usec / time_units[i].usec;
    rest = usec % time_units[i].usec;
    if (i < 3) /* below a minute, a fraction reads better than two units */
        (void)snprintf(buf, size, "%" PRIu64 " %s %" PRIu64 " %s", whole, time_units[i].name,
                       rest / time_units[i + 1].usec, time_units[i + 1].name);
    else if (rest * 10 >= time_units[i].usec && whole < 10)
        (void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", whole, rest * 10 / time_units[i].usec,
                       time_units[i].name);
    else
        (void)snprintf(buf, size, "%" PRIu64 " %s", whole, time_units[i].name);
    return buf;
}

const char *human_noun(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}
