/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The grammar: what a text means, and what is reported for an invalid one. */

#include "conf-test.h"
#include "conf/ini.h"
#include "conf/utf8.h"

/* Writes its arguments to a stream: "[S]1 key=value 2 ". */
static int record_section(void *userdata, const char *section, const char *file, unsigned line,
                          ConfReport *report)
{
    (void)fprintf(userdata, "[%s]%u ", section, line);
    return 0;
}

static int record_entry(void *userdata, const char *section, const char *key, const char *value,
                        const char *file, unsigned line, ConfReport *report)
{
    (void)fprintf(userdata, "%s:%s=<%s>%u ", section, key, value, line);
    return 0;
}

static const ConfHandler recorder = {.example = "Match", .section = record_section, .entry = record_entry};

static void check_bytes(const char *text, size_t len, int expected_r, const char *expected_events,
                        const char *expected_report)
{
    /* A copy of exactly the text's size, so that the address sanitizer sees a read past its end. */
    CLEANUP_FREE char *exact = malloc(len ? len : 1), *events = NULL;
    ConfReport report = {0};
    size_t size = 0;
    FILE *f = open_memstream(&events, &size);
    int r;

    assert_non_null(f);
    assert_non_null(exact);
    memcpy(exact, text, len);
    r = conf_parse(exact, len, "f", &recorder, f, &report);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(r, expected_r);
    assert_string_equal(events, expected_events);
    assert_report(&report, expected_report);
}

static void check(const char *text, int expected_r, const char *expected_events, const char *expected_report)
{
    check_bytes(text, strlen(text), expected_r, expected_events, expected_report);
}

static void good(const char *text, const char *expected_events)
{
    check(text, 0, expected_events, "");
}

static void bad(const char *text, const char *expected_events, const char *expected_report)
{
    check(text, -EBADMSG, expected_events, expected_report);
}

static void test_empty(void **state)
{
    good("", "");
    good("\n\n", "");
    good("  \t ", "");
    good("# only\n; comments", "");
    good("\xef\xbb\xbf", "");
}

static void test_entries(void **state)
{
    good("[A]\nk=v\n", "[A]1 A:k=<v>2 ");
    good("[A]\nk=v", "[A]1 A:k=<v>2 ");
    good("[A]\n  k =  v w \t\n", "[A]1 A:k=<v w>2 ");
    good("[A]\nk=\n", "[A]1 A:k=<>2 ");
    good("[A]\nk\t=\n", "[A]1 A:k=<>2 ");
    good("[A]\nk=a=b\n", "[A]1 A:k=<a=b>2 ");
    good("[A]\nk=v # not a comment\n", "[A]1 A:k=<v # not a comment>2 ");
    good("[A]\n #c\n\t;c\nk=[v]\n", "[A]1 A:k=<[v]>4 ");
    good("[A]\nk=\xc3\xa9\n", "[A]1 A:k=<\xc3\xa9>2 ");
}

static void test_sections(void **state)
{
    good("[A]\n[B]\n[A]\n", "[A]1 [B]2 [A]3 ");
    good("  [ A b ]  \n", "[A b]1 ");
    good("[A]\nk=1\n[B]\nk=2\n", "[A]1 A:k=<1>2 [B]3 B:k=<2>4 ");
}

static void test_continuation(void **state)
{
    good("[A]\nk=a \\\n  b\\\n\tc\nl=d\n", "[A]1 A:k=<a  b c>2 A:l=<d>5 ");
    good("[A]\nk=a \\\n  # left out \\\n  b\n", "[A]1 A:k=<a  b>2 ");
    good("[A]\nk=a\\\n\nl=b\n", "[A]1 A:k=<a>2 A:l=<b>4 ");
    good("[A]\nk=a\\", "[A]1 A:k=<a>2 ");
    good("[A]\nk=a\\  \n b\n", "[A]1 A:k=<a b>2 ");
    good("[A]\n# a comment does not go on \\\nk=v\n", "[A]1 A:k=<v>3 ");
    good("[A\\\nB]\n", "[A B]1 ");
    good("[A]\nk=a\\b\n", "[A]1 A:k=<a\\b>2 ");
    bad("[A]\nk=a\\\\\n\n", "[A]1 ", "error f:2: a value cannot end in a backslash\n");
}

