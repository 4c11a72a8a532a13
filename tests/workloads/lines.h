/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory as cache lines that count who visited them, so that the data itself says in the end what work was
 * done. */

#include "work.h"

/* Threads that share memory count in words of their own: nobody's count gets lost, and no locked instruction
 * is needed. */
#define LINE_SLOTS 15u

typedef struct Line {
    uint32_t visits[LINE_SLOTS];
    uint32_t seal; /* from the line's address: says that nothing else was written here */
} Line;

#define LINES_PER_BLOCK (WORK_BLOCK_BYTES / sizeof(Line))

/* The seal of the line at this address; also a number to find a next line by. */
uint32_t line_seal(const Line *line);

/* For WorkShape.fill: seals every line, visits none. */
void lines_fill(WorkPart part, unsigned region);

/* Visits every line of block `block` of the part once, for the thread, in its order. */
void lines_visit(const WorkThread *thread, WorkPart part, size_t block);

/* For WorkShape.run: walks over the first part again and again. Threads that share it start at different places, and
 * each takes its blocks in an order of its own, or the second one would find every line in the cache that the first one
 * brought there: who follows is faster, catches up, and stays behind the other for good. */
void lines_walk(WorkThread *thread);

/* Knuth's MMIX generator; any state will do. */
uint64_t lines_random(uint64_t *state);

/* Visits the lines of one page of the part, picked at random, for the thread, in its order. Which page is next
 * depends on what is read in this one. */
#define LINES_PER_PAGE 64u
void lines_visit_page(const WorkThread *thread, WorkPart part, uint64_t *state);

/* Adds up the visits in a part. Lines whose seal is broken count as errors. */
uint64_t lines_sum(WorkPart part, uint64_t *n_errors);

/* For WorkShape.check: adds up the visits in the thread's shares. */
void lines_check(WorkThread *thread);

/* The same for slices: a line visited by another thread than the slice's own is an error. */
void lines_check_slices(WorkThread *thread);
