/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes that each work on a heap of their own, at random places.
 *
 * An operation picks an object of the size of a page and walks its lines, whose content leads to the next object. The
 * right placement is one heap per node with its process. All heaps start on one node, because the main thread of each
 * process touches its heap first. The workload is usually run with --seconds, and the operations are what counts. */

#include "lines.h"

/* Operations between two looks at the stop flag. */
#define BATCH 8u

static void run(WorkThread *thread)
{
    uint64_t state = thread->index + 1;

    while (work_more(thread))
        for (unsigned i = 0; i < BATCH; i++)
            lines_visit_page(thread, thread->parts[0], &state);
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "multi-heap",
        .about = "processes that each work on a heap of their own, at random places",
        .unit = "heap operations",
        .bytes_of = "the heap of each process",
        .layout = WORK_SHARED,
        .processes = 2,
        .threads_max = LINE_SLOTS,
        .bytes = (size_t)32 << 20,
        .n_regions = 1,
        .steps = 40960,
        .pass_steps = 512,
        .orders = true,
        .step_operations = BATCH,
        .step_sum = (uint64_t)BATCH * LINES_PER_PAGE,
        .fill = lines_fill,
        .run = run,
        .check = lines_check,
    };

    return work_main(&shape, argc, argv);
}
