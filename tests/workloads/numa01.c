/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two processes whose threads each walk over all of one large array of their process.
 *
 * Each process fits a node, both together do not: the right placement is one process per node with its array. All
 * arrays start on one node, because the main thread of each process touches its array first. The shape is that of
 * numa01 of the autonuma benchmark. A process with more threads than a node has CPUs cannot become local as a
 * whole. */

#include "lines.h"

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "numa01",
        .about = "processes whose threads share one large array",
        .unit = "64K blocks walked",
        .bytes_of = "the array of each process",
        .layout = WORK_SHARED,
        .processes = 2,
        .threads_max = LINE_SLOTS,
        .bytes = (size_t)32 << 20,
        .n_regions = 1,
        .steps = 20480,
        .orders = true,
        .step_operations = 1,
        .step_sum = LINES_PER_BLOCK,
        .fill = lines_fill,
        .run = lines_walk,
        .check = lines_check,
    };

    return work_main(&shape, argc, argv);
}