static void test_line_ends(void **state)
{
    good("[A]\r\nk=v\r\n\r\nl=a \\\r\n b\r\n", "[A]1 A:k=<v>2 A:l=<a  b>4 ");
    good("\xef\xbb\xbf[A]\r\nk=v", "[A]1 A:k=<v>2 ");
}

static void test_wrong_lines(void **state)
{
    bad("k=v\n[A]\nl=w\n", "[A]2 A:l=<w>3 ",
        "error f:1: expected a section such as [Match] before the first key, found: k=v\n");
    bad("[A]\nfoo\nk=v\n", "[A]1 A:k=<v>3 ", "error f:2: expected Key=value or [Section], found: foo\n");
    bad("[A]\n =v\n", "[A]1 ", "error f:2: expected a key before the equals sign\n");
    bad("[A\nk=v\n", "",
        "error f:1: expected a section such as [Match], found: [A\n"
        "error f:2: expected a section such as [Match] before the first key, found: k=v\n");
    bad("[A] x\n", "", "error f:1: expected a section such as [Match], found: [A] x\n");
    bad("[A]]\n", "", "error f:1: expected a section such as [Match], found: [A]]\n");
    bad("[[A]\n", "", "error f:1: expected a section such as [Match], found: [[A]\n");
    bad("[ ]\n", "", "error f:1: section without a name\n");
    bad("[", "", "error f:1: expected a section such as [Match], found: [\n");
}

/* There is one message, and the handler gets nothing: the good lines of a broken file cannot be trusted. */
static void test_not_text(void **state)
{
    check_bytes("[A]\nk=v\0w\n", 10, -EBADMSG, "", "error f:2: not a text file: it contains a NUL byte\n");
    check_bytes("\0", 1, -EBADMSG, "", "error f:1: not a text file: it contains a NUL byte\n");
    bad("[A]\nk=\x1b[31m\n", "", "error f:2: not a text file: it contains a control character\n");
    bad("[A]\rk=v\r", "", "error f:1: not a text file: it contains a control character\n");
    bad("[A]\nk=\x7f\n", "", "error f:2: not a text file: it contains a control character\n");
    bad("\x7f"
        "ELF\x02\x01\x01\n\xff\xfe",
        "", "error f:1: not a text file: it contains a control character\n");
    bad("[A]\nk=\xff\n", "", "error f:2: not UTF-8 text\n");
    bad("[A]\nk=\xc3", "", "error f:2: not UTF-8 text\n");
}

static void test_line_length(void **state)
{
    enum {
        LIMIT = CONF_LINE_MAX
    };
    CLEANUP_FREE char *text = malloc(3 * LIMIT);
    CLEANUP_FREE char *events = NULL;
    size_t n;

    assert_non_null(text);
    n = (size_t)snprintf(text, 16, "[A]\nk=");
    memset(text + n, 'x', LIMIT - 2);
    text[n + LIMIT - 2] = '\0';
    assert_true(asprintf(&events, "[A]1 A:k=<%s>2 ", text + n) > 0);
    good(text, events);

    /* One line more, without a newline. */
    memset(text + n, 'x', LIMIT - 1);
    text[n + LIMIT - 1] = '\0';
    bad(text, "", "error f:2: line is longer than 8192 bytes\n");

    /* Two short lines that are too long together; the line after them is valid. */
    memset(text + n, 'x', 2 * LIMIT - 4);
    memcpy(text + n + LIMIT - 4, "\\\n", 2);
    (void)snprintf(text + n + 2 * LIMIT - 4, LIMIT, "\nl=v\n");
    bad(text, "[A]1 A:l=<v>4 ", "error f:2: joined lines are longer than 8192 bytes\n");
}

