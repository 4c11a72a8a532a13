/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record that cannot be begun leaves no file behind, and removes none that it did not make. */

#include "../temp-tree.h"
#include "daemon/recorder.h"

static char *base;

static int setup(void **state)
{
    base = test_tree_new();
    return 0;
}

static int teardown(void **state)
{
    test_tree_remove(base);
    return 0;
}

/* Stands in for the C library's: there is no memory for a stream. */
FILE *fdopen(int fd, const char *mode)
{
    errno = ENOMEM;
    return NULL;
}

static void test_no_stream(void **state)
{
    const char *path = test_path(base, "record");
    Log log = {.level = LOG_EMERG};
    Recorder *recorder = NULL;

    assert_int_equal(recorder_new(path, &log, &recorder), -ENOMEM);
    assert_null(recorder);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_exists(void **state)
{
    const char *path = test_write(base, "record", "x");
    Log log = {.level = LOG_EMERG};
    Recorder *recorder = NULL;

    assert_int_equal(recorder_new(path, &log, &recorder), -EEXIST);
    assert_null(recorder);
    assert_int_equal(access(path, F_OK), 0);
}

TEST_MAIN(setup, teardown, test_no_stream, test_exists)
