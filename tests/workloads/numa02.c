/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One process, as large as the machine, whose threads work on slices of one array.
 *
 * Right is every slice on the node of its thread. The array starts on one node, because the main thread
 * touches all of it first. The shape is that of numa02 of the autonuma benchmark. */

#include "lines.h"

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
        .check = lines_check_slices,
    };

    return work_main(&shape, argc, argv);
}
