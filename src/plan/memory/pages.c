/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The page filter of P13. Moving a page costs more than many remote accesses, so a page must be likely to stay.
 *
 * Two stages: the node that asks must also have asked last. A node with a share p of the accesses passes with the
 * chance p * p: 5 % pass once in 400, 90 % four times in five. A task's own pages pass, and so do all pages while no
 * group is known. A page shared in a group goes where the group runs much more (3 times). Otherwise it moves only if
 * that brings memory closer to use, by a margin of a quarter: cpu(to) * memory(from) * 3 > cpu(from) * memory(to) * 4.
 * Equal use on both sides moves nothing. */

#include "plan/memory/pages.h"

#include "plan/home/active.h"

static bool brings_balance(const PagesAccess *a)
{
    __extension__ typedef unsigned __int128 Wide; /* products of two averages and a small factor */

    return (Wide)a->cpu_to * a->memory_from * 3 > (Wide)a->cpu_from * a->memory_to * 4;
}

static bool is_early(const PagesAccess *a)
{
    return !a->has_preferred || a->n_sequences <= PAGES_EARLY_SEQUENCES;
}

PagesVerdict pages_judge(const PagesAccess *a)
{
    bool own = a->last_known && a->last_own;

    if (!a->to_has_memory)
        return PAGES_STAY_NO_MEMORY;
    if (is_early(a) && (own || !a->last_known))
        return PAGES_MOVE_EARLY;
    if (a->two_stage && a->last_known && !a->last_here)
        return PAGES_STAY_OTHER_NODE;
    if (own)
        return PAGES_MOVE_PRIVATE;
    if (!a->has_group)
        return PAGES_MOVE_NO_GROUP;
    if (a->cpu_to > a->cpu_from * ACTIVE_FRACTION)
        return PAGES_MOVE_MUCH_USED;
    return brings_balance(a) ? PAGES_MOVE_BALANCES : PAGES_STAY_BALANCED;
}
