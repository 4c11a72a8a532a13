/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes that each work on a heap of their own, at random places.
 *
 * An operation follows a chain of a few lines; each line leads to the next, so that no latency hides behind
 * another one. Right is one heap per node with its process. All heaps start on one node, because the main
 * thread of each process touches its heap first. Usually run with --seconds, and what counts is the
 * operations. */

#include "lines.h"

/* Lines an operation visits, as one that looks up and changes an object of a data base might. */
#define CHAIN 8u

/* Operations between two looks at the stop flag. */
#define BATCH 64u

static void operate(Line *lines, size_t n_lines, unsigned slot, uint64_t *state)
{
    for (unsigned i = 0; i < CHAIN; i++) {
        Line *line;

        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX generator */
        line = &lines[(*state >> 33) % n_lines];
        line->visits[slot]++;
        *state += line->seal;
    }
}

static void run(WorkThread *thread)
{
    Line *lines = (Line *)(void *)thread->parts[0].start;
    size_t n_lines = thread->parts[0].bytes / sizeof(Line);
    uint64_t state = thread->index + 1;

    while (work_more(thread))
        for (unsigned i = 0; i < BATCH; i++)
            operate(lines, n_lines, thread->index % LINE_SLOTS, &state);
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
        .steps = 18432,
        .pass_steps = 512,
        .step_operations = BATCH,
        .step_sum = (uint64_t)BATCH * CHAIN,
        .fill = lines_fill,
        .run = run,
        .check = lines_check,
    };

    return work_main(&shape, argc, argv);
}
