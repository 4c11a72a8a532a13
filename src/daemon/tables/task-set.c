/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/task-set.h"

#include <uthash.h>

typedef struct Member {
    pid_t pid; /* key: one number names one process at a time */
    uint64_t start_ticks;
    unsigned seen; /* sweep in which it was found last */
    UT_hash_handle hh;
} Member;

struct TaskSet {
    Member *by_pid;
    unsigned sweep;
};

TaskSet *task_set_new(void)
{
    return calloc(1, sizeof(TaskSet));
}

static void member_drop(TaskSet *set, Member *m)
{
    HASH_DEL(set->by_pid, m);
    free(m);
}

void task_set_clear(TaskSet *set)
{
    Member *m, *next;

    HASH_ITER (hh, set->by_pid, m, next)
        member_drop(set, m);
}

TaskSet *task_set_free(TaskSet *set)
{
    if (!set)
        return NULL;
    task_set_clear(set);
    free(set);
    return NULL;
}

static Member *member_find(const TaskSet *set, pid_t pid)
{
    Member *m = NULL;

    HASH_FIND(hh, set->by_pid, &pid, sizeof(pid), m);
    return m;
}

int task_set_add(TaskSet *set, pid_t pid, uint64_t start_ticks)
{
    Member *m = member_find(set, pid);

    if (!m) {
        m = calloc(1, sizeof(*m));
        if (!m)
            return -ENOMEM;
        m->pid = pid;
        HASH_ADD(hh, set->by_pid, pid, sizeof(m->pid), m);
        if (!m->hh.tbl) {
            free(m);
            return -ENOMEM;
        }
    }
    m->start_ticks = start_ticks;
    m->seen = set->sweep;
    return 0;
}

bool task_set_find(TaskSet *set, pid_t pid, uint64_t start_ticks)
{
    Member *m = member_find(set, pid);

    if (!m || m->start_ticks != start_ticks)
        return false;
    m->seen = set->sweep;
    return true;
}

bool task_set_remove(TaskSet *set, pid_t pid)
{
    Member *m = member_find(set, pid);

    if (m)
        member_drop(set, m);
    return m;
}

size_t task_set_size(const TaskSet *set)
{
    return HASH_COUNT(set->by_pid);
}

void task_set_sweep(TaskSet *set)
{
    Member *m, *next;

    set->sweep++;
    HASH_ITER (hh, set->by_pid, m, next)
        if (set->sweep - m->seen > 2)
            member_drop(set, m);
}
