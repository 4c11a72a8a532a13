/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The triad a = b + s * c over three arrays, each thread on its slices: as much memory traffic as the machine allows.
 *
 * The factor s is the number of the pass, so every element shows which pass wrote it last. The arrays start on one
 * node, because the main thread touches all of them first: the memory of that node is then the bottleneck of all
 * threads. */

#include "work.h"

#define PER_BLOCK (WORK_BLOCK_BYTES / sizeof(double))

enum {
    A,
    B,
    C
};

/* What b and c hold. Small whole numbers, so that the results are exact. */
static double original(const double *element, unsigned region)
{
    return (double)((uintptr_t)element / sizeof(double) % 1009 + region);
}

static void fill(WorkPart part, unsigned region)
{
    double *elements = (double *)(void *)part.start;

    for (size_t i = 0; i < part.bytes / sizeof(double); i++)
        elements[i] = region == A ? 0 : original(&elements[i], region);
}

static double *block_of(WorkPart part, size_t block)
{
    return (double *)(void *)(part.start + block * WORK_BLOCK_BYTES);
}

static void run(WorkThread *thread)
{
    size_t n_blocks = thread->parts[A].bytes / WORK_BLOCK_BYTES;

    for (uint64_t step = 0; work_more(thread); step++) {
        double *a = block_of(thread->parts[A], step % n_blocks);
        const double *b = block_of(thread->parts[B], step % n_blocks);
        const double *c = block_of(thread->parts[C], step % n_blocks);
        uint64_t pass = step / n_blocks + 1;

        for (size_t i = 0; i < PER_BLOCK; i++)
            a[i] = b[i] + (double)pass * c[i];
    }
}

/* The sum is the number of blocks written. The pass that wrote a block last is the number of times it was written. */
static void check(WorkThread *thread)
{
    size_t n_blocks = thread->parts[A].bytes / WORK_BLOCK_BYTES;

    for (size_t block = 0; block < n_blocks; block++) {
        const double *a = block_of(thread->parts[A], block);
        const double *b = block_of(thread->parts[B], block), *c = block_of(thread->parts[C], block);
        double pass = a[1] != 0 ? (a[1] - b[1]) / c[1] : 0;

        for (size_t i = 0; i < PER_BLOCK; i++)
            thread->n_errors += b[i] != original(&b[i], B) || c[i] != original(&c[i], C) ||
                                a[i] != (pass > 0 ? b[i] + pass * c[i] : 0);
        thread->sum += pass > 0 ? (uint64_t)pass : 0;
    }
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "stream",
        .about = "the triad a = b + s * c, each thread on its slices of three arrays",
        .unit = "64K blocks written",
        .bytes_of = "the three arrays",
        .layout = WORK_SLICES,
        .processes = 1,
        .bytes = (size_t)48 << 20,
        .n_regions = 3,
        .steps = 4096,
        .step_operations = 1,
        .step_sum = 1,
        .fill = fill,
        .run = run,
        .check = check,
    };

    return work_main(&shape, argc, argv);
}