/* The first thousand messages are kept, all are counted. */
static void test_many_errors(void **state)
{
    enum {
        LINES = 1500
    };
    char text[2 * LINES + 1];
    ConfReport report = {0};
    FILE *f = fopen("/dev/null", "we");

    assert_non_null(f);
    for (size_t i = 0; i < LINES; i++)
        memcpy(text + 2 * i, "x\n", 2);
    assert_int_equal(conf_parse(text, sizeof(text) - 1, "f", &recorder, f, &report), -EBADMSG);
    assert_int_equal(report.n_errors, LINES);
    assert_int_equal(report.n_messages, CONF_MESSAGES_MAX);
    conf_report_done(&report);
    assert_int_equal(fclose(f), 0);
}

/* Warnings, however many, hide no error. */
static void test_error_after_many_warnings(void **state)
{
    ConfReport report = {0};

    for (unsigned i = 1; i <= 2 * CONF_MESSAGES_MAX; i++)
        conf_report_add(&report, CONF_SEVERITY_WARNING, "f", i, "w");
    conf_report_add(&report, CONF_SEVERITY_ERROR, "f", 9, "e");
    assert_int_equal(report.n_warnings, 2 * CONF_MESSAGES_MAX);
    assert_int_equal(report.n_errors, 1);
    assert_int_equal(report.n_messages, CONF_MESSAGES_MAX + 1);
    assert_string_equal(report.messages[CONF_MESSAGES_MAX].text, "e");
    conf_report_done(&report);
}

static int fail_section(void *userdata, const char *section, const char *file, unsigned line,
                        ConfReport *report)
{
    return -ENOMEM;
}

static int complain_entry(void *userdata, const char *section, const char *key, const char *value,
                          const char *file, unsigned line, ConfReport *report)
{
    conf_report_add(report, CONF_SEVERITY_ERROR, file, line, "no %s", key);
    return 0;
}

static void test_handler_results(void **state)
{
    static const ConfHandler failing = {.example = "Match", .section = fail_section, .entry = record_entry};
    static const ConfHandler complaining = {
        .example = "Match", .section = record_section, .entry = complain_entry};
    ConfReport report = {0};
    FILE *f = fopen("/dev/null", "we");

    assert_non_null(f);
    assert_int_equal(conf_parse("[A]\nk=v", 7, "f", &failing, f, &report), -ENOMEM);
    assert_report(&report, "");
    assert_int_equal(conf_parse("[A]\nk=v", 7, "f", &complaining, f, &report), -EBADMSG);
    /* Earlier errors in a report do not make a good text bad. */
    assert_int_equal(conf_parse("[A]\nk=v", 7, "g", &recorder, f, &report), 0);
    assert_report(&report, "error f:2: no k\n");
    assert_int_equal(fclose(f), 0);
}

