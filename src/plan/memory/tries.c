/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/memory/tries.h"

#include "base/util.h"

#include <stdlib.h>

void tries_done(Tries *tries)
{
    free(tries->list);
    free(tries->now);
    *tries = (Tries){0};
}

void tries_begin(Tries *tries)
{
    tries->n_now = tries->at = 0;
}

int tries_keep(Tries *tries, uint64_t start, uint32_t n)
{
    if (n == 0)
        return 0;
    return APPEND(tries->now, tries->capacity_now, tries->n_now, (TriesEntry){.start = start, .n = n});
}

/* Carries over the entries below `start`, unless there are too many. */
static int carry(Tries *tries, uint64_t start)
{
    for (; tries->at < tries->n && tries->list[tries->at].start < start; tries->at++) {
        int r = tries->n > TRIES_MAX
                    ? 0
                    : tries_keep(tries, tries->list[tries->at].start, tries->list[tries->at].n);

        if (r < 0)
            return r;
    }
    return 0;
}

int tries_ask(Tries *tries, uint64_t start, uint32_t *ret_n)
{
    int r = carry(tries, start);

    if (r < 0)
        return r;
    *ret_n = 0;
    if (tries->at < tries->n && tries->list[tries->at].start == start)
        *ret_n = tries->list[tries->at++].n;
    return 0;
}

int tries_end(Tries *tries)
{
    int r = carry(tries, UINT64_MAX);

    if (r < 0)
        return r;
    *tries = (Tries){
        .list = tries->now,
        .n = tries->n_now,
        .capacity = tries->capacity_now,
        .now = tries->list,
        .capacity_now = tries->capacity,
    };
    return 0;
}

void tries_take_back(Tries *tries, uint64_t start, uint64_t end)
{
    size_t first = LOWER_BOUND(i, tries->n, tries->list[i].start < start);

    for (size_t i = first; i < tries->n && tries->list[i].start < end; i++)
        if (tries->list[i].n > 0)
            tries->list[i].n--;
}
