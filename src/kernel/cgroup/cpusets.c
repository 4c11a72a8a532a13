/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* `mount -t cpuset none /dev/cpuset` and `mount -t cgroup -o cpuset,noprefix none /dev/cpuset` mount the same
 * thing, which mountinfo shows as
 *
 *     36 25 0:31 / /dev/cpuset rw,relatime shared:7 - cgroup none rw,cpuset,noprefix
 *
 * The file names belong to the hierarchy, not to the mount: while it is mounted anywhere with names like
 * cpuset.cpus, both commands succeed and show these names. So only one of the two forms exists at a time. */

#include "kernel/cgroup/cpusets.h"

#include "base/lines.h"
#include "base/root.h"
#include "base/scan.h"
#include "base/util.h"
#include "kernel/cgroup/paths.h"

#include <stdio.h>
#include <string.h>

/* Whether the word at `at`, which ends at a blank or the end, is `word`. */
static bool is_word(const char *at, const char *word)
{
    size_t len = strcspn(at, " ");

    return len == strlen(word) && memcmp(at, word, len) == 0;
}

int cpusets_parse_mount(const char *line)
{
    const char *root, *options = strrchr(line, ' ');

    for (int i = 0; i < 3; i++)
        line = scan_next_word(line);
    root = line;
    line = scan_next_word(line);
    if (!is_word(line, "/dev/cpuset"))
        return -ENOENT;
    /* Any number of words, then the "-". */
    while (*line && !is_word(line, "-"))
        line = scan_next_word(line);
    return *line && is_word(root, "/") && is_word(scan_next_word(line), "cgroup") &&
           cgroup_list_has(options + 1, strlen(options + 1), "cpuset") &&
           cgroup_list_has(options + 1, strlen(options + 1), "noprefix");
}

/* Of several mounts at one place, the last is on top. */
static int add_mount(void *userdata, const char *line)
{
    bool *mounted = userdata;
    int r = cpusets_parse_mount(line);

    if (r >= 0)
        *mounted = r;
    return 0;
}

CpusetsV1 cpusets_v1(int root_fd)
{
    bool mounted = false;

    if (root_has(root_fd, CGROUP_ROOT "/cpuset/cpuset.cpus"))
        return CPUSETS_V1_CGROUP;
    /* The file shows that no mount over /dev hides the cpusets; mountinfo, that it is one of theirs. */
    if (root_has(root_fd, "dev/cpuset/cpus") &&
        lines_read(root_fd, "proc/self/mountinfo", add_mount, &mounted) == 0 && mounted)
        return CPUSETS_V1_DEV;
    return CPUSETS_V1_NONE;
}

bool cpusets_forget_masks(int root_fd)
{
    char text[64];
    unsigned major, minor;

    return root_read(root_fd, "proc/sys/kernel/osrelease", text, sizeof(text)) > 0 &&
           sscanf(text, "%u.%u", &major, &minor) == 2 && (major < 6 || (major == 6 && minor < 2));
}
