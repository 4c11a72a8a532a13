/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A process that /proc hides seems to have exited, and a restore would forget it. Mount options of /proc:
 * proc(5), "hidepid=" and "gid=". */

#include "act/act.h"
#include "base/parse.h"
#include "base/root.h"

#include <linux/capability.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Containers have hundreds of mounts, of some hundred bytes each. */
#define MOUNTS_MAX (4U << 20)

static bool is_capable(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* The value of a mount option, or NULL. */
static const char *option_value(const struct mntent *mount, const char *name)
{
    const char *at = hasmntopt(mount, name);

    return at && at[strlen(name)] == '=' ? at + strlen(name) + 1 : NULL;
}

static bool is_word(const char *value, const char *word)
{
    return strcspn(value, ",") == strlen(word) && strncmp(value, word, strlen(word)) == 0;
}

static bool is_in_group(const char *value)
{
    gid_t group, groups[NGROUPS_MAX];
    int n = getgroups(NGROUPS_MAX, groups);

    if (!value || sscanf(value, "%u", &group) != 1)
        group = 0; /* the kernel's default without gid= */
    for (int i = 0; i < n; i++)
        if (groups[i] == group)
            return true;
    return getegid() == group;
}

/* Whether this /proc hides other users' processes from one without CAP_SYS_PTRACE. */
static bool hides(const struct mntent *mount)
{
    const char *how = option_value(mount, "hidepid");

    if (!how || is_word(how, "0") || is_word(how, "off"))
        return false;
    return is_word(how, "4") || is_word(how, "ptraceable") || !is_in_group(option_value(mount, "gid"));
}

/* The last mount is the visible one. */
static bool is_proc_hiding(int root_fd)
{
    CLEANUP_FREE char *text = NULL;
    char buf[4096];
    struct mntent mount;
    bool hiding = false;
    size_t len = 0;
    FILE *file;

    if (root_read_alloc(root_fd, "proc/self/mounts", MOUNTS_MAX, &text, &len) < 0 || len == 0)
        return false;
    file = fmemopen(text, len, "r");
    if (!file)
        return false;
    while (getmntent_r(file, &mount, buf, sizeof(buf)))
        if (strcmp(mount.mnt_dir, "/proc") == 0)
            hiding = hides(&mount);
    (void)fclose(file);
    return hiding;
}

const char *act_forbidden(int root_fd)
{
    if (!is_capable(CAP_SYS_NICE))
        return "CAP_SYS_NICE is missing";
    if (!is_capable(CAP_SYS_PTRACE) && is_proc_hiding(root_fd))
        return "/proc is mounted with hidepid=, and CAP_SYS_PTRACE is missing";
    return NULL;
}
