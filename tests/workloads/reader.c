/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Threads that read one large array and never write it.
 *
 * All threads of the process walk over all of it, so on a machine with several nodes it is local to some of
 * them only, wherever it is. It starts on one node, because the main thread writes it first; after that it is
 * mapped read-only. Each block's sum is known beforehand, and a wrong sum makes the run fail. */

#include <errno.h>
#include <sys/mman.h>

#include "lines.h"

static uint64_t seals_of(const Line *lines, size_t n_lines)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n_lines; i++)
        sum += line_seal(&lines[i]);
    return sum;
}

static uint64_t read_block(const Line *lines)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < LINES_PER_BLOCK; i++)
        sum += lines[i].seal;
    return sum;
}

/* Computing what a block must add up to costs as much as reading it. The sum is therefore written into the
 * block's first line when the block is filled. */
static void fill(WorkPart part, unsigned region)
{
    lines_fill(part, region);
    for (size_t at = 0; at < part.bytes; at += WORK_BLOCK_BYTES) {
        Line *first = (Line *)(void *)(part.start + at);
        uint64_t sum = seals_of(first, LINES_PER_BLOCK);

        first->visits[0] = (uint32_t)sum;
        first->visits[1] = (uint32_t)(sum >> 32);
    }
    if (mprotect(part.start, part.bytes, PROT_READ) < 0)
        work_fail("mprotect", errno);
}

static void run(WorkThread *thread)
{
    WorkPart part = thread->parts[0];
    size_t n_blocks = part.bytes / WORK_BLOCK_BYTES, block = n_blocks * thread->index / thread->n_threads;

    while (work_more(thread)) {
        const Line *lines = (const Line *)(const void *)(part.start + block * WORK_BLOCK_BYTES);
        uint64_t sum = read_block(lines);

        if (sum == (lines->visits[0] | (uint64_t)lines->visits[1] << 32))
            thread->own[0]++;
        else
            thread->n_errors++;
        block = (block + 1) % n_blocks;
    }
}

static void check(WorkThread *thread)
{
    thread->sum = thread->own[0];
}

int main(int argc, char **argv)
{
    static const WorkShape shape = {
        .name = "reader",
        .about = "threads that read one large array and never write it",
        .unit = "64K blocks read",
        .bytes_of = "the array of each process",
        .layout = WORK_SHARED,
        .processes = 1,
        .bytes = (size_t)32 << 20,
        .n_regions = 1,
        .steps = 20480,
        .step_operations = 1,
        .step_sum = 1,
        .fill = fill,
        .run = run,
        .check = check,
    };

    return work_main(&shape, argc, argv);
}
