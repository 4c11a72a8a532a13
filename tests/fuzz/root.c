/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "root.h"

#include "base/root.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static int root_fd = -1;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void clean_up(void)
{
    (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int fuzz_root(void)
{
    const char *tmp = getenv("TMPDIR");

    if (root_fd >= 0)
        return root_fd;
    (void)snprintf(directory, sizeof(directory), "%s/numaplace-fuzz-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(directory) || atexit(clean_up) != 0 || (root_fd = root_open(directory)) < 0)
        abort();
    return root_fd;
}

const char *fuzz_root_path(void)
{
    (void)fuzz_root();
    return directory;
}

void fuzz_root_write(const char *path, const void *data, size_t size)
{
    CLEANUP_FREE char *parent = strdup(path);
    int fd;

    if (!parent)
        abort();
    for (char *slash = parent; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdirat(fuzz_root(), parent, 0700) < 0 && errno != EEXIST)
            abort();
    }
    fd = openat(fuzz_root(), path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)close(fd);
}
