/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that change their working set from phase to phase.
 *
 * There are two arrays, and each thread has a slice of both. It works on its slice of the first array in the first
 * phase, on that of the second in the next phase, and so on in turns. Both arrays start on one node, because the main
 * thread touches all of them first: a placer that has moved the first one finds the second one misplaced again. */

#include "lines.h"

#define N_ARRAYS 2u

static unsigned phase_of(const WorkThread *thread)
{
    double phase = work_progress(thread) * (double)thread->extra;

    return phase < (double)thread->extra ? (unsigned)phase : (unsigned)thread->extra - 1;
}

static void run(WorkThread *thread)
{
    unsigned phase = 0;
    size_t block = 0;

    work_use(thread, 1);
    for (;;) {
        unsigned array = phase % N_ARRAYS, now = phase_of(thread);

        if (now != phase) {
            phase = now;
            array = phase % N_ARRAYS;
            work_use(thread, 1U << array);
        }
        if (!work_more(thread))
            return;
        block = (block + 1) % (thread->parts[array].bytes / WORK_BLOCK_BYTES);
        lines_visit(thread, thread->parts[array], block);
        thread->own[array]++;
    }
}

/* In addition to the check of slices: each array has as many visits as its phases had. */
static void check(WorkThread *thread)
{
    lines_check_slices(thread);
    for (unsigned array = 0; array < N_ARRAYS; array++) {
        uint64_t unsealed = 0; /* counted by lines_check_slices() */

        thread->n_errors +=
            lines_sum(thread->shares[array], &unsealed) != thread->own[array] * LINES_PER_BLOCK;
    }
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "phase-changer",
        .about = "threads that leave their working set for another one after a while",
        .unit = "64K blocks walked",
        .bytes_of = "both arrays",
        .layout = WORK_SLICES,
        .processes = 1,
        .bytes = (size_t)64 << 20,
        .n_regions = N_ARRAYS,
        .steps = 20480,
        .orders = true,
        .step_operations = 1,
        .step_sum = LINES_PER_BLOCK,
        .extra =
            {.name = "phases", .help = "phases, the arrays in turns (2)", .value = 2, .min = 1, .max = 1000},
        .fill = lines_fill,
        .run = run,
        .check = check,
    };

    return work_main(&shape, argc, argv);
}
