/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Buddies (P14). A page that two tasks access in turns joins them. Of four tasks on the same memory each takes the one
 * just before it: t4 -> t3 -> t2 -> t1; this chain is the group.
 *
 * A buddy is kept until a candidate has more accesses in one scan than are remembered of the buddy. Without new
 * accesses these fade fast: 1000 750 562 421 315 236 177. Only accesses shared with the buddy itself refresh them.
 *
 * The class follows averages that move by 1/16 per scan: 1000 shared accesses per scan show as 62 after one scan, 505
 * after 11 and 867 after 32. Because of the factor two, a ratio that wavers between 0.8 and 1.25 changes nothing.
 *
 * What it does badly: with one candidate at a time, a task between two groups joins that of the later task. */

#include "world/buddy.h"

static int key_compare(TaskKey a, TaskKey b)
{
    if (a.pid != b.pid)
        return a.pid < b.pid ? -1 : 1;
    if (a.tid != b.tid)
        return a.tid < b.tid ? -1 : 1;
    if (a.start_ticks != b.start_ticks)
        return a.start_ticks < b.start_ticks ? -1 : 1;
    return 0;
}

void buddy_accessed(Buddy *b, TaskKey self, TaskKey other, uint64_t n)
{
    if (key_compare(other, self) >= 0)
        return;
    if (b->candidate.tid == 0 || key_compare(other, b->candidate) > 0) {
        b->candidate = other;
        b->candidate_faults = 0;
    }
    if (key_compare(other, b->candidate) == 0)
        b->candidate_faults += n;
}

BuddyClass buddy_classify(BuddyClass before, uint64_t private_average, uint64_t shared_average)
{
    switch (before) {
    case BUDDY_CLASS_PRIVATE:
        return shared_average > 0 && shared_average >= 2 * private_average ? BUDDY_CLASS_SHARED : before;
    case BUDDY_CLASS_SHARED:
        return private_average > 0 && private_average >= 2 * shared_average ? BUDDY_CLASS_PRIVATE : before;
    default:
        if (private_average == 0 && shared_average == 0)
            return BUDDY_CLASS_UNKNOWN;
        return shared_average >= private_average ? BUDDY_CLASS_SHARED : BUDDY_CLASS_PRIVATE;
    }
}

static void fold_relation(Buddy *b)
{
    bool refreshed = key_compare(b->candidate, b->buddy) == 0;

    if (b->candidate_faults > b->faults) {
        b->buddy = b->candidate;
        b->faults = b->candidate_faults;
    } else {
        b->faults = (3 * b->faults + (refreshed ? b->candidate_faults : 0)) / 4;
    }
    b->candidate = (TaskKey){0};
    b->candidate_faults = 0;
}

void buddy_fold(Buddy *b, uint64_t private_faults, uint64_t shared_faults)
{
    fold_relation(b);
    b->private_average = (15 * b->private_average + private_faults) / 16;
    b->shared_average = (15 * b->shared_average + shared_faults) / 16;
    b->class = buddy_classify(b->class, b->private_average, b->shared_average);
}
