/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* As numa01, but every thread has an array of its own that no other thread accesses.
 *
 * The right placement is every array on the node of its thread, wherever that runs. All arrays start on one
 * node, because the main thread of each process touches them first. If the threads did it themselves, as in
 * the autonuma benchmark, one thread per CPU would be local from the start. */

#include "lines.h"

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "numa01-thread-alloc",
        .about = "processes whose threads have large arrays of their own",
        .unit = "64K blocks walked",
        .bytes_of = "the array of each thread",
        .layout = WORK_PRIVATE,
        .processes = 2,
        .bytes = (size_t)16 << 20,
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
