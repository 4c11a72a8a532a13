/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/task-set.h"

typedef struct Member {
    pid_t pid; /* a PID names one process at a time */
    uint64_t start_ticks;
    unsigned seen; /* sweep in which it was last found */
} Member;

struct TaskSet {
    Member *members; /* ascending pid */
    size_t n, capacity;
    unsigned sweep;
};

TaskSet *task_set_new(void)
{
    return calloc(1, sizeof(TaskSet));
}

void task_set_clear(TaskSet *set)
{
    set->n = 0;
}

TaskSet *task_set_free(TaskSet *set)
{
    if (set)
        free(set->members);
    free(set);
    return NULL;
}

/* The index of the PID, or where to insert it; and whether it is there. */
static size_t place_of(const TaskSet *set, pid_t pid, bool *ret_there)
{
    size_t at = LOWER_BOUND(i, set->n, set->members[i].pid < pid);

    *ret_there = at < set->n && set->members[at].pid == pid;
    return at;
}

int task_set_add(TaskSet *set, pid_t pid, uint64_t start_ticks)
{
    bool there;
    size_t at = place_of(set, pid, &there);

    if (!there && !INSERT(set->members, set->capacity, set->n, at))
        return -ENOMEM;
    set->members[at] = (Member){pid, start_ticks, set->sweep};
    return 0;
}

bool task_set_find(TaskSet *set, pid_t pid, uint64_t start_ticks)
{
    bool there;
    size_t at = place_of(set, pid, &there);

    if (!there || set->members[at].start_ticks != start_ticks)
        return false;
    set->members[at].seen = set->sweep;
    return true;
}

bool task_set_remove(TaskSet *set, pid_t pid)
{
    bool there;
    size_t at = place_of(set, pid, &there);

    if (there)
        memmove(&set->members[at], &set->members[at + 1], (--set->n - at) * sizeof(*set->members));
    return there;
}

size_t task_set_size(const TaskSet *set)
{
    return set->n;
}

void task_set_sweep(TaskSet *set)
{
    size_t n = 0;

    set->sweep++;
    for (size_t i = 0; i < set->n; i++)
        if (set->sweep - set->members[i].seen <= 2)
            set->members[n++] = set->members[i];
    set->n = n;
}
