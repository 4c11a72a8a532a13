/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines that count their visits.
 *
 * A visit is one load and one store of the same line, the cheapest access that cannot be removed and that
 * leaves a trace. The walk of a block is sequential. An emulated guest has no prefetcher, so every line costs
 * its full latency there; on real hardware bandwidth limits the walk instead. */

#include "lines.h"

#include <string.h>

_Static_assert(sizeof(Line) == 64, "a line is a cache line");

uint32_t line_seal(const Line *line)
{
    uint64_t n = (uintptr_t)line / sizeof(Line);

    n = (n ^ (n >> 33)) *
        0xff51afd7ed558ccdULL; /* the finalizer of MurmurHash3, Austin Appleby, public domain */
    n = (n ^ (n >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return (uint32_t)(n ^ (n >> 33));
}

void lines_fill(WorkPart part, unsigned region)
{
    Line *lines = (Line *)(void *)part.start;

    for (size_t i = 0; i < part.bytes / sizeof(Line); i++)
        lines[i] = (Line){.seal = line_seal(&lines[i])};
}

/* The index that follows `i` of `n`, a power of two, in an order that visits each once: a linear congruential
 * generator of full period. */
static size_t next_line(size_t i, size_t salt, size_t n)
{
    return (5 * i + (salt << 1 | 1)) % n;
}

void lines_visit(const WorkThread *thread, WorkPart part, size_t block)
{
    Line *lines = (Line *)(void *)part.start + block * LINES_PER_BLOCK;
    unsigned slot = thread->index % LINE_SLOTS;

    if (thread->random_order) {
        for (size_t n = 0, i = 0; n < LINES_PER_BLOCK; n++, i = next_line(i, block, LINES_PER_BLOCK))
            lines[i].visits[slot]++;
        return;
    }
    for (size_t i = 0; i < LINES_PER_BLOCK; i++)
        lines[i].visits[slot]++;
}

static bool are_coprime(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a == 1;
}

/* The distance from one block to the next in a walk over all `n`. Each of the first threads has a different one. */
static size_t stride(unsigned thread, size_t n)
{
    size_t found = 1;

    for (unsigned i = 0; i < thread; i++)
        do
            found++;
        while (!are_coprime(found, n));
    return found;
}

void lines_walk(WorkThread *thread)
{
    WorkPart part = thread->parts[0];
    size_t n_blocks = part.bytes / WORK_BLOCK_BYTES, block = n_blocks * thread->index / thread->n_threads;
    size_t step = stride(thread->index, n_blocks) % n_blocks;

    while (work_more(thread)) {
        lines_visit(thread, part, block);
        block = (block + step) % n_blocks;
    }
}

uint64_t lines_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return *state >> 33;
}

void lines_visit_page(const WorkThread *thread, WorkPart part, uint64_t *state)
{
    size_t n_pages = part.bytes / sizeof(Line) / LINES_PER_PAGE;
    Line *page = (Line *)(void *)part.start + lines_random(state) % n_pages * LINES_PER_PAGE;
    unsigned slot = thread->index % LINE_SLOTS;

    if (thread->random_order) {
        for (size_t n = 0, i = 0, salt = (size_t)*state; n < LINES_PER_PAGE;
             n++, i = next_line(i, salt, LINES_PER_PAGE)) {
            page[i].visits[slot]++;
            *state += page[i].seal;
        }
        return;
    }
    for (unsigned i = 0; i < LINES_PER_PAGE; i++) {
        page[i].visits[slot]++;
        *state += page[i].seal;
    }
}

/* `only`: the slot that may have counted, or LINE_SLOTS for all. */
static uint64_t add_up(WorkPart part, unsigned only, uint64_t *n_errors)
{
    const Line *lines = (const Line *)(const void *)part.start;
    uint64_t sum = 0;

    for (size_t i = 0; i < part.bytes / sizeof(Line); i++) {
        bool good = lines[i].seal == line_seal(&lines[i]);

        for (unsigned slot = 0; slot < LINE_SLOTS; slot++) {
            sum += lines[i].visits[slot];
            good = good && (only == LINE_SLOTS || slot == only || lines[i].visits[slot] == 0);
        }
        *n_errors += !good;
    }
    return sum;
}

uint64_t lines_sum(WorkPart part, uint64_t *n_errors)
{
    return add_up(part, LINE_SLOTS, n_errors);
}

void lines_check(WorkThread *thread)
{
    for (unsigned region = 0; region < WORK_REGIONS_MAX; region++)
        thread->sum += add_up(thread->shares[region], LINE_SLOTS, &thread->n_errors);
}

void lines_check_slices(WorkThread *thread)
{
    for (unsigned region = 0; region < WORK_REGIONS_MAX; region++)
        thread->sum += add_up(thread->shares[region], thread->index % LINE_SLOTS, &thread->n_errors);
}
