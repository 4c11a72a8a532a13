/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pass walks the listing of /proc in ascending order and makes a new table from the old one, as in a merge.
 * Processes that vanished are not carried over, so nothing grows with the number of processes that ever ran. */

#include "probe/tasks/seen.h"

SeenProcess *seen_find(const SeenTable *table, pid_t pid, size_t *hint)
{
    while (*hint < table->n && table->entries[*hint].pid < pid)
        (*hint)++;
    return *hint < table->n && table->entries[*hint].pid == pid ? &table->entries[*hint] : NULL;
}

int seen_append(SeenTable *table, const SeenProcess *value)
{
    assert(table->n == 0 || table->entries[table->n - 1].pid < value->pid);

    return APPEND(table->entries, table->capacity, table->n, *value);
}

void seen_clear(SeenTable *table)
{
    for (size_t i = 0; i < table->n; i++)
        free(table->entries[i].cpuset_path);
    table->n = 0;
}

void seen_done(SeenTable *table)
{
    seen_clear(table);
    free(table->entries);
    *table = (SeenTable){0};
}
