/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Masks: comparing them, recognizing ours, and setting them. */

#include "act/internal.h"

void act_refresh(Act *act)
{
    if (act->ops->get_online(act->context, act->online) < 0)
        hwloc_bitmap_fill(act->online);
    if (act->ops->get_isolated(act->context, act->isolated) < 0)
        hwloc_bitmap_zero(act->isolated);
}

bool act_mask_same(Act *act, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    if (hwloc_bitmap_isequal(a, b))
        return true;
    return hwloc_bitmap_xor(act->scratch, a, b) == 0 && !hwloc_bitmap_intersects(act->scratch, act->online);
}

/* The mask of a forced migration is a single CPU, which a user may choose too. So it is ours only on the thread that
 * is being moved and on tasks created since then. Start times are cut to whole ticks, hence the tolerance of one. */
static bool from_passage(const JournalPassage *passage, TaskKey task, hwloc_const_bitmap_t mask)
{
    if (hwloc_bitmap_weight(mask) != 1 || hwloc_bitmap_first(mask) != passage->cpu.i)
        return false;
    if (task.tid == passage->tid && task.start_ticks == passage->born_ticks)
        return !passage->settled;
    return task.start_ticks + 1 >= passage->before.ticks;
}

/* Whether `mask` is what the cpuset in act->cpuset leaves of `applied`. Where it leaves nothing, the kernel
 * gives the whole cpuset (since 6.2, until it leaves something again). */
static bool is_rest(Act *act, hwloc_const_bitmap_t applied, hwloc_const_bitmap_t mask)
{
    if (hwloc_bitmap_and(act->scratch, applied, act->online) < 0)
        return false;
    if (!hwloc_bitmap_intersects(act->scratch, act->cpuset))
        return act_mask_same(act, mask, act->cpuset);
    return hwloc_bitmap_andnot(act->scratch, act->scratch, mask) == 0 &&
           !hwloc_bitmap_intersects(act->scratch, act->cpuset) && hwloc_bitmap_isincluded(mask, act->cpuset);
}

static bool may_be_rest(hwloc_const_bitmap_t applied, hwloc_const_bitmap_t mask)
{
    return !hwloc_bitmap_intersects(mask, applied) || hwloc_bitmap_isincluded(mask, applied);
}

bool act_mask_may_be_cut(const JournalProcess *process, hwloc_const_bitmap_t mask)
{
    for (uint32_t i = 0; i < process->n_applied; i++)
        if (may_be_rest(process->applied[i], mask))
            return true;
    return false;
}

/* The kernel cuts masks to what is left of them when a cpuset changes, and when a partition takes CPUs from
 * everybody. A thread may have to be put back before that is journalled (cut.c). */
bool act_mask_is_cut(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask)
{
    bool known = false;

    for (uint32_t i = 0; i < process->n_applied; i++) {
        hwloc_const_bitmap_t applied = process->applied[i];

        if (!may_be_rest(applied, mask) || act_mask_same(act, applied, mask))
            continue;
        if (!known && act->ops->get_cpuset(act->context, task.tid, act->cpuset) != 0)
            return false;
        known = true;
        if (is_rest(act, applied, mask))
            return true;
    }
    return false;
}

bool act_mask_ours(Act *act, const JournalProcess *process, TaskKey task, hwloc_const_bitmap_t mask)
{
    for (uint32_t i = 0; i < process->n_applied; i++)
        if (act_mask_same(act, process->applied[i], mask))
            return true;
    for (size_t i = 0; i < act->journal->n_passages; i++) {
        const JournalPassage *passage = &act->journal->passages[i];

        if (passage->pid == process->pid && passage->start_ticks == process->start_ticks &&
            from_passage(passage, task, mask))
            return true;
    }
    return act_mask_is_cut(act, process, task, mask);
}

bool act_mask_may_hide(Act *act, const JournalProcess *process, JournalOriginal original,
                       hwloc_const_bitmap_t mask)
{
    for (uint32_t i = 0; i < process->n_applied; i++)
        if (act_mask_same(act, process->applied[i], mask) &&
            (!hwloc_bitmap_isequal(process->applied[i], original.mask) ||
             (original.whole && !hwloc_bitmap_isincluded(act->online, mask))))
            return true;
    return false;
}

bool act_given_has(Act *act, const GivenMasks *given, hwloc_const_bitmap_t mask)
{
    for (size_t i = 0; i < given->n; i++)
        if (act_mask_same(act, given->masks[i], mask))
            return true;
    return false;
}

int act_given_gather(Act *act, bool selected, GivenMasks *ret)
{
    for (size_t i = 0; i < act->journal->n_processes; i++) {
        const JournalProcess *process = &act->journal->processes[i];

        for (uint32_t k = 0; k < process->n_applied && (process->selected || !selected); k++) {
            size_t at = 0;

            while (at < ret->n && ret->masks[at] != process->applied[k])
                at++;
            /* NOLINTNEXTLINE(bugprone-sizeof-expression): elements are pointers */
            if (at == ret->n && APPEND(ret->masks, ret->capacity, ret->n, process->applied[k]) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

int act_note_change(Act *act, JournalChange *change)
{
    const JournalProcess *entry =
        journal_process(act->journal, change->process.pid, change->process.start_ticks);

    if (!entry || entry->released_ticks > 0) {
        ActBirthMark now = {0};

        if (act->ops->get_place(act->context, change->process.pid, &change->place) != 0)
            change->place = ACT_PLACE_UNKNOWN;
        if (change->since_ticks == 0 && act->ops->birth_mark(act->context, &now) == 0)
            change->since_ticks = now.ticks;
    }
    return journal_note_change(act->journal, change);
}

int act_set_mask(Act *act, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    uint64_t start = time_now_usec();
    int r = act->ops->set_mask(act->context, task, via, mask);

    if (r == 0 || r == ACT_E_CUT) {
        act->statistics.n_set_mask++;
        act->statistics.cost_usec += time_now_usec() - start;
    }
    return r;
}

int act_set_original(Act *act, TaskKey task, JournalOriginal original)
{
    hwloc_const_bitmap_t mask = original.mask;
    int r;

    if (original.whole) {
        if (hwloc_bitmap_andnot(act->scratch, act->isolated, original.mask) < 0 ||
            hwloc_bitmap_andnot(act->scratch, act->all, act->scratch) < 0)
            return -ENOMEM;
        mask = act->scratch;
    }
    r = act_set_mask(act, task, NULL, mask);

    /* The kernel does the same to a task whose last CPU goes offline. */
    if (r == ACT_E_REFUSED && !original.whole)
        r = act_set_mask(act, task, NULL, act->all);
    return r == ACT_E_CUT ? 0 : r;
}
