/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two processes with a heap each. One has more to do than a node has CPUs, the other less.
 *
 * Each has as many threads as one and a half nodes have CPUs. In the first process all of them work, in the
 * second one a third; the others sleep. So as many threads work as two nodes have CPUs. If each process is
 * bound to a node, as is best for the heaps, a quarter of the CPUs are idle although threads need them. The
 * right placement is one heap per node with its process, except for the threads that are too many there. With
 * --swap the processes exchange their parts at half-time. Both heaps start on one node, because the main
 * thread of each process touches its heap first. The operations are what counts; they are those of multi-heap. */

#include "lines.h"

/* Operations between two reads of the clock. */
#define BATCH 8u

static bool is_busy(const WorkThread *thread, bool swapped)
{
    return thread->index == 0 || thread->index < thread->n_threads / 3 || thread->process % 2 == swapped;
}

/* Works or rests until the thread's part changes. Returns false at the end of the work. */
static bool run_part(WorkThread *thread, bool swapped, double until, uint64_t *state)
{
    bool busy = is_busy(thread, swapped);

    work_use(thread, busy);
    if (!busy)
        return work_rest(thread, until);
    while (work_progress(thread) < until) {
        if (!work_more(thread))
            return false;
        for (unsigned i = 0; i < BATCH; i++)
            lines_visit_page(thread, thread->parts[0], state);
    }
    return true;
}

static void run(WorkThread *thread)
{
    uint64_t state = thread->index + 1;

    if (thread->extra && !run_part(thread, false, 0.5, &state))
        return;
    (void)run_part(thread, thread->extra, 2, &state); /* 2: progress never gets that far */
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "uneven",
        .about =
            "processes with a heap each, of which one has more threads at work than a node has CPUs, the other fewer",
        .unit = "heap operations",
        .bytes_of = "the heap of each process",
        .layout = WORK_SHARED,
        .processes = 2,
        .threads = 3,
        .threads_max = LINE_SLOTS,
        .bytes = (size_t)32 << 20,
        .n_regions = 1,
        .seconds = 20,
        .lends = true,
        .pass_steps = 512,
        .orders = true,
        .step_operations = BATCH,
        .step_sum = (uint64_t)BATCH * LINES_PER_PAGE,
        .extra = {.name = "swap", .help = "          exchange the parts at half-time", .flag = true},
        .fill = lines_fill,
        .run = run,
        .check = lines_check,
    };

    return work_main(&shape, argc, argv);
}