static void test_messages_are_printable(void **state)
{
    ConfReport report = {0};
    char longest[2000];

    conf_report_add(&report, CONF_SEVERITY_WARNING, "a\n\x1b[1mb\xff", 3, "x\x07\ty \xc2\x9b \xc3\xa9 %s",
                    "\x7f");
    conf_report_add(&report, CONF_SEVERITY_ERROR, "f", 0, "whole file");
    memset(longest, 'y', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    conf_report_add(&report, CONF_SEVERITY_ERROR, "f", 1, "%s", longest);
    assert_int_equal(report.n_warnings, 1);
    assert_int_equal(report.n_errors, 2);
    assert_true(strlen(report.messages[2].text) < 500);
    assert_non_null(strstr(report.messages[2].text, "yyy..."));
    report.messages[2].text[1] = '\0';
    assert_report(&report, "warning a\\x0a\\x1b[1mb\\xff:3: x\\x07\\x09y \\xc2\\x9b \xc3\xa9 \\x7f\n"
                           "error f: whole file\n"
                           "error f:1: y\n");
}

static void test_utf8(void **state)
{
    static const struct {
        const char *s;
        size_t n;
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xc1\xbf", 0}, /* overlong */
        {"\xe0\xa0\x80", 3},
        {"\xe0\x9f\xbf", 0},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0}, /* surrogate */
        {"\xf0\x90\x80\x80", 4},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xf8\x88\x80\x80\x80", 0},
        {"\x80", 0},
        {"\xc3", 0},
        {"\xe2\x82", 0},
        {"\xe2\x28\xa1", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(utf8_length(cases[i].s, strlen(cases[i].s)), cases[i].n);
    assert_int_equal(utf8_length("", 0), 0);
    assert_int_equal(utf8_length("\0", 1), 1);
}

/* Bad files. Each gives one message, and none makes the reader wait. */
static void test_bad_files(void **state)
{
    char *tree = test_tree_new();
    CLEANUP_FREE char *big = calloc(1, 10 << 20);
    ConfReport report = {0};
    FILE *f = fopen("/dev/null", "we");
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"missing", "cannot be read: No such file or directory"},
        {"dangling", "cannot be read: No such file or directory"},
        {"circle", "cannot be read: Too many levels of symbolic links"},
        {"directory", "cannot be read: it is a directory"},
        {"fifo", "cannot be read: it is not a regular file"},
        {"null", "cannot be read: it is not a regular file"},
        {"big", "cannot be read: it is larger than 1 MB, the limit for configuration files"},
    };

    assert_non_null(f);
    assert_non_null(big);
    assert_int_equal(symlink("nowhere", test_path(tree, "dangling")), 0);
    assert_int_equal(symlink("circle", test_path(tree, "circle")), 0);
    assert_int_equal(symlink("/dev/null", test_path(tree, "null")), 0);
    assert_int_equal(mkfifo(test_path(tree, "fifo"), 0644), 0);
    (void)test_mkdir(tree, "directory");
    memset(big, '#', 10 << 20);
    (void)test_write_bytes(tree, "big", big, 10 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *line = NULL;
        const char *path = test_path(tree, cases[i].name);

        assert_true(asprintf(&line, "error %s: %s\n", path, cases[i].text) > 0);
        assert_int_equal(conf_parse_file(path, &recorder, f, &report), -EBADMSG);
        assert_report(&report, line);
    }
    assert_int_equal(fclose(f), 0);
    test_tree_remove(tree);
}

static void test_good_files(void **state)
{
    char *tree = test_tree_new();
    CLEANUP_FREE char *events = NULL, *largest = malloc(CONF_FILE_MAX);
    ConfReport report = {0};
    size_t size = 0;
    FILE *f = open_memstream(&events, &size);

    assert_non_null(f);
    assert_non_null(largest);
    /* The largest file that is allowed, all in short comments. */
    for (size_t i = 0; i < CONF_FILE_MAX; i++)
        largest[i] = i % 64 == 63 ? '\n' : '#';
    assert_int_equal(conf_parse_file(test_write(tree, "a", "[A]\nk=v\n"), &recorder, f, &report), 0);
    assert_int_equal(conf_parse_file(test_write(tree, "empty", ""), &recorder, f, &report), 0);
    assert_int_equal(
        conf_parse_file(test_write_bytes(tree, "largest", largest, CONF_FILE_MAX), &recorder, f, &report), 0);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(events, "[A]1 A:k=<v>2 ");
    assert_report(&report, "");
    test_tree_remove(tree);
}

TEST_MAIN(NULL, NULL, test_empty, test_entries, test_sections, test_continuation, test_line_ends,
          test_wrong_lines, test_not_text, test_line_length, test_many_errors, test_error_after_many_warnings,
          test_handler_results, test_messages_are_printable, test_utf8, test_bad_files, test_good_files)
