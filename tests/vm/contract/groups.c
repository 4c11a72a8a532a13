/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "groups.h"

#include <sys/stat.h>

#define GROUPS_MAX 16U

static char names[GROUPS_MAX][64];
static size_t n_names;

void groups_begin(void)
{
    const char *controllers;

    need_guest();
    controllers = file_read("/sys/fs/cgroup/cgroup.controllers");
    if (!controllers || !strstr(controllers, "cpuset"))
        contract_skip("no control groups of version 2 with the cpuset controller");
    if (mkdir(GROUPS_ROOT, 0755) < 0 && errno != EEXIST)
        contract_skip("control groups cannot be made here: %s", strerror(errno));
    assert_int_equal(file_write("+cpuset +cpu", "/sys/fs/cgroup/cgroup.subtree_control"), 0);
    assert_int_equal(file_write("+cpuset +cpu", GROUPS_ROOT "/cgroup.subtree_control"), 0);
}

static bool removed(void *userdata)
{
    return rmdir(userdata) == 0 || errno == ENOENT;
}

static int remove_group(const char *path)
{
    char copy[128];

    /* A killed task leaves its group a moment later. */
    (void)snprintf(copy, sizeof(copy), "%s", path);
    return eventually(removed, copy) ? 0 : -1;
}

int groups_teardown(void **state)
{
    int r = 0;

    children_end();
    while (n_names > 0) {
        char path[128];

        (void)snprintf(path, sizeof(path), GROUPS_ROOT "/%s", names[--n_names]);
        r |= remove_group(path);
    }
    return r | remove_group(GROUPS_ROOT);
}

void group_make(const char *name)
{
    char path[128];

    assert_true(n_names < GROUPS_MAX);
    (void)snprintf(path, sizeof(path), GROUPS_ROOT "/%s", name);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(names[n_names++], sizeof(names[0]), "%s", name);
}

int group_join(const char *name, pid_t pid)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", pid);
    return group_write(name, "cgroup.procs", text);
}

int group_write(const char *name, const char *file, const char *text)
{
    return file_write(text, GROUPS_ROOT "/%s/%s", name, file);
}

int group_write_list(const char *name, const char *file, uint64_t bits)
{
    return group_write(name, file, list_format(bits));
}

uint64_t group_list(const char *name, const char *file)
{
    return file_list(GROUPS_ROOT "/%s/%s", name, file);
}
