/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One process, as large as the machine, whose threads work on slices of one array. Each has a slice of its
 * own, or --sharers neighbours share one.
 *
 * The right placement is every slice on the node of its thread. The array starts on one node, because the
 * main thread touches all of it first. The shape is that of numa02 of the autonuma benchmark. */

#include "lines.h"

static void check(WorkThread *thread)
{
    if (thread->extra > 1)
        lines_check(thread);
    else
        lines_check_slices(thread);
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "numa02",
        .about = "one process whose threads work on slices of an array that the main thread touched first",
        .unit = "64K blocks walked",
        .bytes_of = "the array",
        .layout = WORK_SLICES,
        .processes = 1,
        .bytes = (size_t)64 << 20,
        .n_regions = 1,
        .steps = 20480,
        .orders = true,
        .step_operations = 1,
        .step_sum = LINES_PER_BLOCK,
        .fill = lines_fill,
        .run = lines_walk,
        .sharers = true,
        .extra = {.name = "sharers",
                  .help = "     threads that share a slice (1)",
                  .value = 1,
                  .min = 1,
                  .max = LINE_SLOTS},
        .check = check,
    };

    return work_main(&shape, argc, argv);
}
