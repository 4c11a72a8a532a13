/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of configuration files share: reports as text, and trees of files below TMPDIR. */

#include "conf/ini.h"
#include "unit-test.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

/* All messages, "error FILE:LINE: TEXT\n" each; empties the report. The caller frees. */
static inline char *report_text(ConfReport *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    for (size_t i = 0; i < report->n_messages; i++) {
        CLEANUP_FREE char *line = conf_message_format(&report->messages[i]);

        assert_non_null(line);
        (void)fprintf(f, "%s %s\n", report->messages[i].severity == CONF_SEVERITY_ERROR ? "error" : "warning",
                      line);
    }
    assert_int_equal(fclose(f), 0);
    conf_report_done(report);
    return text;
}

static inline void assert_report(ConfReport *report, const char *expected)
{
    CLEANUP_FREE char *text = report_text(report);

    assert_string_equal(text, expected);
}

/* A fresh directory; test_tree_remove() takes it away with all it holds. */
static inline char *test_tree_new(void)
{
    const char *base = getenv("TMPDIR");
    char *path = NULL;

    assert_true(asprintf(&path, "%s/numaplace-test-XXXXXX", base && *base ? base : "/tmp") > 0);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int test_tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static inline void test_tree_remove(char *path)
{
    assert_int_equal(nftw(path, test_tree_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(path);
}

/* DIRECTORY/NAME. The result is good until the fourth call from now. */
static inline const char *test_path(const char *directory, const char *name)
{
    static char buffers[4][PATH_MAX];
    static unsigned n;
    char *buf = buffers[n++ % 4];

    assert_true(snprintf(buf, PATH_MAX, "%s/%s", directory, name) < PATH_MAX);
    return buf;
}

/* Makes a directory and all above it. */
static inline const char *test_mkdir(const char *directory, const char *name)
{
    const char *path = test_path(directory, name);
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (char *s = copy + 1; (s = strchr(s, '/')); *s++ = '/') {
        *s = '\0';
        (void)mkdir(copy, 0755);
    }
    assert_true(mkdir(copy, 0755) == 0 || errno == EEXIST);
    return path;
}

static inline const char *test_write_bytes(const char *directory, const char *name, const char *text,
                                           size_t len)
{
    const char *path = test_path(directory, name);
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *test_write(const char *directory, const char *name, const char *text)
{
    return test_write_bytes(directory, name, text, strlen(text));
}
