/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trees of files below TMPDIR, for tests that need real files, and those of the fixtures. */

#include "base/root.h"
#include "unit-test.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A new directory; test_tree_remove() removes it with its content. */
static inline char *test_tree_new(void)
{
    const char *base = getenv("TMPDIR");
    char *path = NULL;

    assert_true(asprintf(&path, "%s/numaplace-test-XXXXXX", base && *base ? base : "/tmp") > 0);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int test_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* Removes a file, or a directory with its content. */
static inline void test_remove(const char *path)
{
    assert_int_equal(nftw(path, test_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void test_tree_remove(char *path)
{
    test_remove(path);
    free(path);
}

/* DIRECTORY/NAME. The result is valid for the next three calls. */
static inline const char *test_path(const char *directory, const char *name)
{
    static char buffers[4][PATH_MAX];
    static unsigned n;
    char *buf = buffers[n++ % 4];

    assert_true(snprintf(buf, PATH_MAX, "%s/%s", directory, name) < PATH_MAX);
    return buf;
}

/* Makes the directories above a file. */
static inline void test_mkdir_above(const char *path)
{
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *s = copy + 1; (s = strchr(s, '/')); *s++ = '/') {
        *s = '\0';
        (void)mkdir(copy, 0755);
    }
}

/* Makes a directory and all above it. */
static inline const char *test_mkdir(const char *directory, const char *name)
{
    const char *path = test_path(directory, name);

    test_mkdir_above(path);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    return path;
}

/* Opens a fixture of a room. */
static inline int test_fixture(const char *room, const char *name)
{
    char path[PATH_MAX];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s/%s", getenv("NUMAPLACE_FIXTURES"), room, name);
    fd = root_open(path);
    assert_true(fd >= 0);
    return fd;
}

/* Writes a file, and makes the directories above it. A descriptor that is already open sees the new text, as
 * with the kernel's files. */
static inline const char *test_write_bytes(const char *directory, const char *name, const char *text,
                                           size_t len)
{
    const char *path = test_path(directory, name);
    FILE *f;

    test_mkdir_above(path);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *test_write(const char *directory, const char *name, const char *text)
{
    return test_write_bytes(directory, name, text, strlen(text));
}
