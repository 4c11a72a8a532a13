/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The workloads prove their work by checks of the data. These tests show that the checks find what they must find. */

#include "lines.h"
#include "unit-test.h"

#include <stdlib.h>

#define N_BLOCKS 3u

typedef struct Fixture {
    WorkThread thread;
    Line *lines;
} Fixture;

static int setup(void **state)
{
    static Fixture fixture;
    WorkPart part = {.bytes = N_BLOCKS * WORK_BLOCK_BYTES};

    part.start = aligned_alloc(sizeof(Line), part.bytes);
    assert_non_null(part.start);
    lines_fill(part, 0);
    fixture = (Fixture){
        .thread = {.index = 2, .n_threads = 4, .parts = {part}, .shares = {part}},
        .lines = (Line *)(void *)part.start,
    };
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;

    free(fixture->lines);
    return 0;
}

static void test_visits_add_up(void **state)
{
    Fixture *fixture = *state;
    WorkThread *thread = &fixture->thread;

    lines_visit(thread, thread->parts[0], 0);
    lines_visit(thread, thread->parts[0], 2);
    lines_visit(thread, thread->parts[0], 2);
    lines_check_slices(thread);
    assert_int_equal(thread->sum, 3 * LINES_PER_BLOCK);
    assert_int_equal(thread->n_errors, 0);
    assert_int_equal(fixture->lines[LINES_PER_BLOCK].visits[2], 0);
    assert_int_equal(fixture->lines[2 * LINES_PER_BLOCK].visits[2], 2);
}

/* In random order, too, each line is visited once. */
static void test_random_order(void **state)
{
    Fixture *fixture = *state;
    WorkThread *thread = &fixture->thread;
    uint64_t random = 1;

    thread->random_order = true;
    lines_visit(thread, thread->parts[0], 1);
    for (size_t i = 0; i < LINES_PER_BLOCK; i++)
        assert_int_equal(fixture->lines[LINES_PER_BLOCK + i].visits[2], 1);
    lines_visit_page(thread, (WorkPart){thread->parts[0].start, LINES_PER_PAGE * sizeof(Line)}, &random);
    for (size_t i = 0; i < LINES_PER_PAGE; i++)
        assert_int_equal(fixture->lines[i].visits[2], 1);
    lines_check_slices(thread);
    assert_int_equal(thread->sum, LINES_PER_BLOCK + LINES_PER_PAGE);
    assert_int_equal(thread->n_errors, 0);
}

static void test_stranger_in_a_slice(void **state)
{
    Fixture *fixture = *state;
    WorkThread stranger = fixture->thread;

    stranger.index = 3;
    lines_visit(&stranger, stranger.parts[0], 1);
    lines_check_slices(&fixture->thread);
    assert_int_equal(fixture->thread.n_errors, LINES_PER_BLOCK);
    assert_int_equal(fixture->thread.sum, LINES_PER_BLOCK);
}

static void test_shared_lines_have_many_visitors(void **state)
{
    Fixture *fixture = *state;
    WorkThread other = fixture->thread;

    other.index = LINE_SLOTS - 1;
    lines_visit(&fixture->thread, fixture->thread.parts[0], 1);
    lines_visit(&other, other.parts[0], 1);
    lines_check(&fixture->thread);
    assert_int_equal(fixture->thread.n_errors, 0);
    assert_int_equal(fixture->thread.sum, 2 * LINES_PER_BLOCK);
}

static void test_broken_seal(void **state)
{
    Fixture *fixture = *state;

    fixture->lines[7].seal ^= 1;
    fixture->lines[LINES_PER_BLOCK] = fixture->lines[0]; /* a copy of another line is no line of its own */
    lines_check(&fixture->thread);
    assert_int_equal(fixture->thread.n_errors, 2);
}

TEST_MAIN(setup, teardown, test_visits_add_up, test_random_order, test_stranger_in_a_slice,
          test_shared_lines_have_many_visitors, test_broken_seal)
