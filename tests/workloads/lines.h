/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory as cache lines that count their visits, so that in the end the data itself shows what work was done. */

#include "work.h"

/* Threads that share memory count in separate words. No count is lost, and no locked instruction is needed. */
#define LINE_SLOTS 15u

typedef struct Line {
    uint32_t visits[LINE_SLOTS];
    uint32_t seal; /* from the line's address: shows that nothing else was written here */
} Line;

#define LINES_PER_BLOCK (WORK_BLOCK_BYTES / sizeof(Line))

/* The seal of the line at this address; also a number for choosing the next line. */
uint32_t line_seal(const Line *line);

/* For WorkShape.fill: seals every line, with no visits. */
void lines_fill(WorkPart part, unsigned region);

/* Visits every line of block `block` of the part once, for the thread and in its order. */
void lines_visit(const WorkThread *thread, WorkPart part, size_t block);

/* For WorkShape.run: walks over the first part again and again. Threads that share it start at different
 * places, and each takes the blocks in an order of its own. Otherwise a thread would find every line in the
 * cache that the thread ahead of it had loaded: the follower is faster, catches up, and stays behind for good. */
void lines_walk(WorkThread *thread);

/* Knuth's MMIX generator; any state will do. */
uint64_t lines_random(uint64_t *state);

/* Visits the lines of one page of the part, picked at random, for the thread and in its order. The next page
 * depends on what is read in this one. */
#define LINES_PER_PAGE 64u
void lines_visit_page(const WorkThread *thread, WorkPart part, uint64_t *state);

/* Adds up the visits in a part. Lines whose seal is broken count as errors. */
uint64_t lines_sum(WorkPart part, uint64_t *n_errors);

/* For WorkShape.check: adds up the visits in the thread's shares. */
void lines_check(WorkThread *thread);

/* The same for slices: a visit by a thread other than the slice's own is an error. */
void lines_check_slices(WorkThread *thread);
