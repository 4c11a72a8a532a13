/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Turns judgements into migration requests: one for all memory that goes to its users, so that all nodes fill at
 * the same time, and one for interleaved memory, which has no node of its own. The larger one comes first. */

#include "plan/memory/sorting.h"
#include "plan/planner.h"

#include <string.h>

static bool is_striped(const SortingMove *move)
{
    return move->to.i < 0;
}

static bool is_most_striped(const Sorting *sorting)
{
    uint64_t sums[2] = {0};

    for (size_t i = 0; i < sorting->n_moves; i++)
        sums[is_striped(&sorting->moves[i])] += sorting->moves[i].range.end - sorting->moves[i].range.start;
    return sums[true] >= sums[false];
}

/* Adjacent memory for one node is one range, even if it comes from several. */
static int add_range(Sorting *sorting, const SortingMove *move)
{
    PlanRange *last = sorting->n_ranges > 0 ? &sorting->ranges[sorting->n_ranges - 1] : NULL;

    if ((move->from.i >= 0 && hwloc_bitmap_set(sorting->from, (unsigned)move->from.i) < 0) ||
        (!is_striped(move) && hwloc_bitmap_set(sorting->to, (unsigned)move->to.i) < 0))
        return -ENOMEM;
    if (last && last->end == move->range.start && last->to.i == move->to.i) {
        last->end = move->range.end;
        return 0;
    }
    return APPEND(sorting->ranges, sorting->ranges_capacity, sorting->n_ranges,
                  (PlanRange){move->range.start, move->range.end, move->to});
}

static int find_ranges(Sorting *sorting, uint64_t *ret_bytes)
{
    int r = 0;

    *ret_bytes = 0;
    sorting->n_ranges = 0;
    sorting->ranges_striped = is_most_striped(sorting);
    hwloc_bitmap_zero(sorting->from);
    hwloc_bitmap_zero(sorting->to);
    for (size_t i = 0; i < sorting->n_moves && r == 0; i++) {
        const SortingMove *move = &sorting->moves[i];

        if (is_striped(move) != sorting->ranges_striped)
            continue;
        *ret_bytes += move->range.end - move->range.start;
        r = add_range(sorting, move);
    }
    return r;
}

bool sorting_next(Sorting *sorting, const Process *process, PlanUse *ret)
{
    uint64_t bytes;

    if (sorting->n_moves == 0 || find_ranges(sorting, &bytes) < 0)
        return false;
    *ret = (PlanUse){
        .subject = planner_process_key(process),
        .ranges = sorting->ranges,
        .n_ranges = sorting->n_ranges,
        .bytes = bytes,
        .from = sorting->from,
        .to = sorting->ranges_striped ? sorting->home : sorting->to,
        .stripe = sorting->ranges_striped,
    };
    return true;
}

static int remember(Sorting *sorting, const SortingMove *move, uint64_t now_usec)
{
    uint64_t first = move->range.start / TOUCHES_BLOCK_BYTES,
             last = (move->range.end - 1) / TOUCHES_BLOCK_BYTES;

    if (move->judged && APPEND(sorting->tried, sorting->tried_capacity, sorting->n_tried, move->range) < 0)
        return -ENOMEM;
    for (uint64_t block = first; block <= last; block++) {
        if (APPEND(sorting->past, sorting->past_capacity, sorting->n_past,
                   (SortingPast){block, move->from, now_usec, 1, 1}) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Keeps the last move of each block, with the counts of those before. */
static void tidy(Sorting *sorting)
{
    size_t n = 0;

    if (sorting->n_past > 0)
        qsort(sorting->past, sorting->n_past, sizeof(*sorting->past), sorting_compare_past);
    for (size_t i = 0; i < sorting->n_past; i++) {
        SortingPast *past = &sorting->past[i], *next = past + 1;

        if (i + 1 == sorting->n_past || next->block != past->block) {
            sorting->past[n++] = *past;
        } else if (next->from.i == past->from.i) {
            next->n_tries += past->n_tries;
            next->n_moves = past->n_moves;
        } else {
            next->n_moves += past->n_moves;
        }
    }
    sorting->n_past = n;
}

int sorting_taken(Sorting *sorting, uint64_t now_usec)
{
    size_t n = 0;
    int r = 0;

    sorting->n_tried = 0;
    for (size_t i = 0; i < sorting->n_moves; i++) {
        SortingMove move = sorting->moves[i];

        if (is_striped(&move) != sorting->ranges_striped)
            sorting->moves[n++] = move;
        else if (r == 0)
            r = remember(sorting, &move, now_usec);
    }
    sorting->n_moves = n;
    sorting->n_ranges = 0;
    tidy(sorting);
    return r;
}

void sorting_refused(Sorting *sorting)
{
    for (size_t i = 0; i < sorting->n_moves; i++)
        if (sorting->moves[i].judged)
            blocks_take_back(&sorting->blocks, sorting->moves[i].range.start, sorting->moves[i].range.end);
    sorting->n_moves = sorting->n_ranges = 0;
}

void sorting_over(Sorting *sorting, FollowEnd end)
{
    bool cut_short = end == FOLLOW_END_NO_ROOM || end == FOLLOW_END_CANCELLED;

    for (size_t i = 0; i < sorting->n_tried && cut_short; i++)
        blocks_take_back(&sorting->blocks, sorting->tried[i].start, sorting->tried[i].end);
    sorting->n_tried = 0;
}
