/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A property set back to its old value leaves a drop-in that says so, and that overrides later changes of the
 * unit file. The manager cannot take back one setting: reverting a unit drops all that its administrator has
 * set. So the file is removed here, which is all that reverting does. */

#include "act/fence/dropin.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A list of 8192 CPUs, and the comment above it. */
#define TEXT_SIZE 32768U

/* The second is for transient units. */
static const char *const directories[] = {"run/systemd/system.control", "run/systemd/transient"};

static void file_name(char *ret, size_t size, size_t i, const char *unit, const char *property)
{
    (void)snprintf(ret, size, "%s/%s.d/50-%s.conf", directories[i], unit, property);
}

/* The last line counts: the one before it empties the set. Lists contain blanks. */
int fence_dropin_parse(char *text, const char *property, hwloc_bitmap_t ret)
{
    size_t len = strlen(property);
    int r = -ENOENT;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, property, len) != 0 || line[len] != '=')
            continue;
        for (char *c = line; (c = strchr(c, ' '));)
            *c = ',';
        r = parse_list(line + len + 1, PARSE_CPU_MAX, ret);
    }
    return r;
}

int fence_dropin_read(int root_fd, const char *unit, const char *property, hwloc_bitmap_t ret)
{
    char name[PATH_MAX], text[TEXT_SIZE];
    ssize_t n = -ENOENT;

    for (size_t i = 0; n == -ENOENT && i < ARRAY_SIZE(directories); i++) {
        file_name(name, sizeof(name), i, unit, property);
        n = root_read(root_fd, name, text, sizeof(text));
    }
    return n < 0 ? (int)n : fence_dropin_parse(text, property, ret);
}

void fence_dropin_remove(int root_fd, const char *unit, const char *property)
{
    char name[PATH_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
        file_name(name, sizeof(name), i, unit, property);
        if (unlinkat(root_fd, name, 0) < 0)
            continue;
        *strrchr(name, '/') = '\0';
        (void)unlinkat(root_fd, name, AT_REMOVEDIR);
    }
}
