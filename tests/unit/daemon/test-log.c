/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The log's plain form, its fields and its rate limit. */

#include "daemon/log.h"
#include "unit-test.h"

#include <stdlib.h>
#include <unistd.h>

/* Runs with standard error in a pipe, and stores what was written in `buf`. */
static void capture(void (*run)(Log *log), char *buf, size_t size)
{
    Log log = {.level = LOG_INFO};
    int fds[2], old = dup(STDERR_FILENO);
    ssize_t n;

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    run(&log);
    assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
    (void)close(fds[1]);
    (void)close(old);
    n = read(fds[0], buf, size - 1);
    assert_true(n >= 0);
    buf[n] = '\0';
    (void)close(fds[0]);
}

static void write_lines(Log *log)
{
    log_notice(log, NULL, "one %d", 1);
    log_debug(log, NULL, "not written");
    log_error(log, NULL, "name is evil\nnumaplaced: %s", "forged");
}

static void test_plain_lines(void **state)
{
    char buf[1024];

    capture(write_lines, buf, sizeof(buf));
    assert_string_equal(buf, "numaplaced: one 1\n"
                             "numaplaced: name is evil\\x0anumaplaced: forged\n");
}

static void write_long(Log *log)
{
    char text[100000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_notice(log, NULL, "%s", text);
}

static void test_a_long_line_is_cut(void **state)
{
    char buf[8192];

    capture(write_long, buf, sizeof(buf));
    assert_true(strlen(buf) < 4096);
    assert_int_equal(buf[strlen(buf) - 1], '\n');
}

static void test_fields(void **state)
{
    LogFields fields = {0};
    char big[LOG_FIELDS_TEXT];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    log_fields_add(&fields, "A", "%d", 1);
    log_fields_add(&fields, "TOO_BIG", "%s", big);
    log_fields_add(&fields, "B", "%s", "two\nlines");
    assert_int_equal(fields.n, 2);
    assert_memory_equal(fields.text, "A=1B=two\nlines", 14);
    assert_int_equal(fields.ends[0], 3);
    assert_int_equal(fields.ends[1], 14);
    for (unsigned i = 0; i < 2 * LOG_FIELDS_MAX; i++)
        log_fields_add(&fields, "N", "%u", i);
    assert_int_equal(fields.n, LOG_FIELDS_MAX);
}

static void test_rate(void **state)
{
    Log log = {.level = LOG_INFO};
    uint32_t held = 99;

    for (unsigned i = 0; i < LOG_RATE_BURST; i++) {
        assert_true(log_rate(&log, 1000, &held));
        assert_int_equal(held, 0);
    }
    for (unsigned i = 0; i < 5; i++)
        assert_false(log_rate(&log, 2000, &held));
    assert_true(log_rate(&log, 1000 + LOG_RATE_USEC, &held));
    assert_int_equal(held, 5);
    assert_true(log_rate(&log, 1000 + LOG_RATE_USEC, &held));
    assert_int_equal(held, 0);
    assert_int_equal(log.suppressed, 5);
}

/* Standard error of this test is no journal, whatever the variable says. */
static void test_journal_is_recognised_by_its_inode(void **state)
{
    Log log;

    assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0);
    log_init(&log);
    assert_false(log.to_journal);
    assert_int_equal(setenv("JOURNAL_STREAM", "nonsense", 1), 0);
    log_init(&log);
    assert_false(log.to_journal);
    assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
}

TEST_MAIN(NULL, NULL, test_plain_lines, test_a_long_line_is_cut, test_fields, test_rate,
          test_journal_is_recognised_by_its_inode)
