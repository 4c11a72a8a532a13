/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernel/cgroup/paths.h"

#include "base/util.h"

#include <string.h>

bool cgroup_list_has(const char *list, size_t len, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i + n <= len; i++)
        if ((i == 0 || list[i - 1] == ',') && memcmp(list + i, name, n) == 0 &&
            (i + n == len || list[i + n] == ','))
            return true;
    return false;
}

static bool is_root(const char *path)
{
    return !path || strcmp(path, "/") == 0;
}

int cgroup_parse(char *text, CgroupPaths *ret)
{
    const char *unified = NULL, *systemd = NULL, *cpu = NULL, *cpuset = NULL;
    char *line = text, *end, *names, *path;

    /* "ID:controller,controller:/path"; the path may hold colons. */
    for (; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            return -EINVAL;
        *end = '\0';
        names = strchr(line, ':');
        path = names ? strchr(names + 1, ':') : NULL;
        if (!path || path[1] != '/')
            return -EINVAL;
        names++;
        path++;
        if (has_suffix(path, strlen(path), " (deleted)"))
            path[strlen(path) - strlen(" (deleted)")] = '\0';

        if (path - names == 1)
            unified = path;
        if (cgroup_list_has(names, (size_t)(path - 1 - names), "name=systemd"))
            systemd = path;
        if (cgroup_list_has(names, (size_t)(path - 1 - names), "cpu"))
            cpu = path;
        if (cgroup_list_has(names, (size_t)(path - 1 - names), "cpuset"))
            cpuset = path;
    }
    if (line == text)
        return -EINVAL;

    /* In a hybrid layout the unified hierarchy may be unused; everything is then in its root. */
    ret->main = !is_root(unified) ? unified : !is_root(systemd) ? systemd : cpu ? cpu : "/";
    ret->cpuset = cpuset ? cpuset : unified ? unified : "/";
    return 0;
}

bool cgroup_is_unit(const char *name, size_t len)
{
    static const char *const suffixes[] = {".service", ".scope", ".socket", ".mount", ".swap"};

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (has_suffix(name, len, suffixes[i]))
            return true;
    return false;
}
