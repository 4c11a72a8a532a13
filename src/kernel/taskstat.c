/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The first line of status is the name. The kernel escapes newline as "\n" and backslash as "\\" in it, so
 * that a process cannot forge further lines. Keys are matched at the start of a line only. */

#include "kernel/taskstat.h"

#include "base/util.h"

#include <string.h>

const char *taskstat_find_value(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && strchr(line, '\n'))
            return line + len;
    }
    return NULL;
}

int taskstat_parse_status(char *text, TaskStatus *ret)
{
    const char *s = taskstat_find_value(text, "Uid:\t");
    const char *cpus = taskstat_find_value(text, "Cpus_allowed_list:\t");
    uint64_t uid;

    if (!s || !cpus || !scan_u64(&s, &uid) || *s != '\t' || uid > UINT32_MAX)
        return -EINVAL;

    text[cpus - text + strcspn(cpus, "\n")] = '\0';
    *ret = (TaskStatus){.uid = (uid_t)uid, .cpus_allowed = cpus};
    return 0;
}
