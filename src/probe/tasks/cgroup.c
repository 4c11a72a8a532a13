/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Version 1 hierarchies are looked for where every distribution mounts them, /sys/fs/cgroup/CONTROLLER, and that of
 * cpusets also where batch systems do (kernel/cgroup/cpusets.h). If a path is missing there (a container sees the
 * host's paths but mounts only its own part), the search ends at the mount's root, the container's own group.
 *
 * Unit names are recognised as by sd_pid_get_unit(3), but by the innermost name, not the outermost: a policy for
 * app.slice or for a container's service is about what runs in it. */

#include "probe/tasks/cgroup.h"

#include "base/root.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Whether a path component may be the name of a unit. */
static bool is_name(const char *name, size_t len)
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:-_.\\@";

    return len > 0 && len < CGROUP_NAME_SIZE && *name != '@' && strspn(name, allowed) >= len;
}

void cgroup_unit(const char *path, CgroupUnit *ret)
{
    *ret = (CgroupUnit){0};
    while (*path) {
        size_t len;
        char *to;

        path += strspn(path, "/");
        path += *path == '_';
        len = strcspn(path, "/");
        to = !is_name(path, len)               ? NULL
             : cgroup_is_unit(path, len)       ? ret->unit
             : has_suffix(path, len, ".slice") ? ret->slice
                                               : NULL;
        if (to) {
            memcpy(to, path, len);
            to[len] = '\0';
        }
        path += len;
    }
}

ProbeCgroupLayout cgroup_layout(int root_fd)
{
    if (root_has(root_fd, CGROUP_ROOT "/cgroup.controllers"))
        return PROBE_CGROUP_V2;
    if (root_has(root_fd, CGROUP_ROOT "/unified/cgroup.controllers"))
        return PROBE_CGROUP_HYBRID;
    if (root_has(root_fd, CGROUP_ROOT "/cpu") || root_has(root_fd, CGROUP_ROOT "/cpuset") ||
        root_has(root_fd, CGROUP_ROOT "/systemd") || cpusets_v1(root_fd) == CPUSETS_V1_DEV)
        return PROBE_CGROUP_V1;
    return PROBE_CGROUP_NONE;
}

/* Reads one list into `ret`. -ENOENT also when it is empty: nothing can run in such a group, so the list does
 * not hold for a process found there. */
static int read_list(int fd, hwloc_bitmap_t ret)
{
    int r = root_pread_list(fd, ret);

    return r == -ENOMEM || (r == 0 && !hwloc_bitmap_iszero(ret)) ? r : -ENOENT;
}

static int read_file(int root_fd, const char *directory, const char *path, const char *file, int *kept,
                     hwloc_bitmap_t ret)
{
    CLEANUP_CLOSE int fd = -1;
    char name[PATH_MAX];
    int r = snprintf(name, sizeof(name), "%s%s/%s", directory, path, file);

    if (r < 0 || (size_t)r >= sizeof(name))
        return -ENOENT;
    fd = root_open_file(root_fd, name);
    r = fd < 0 ? -ENOENT : read_list(fd, ret);
    if (r == 0 && kept)
        *kept = TAKE_FD(fd);
    return r;
}

void cgroup_leave_threaded(int root_fd, const char *directory, char *path)
{
    char name[PATH_MAX], type[32], *slash;

    while ((slash = strrchr(path, '/')) && slash[1]) {
        int r = snprintf(name, sizeof(name), "%s%s/cgroup.type", directory, path);

        if (r < 0 || (size_t)r >= sizeof(name) || root_read(root_fd, name, type, sizeof(type)) < 0 ||
            strcmp(type, "threaded\n") != 0)
            return;
        slash[slash == path] = '\0';
    }
}

int cgroup_cpuset(int root_fd, ProbeCgroupLayout layout, CpusetsV1 v1, const char *path, int *kept,
                  hwloc_bitmap_t ret)
{
    const char *directory = v1 == CPUSETS_V1_CGROUP         ? CGROUP_ROOT "/cpuset"
                            : v1 == CPUSETS_V1_DEV          ? "dev/cpuset"
                            : layout == PROBE_CGROUP_V2     ? CGROUP_ROOT
                            : layout == PROBE_CGROUP_HYBRID ? CGROUP_ROOT "/unified"
                                                            : NULL;
    const char *effective = v1 == CPUSETS_V1_CGROUP ? "cpuset.effective_cpus"
                            : v1 == CPUSETS_V1_DEV  ? "effective_cpus"
                                                    : "cpuset.cpus.effective";
    char up[PATH_MAX];
    size_t len = strlen(path);

    if (!directory || len >= sizeof(up))
        return -ENOENT;
    if (kept && *kept >= 0) {
        if (read_list(*kept, ret) == 0)
            return 0;
        close_p(kept);
        *kept = -1;
    }
    memcpy(up, path, len + 1);
    /* In a cgroup namespace a path may lead out of what is mounted, "/../other". Then the root is asked. */
    if (strstr(up, "/../") || (len >= 3 && strcmp(up + len - 3, "/..") == 0))
        up[0] = '\0';
    if (v1 == CPUSETS_V1_NONE)
        cgroup_leave_threaded(root_fd, directory, up);

    for (;;) {
        char *slash;
        int r;

        for (len = strlen(up); len > 0 && up[len - 1] == '/'; len--)
            up[len - 1] = '\0';
        r = read_file(root_fd, directory, up, effective, kept, ret);
        if (r == -ENOENT && v1 != CPUSETS_V1_NONE) /* before Linux 4.2, and captured trees that lack it */
            r = read_file(root_fd, directory, up, v1 == CPUSETS_V1_DEV ? "cpus" : "cpuset.cpus", kept, ret);
        if (r != -ENOENT)
            return r;
        slash = strrchr(up, '/');
        if (!slash)
            return -ENOENT;
        *slash = '\0';
    }
}
