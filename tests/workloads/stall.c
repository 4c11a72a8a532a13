/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that touch their memory at random and watch the clock: how long may a single access take?
 *
 * Each thread has a slice of one large array, and reads the clock after every few visits of lines. Looking at
 * pages or moving them takes them away for a moment. The result has the longest such lap, and how many laps
 * reached which length. That includes the moments when the thread had no CPU; a run without a daemon shows
 * how much these are. Run it where memory has no price: in a priced guest debts are paid in sleeps of their
 * own. The array starts on one node, because the main thread touches it first. */

#include "lines.h"

/* A lap is so short that a single access makes it long. */
#define LAP_LINES 4u
#define STEP_LAPS 64u

static void run(WorkThread *thread)
{
    WorkPart part = thread->parts[0];
    Line *lines = (Line *)(void *)part.start;
    size_t n_lines = part.bytes / sizeof(Line);
    unsigned slot = thread->index % LINE_SLOTS;
    uint64_t state = thread->index + 1;

    work_lap(thread);
    while (work_more(thread))
        for (unsigned lap = 0; lap < STEP_LAPS; lap++) {
            for (unsigned i = 0; i < LAP_LINES; i++)
                lines[lines_random(&state) % n_lines].visits[slot]++;
            work_lap(thread);
        }
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "stall",
        .about = "threads that touch slices of one large array at random, and time it",
        .unit = "lines touched",
        .bytes_of = "the array",
        .layout = WORK_SLICES,
        .processes = 1,
        .bytes = (size_t)1 << 30,
        .n_regions = 1,
        .seconds = 20,
        .pass_steps = 1000,
        .step_operations = (uint64_t)STEP_LAPS * LAP_LINES,
        .step_sum = (uint64_t)STEP_LAPS * LAP_LINES,
        .fill = lines_fill,
        .run = run,
        .check = lines_check_slices,
    };

    return work_main(&shape, argc, argv);
}
