/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl-test.h"
#include "ctl/terminal/style.h"
#include "ctl/terminal/table.h"

static const TableColumn columns[] = {
    {"NAME", SCOLS_FL_TRUNC}, {"RUN", SCOLS_FL_RIGHT}, {"NOTE", SCOLS_FL_WRAP}};

static const CtlOptions plain = {0}, titles = {.legend = true}, colours = {.colour = true},
                        titles_and_colours = {.legend = true, .colour = true};

static Table *make_table(const CtlOptions *options)
{
    Table *table;

    assert_int_equal(table_new(options, columns, ARRAY_SIZE(columns), &table), 0);
    return table;
}

static void check_output(Table *table, const char *expected)
{
    CLEANUP_FREE char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    assert_int_equal(table_print(table, file), 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
}

static void add_row(Table *table, const char *name, const char *run, const char *note)
{
    table_add(table, NULL, name);
    table_add(table, NULL, run);
    table_add(table, NULL, note);
}

static void test_alignment(void **state)
{
    const CtlOptions *const options[] = {&titles, &plain};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        CLEANUP(table_free_p) Table *table = make_table(options[i]);

        table_add(table, NULL, "a");
        table_addf(table, NULL, "%d", 5);
        table_add(table, NULL, "short");
        table_add(table, NULL, "longer");
        table_addf(table, NULL, "%d", 12345);
        table_add(table, NULL, NULL);
        check_output(table, i == 0 ? "NAME      RUN  NOTE\n"
                                     "a           5  short\n"
                                     "longer  12345  -\n"
                                   : "a           5  short\n"
                                     "longer  12345  -\n");
    }
}

/* Titles that are not drawn take no space. */
static void test_no_legend(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table(&plain);

    add_row(table, "a", "1", "x");
    check_output(table, "a  1  x\n");
}

static void test_wide_characters(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table(&plain);

    test_utf8_locale();
    add_row(table, "\xe6\x97\xa5\xe6\x9c\xac", "1", "x"); /* four columns */
    add_row(table, "abcde", "1", "x");
    add_row(table, "e\xcc\x81\xc3\xaf", "1", "x"); /* two: the accent combines with its letter */
    check_output(table, "\xe6\x97\xa5\xe6\x9c\xac   1  x\n"
                        "abcde  1  x\n"
                        "e\xcc\x81\xc3\xaf     1  x\n");
}

/* In the C locale these bytes are not characters: escaped text is as wide as its escapes. */
static void test_c_locale(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table(&plain);

    assert_non_null(setlocale(LC_CTYPE, "C"));
    add_row(table, "\xc3\xaf", "1", "x");
    add_row(table, "abcde", "1", "x");
    check_output(table, "\\xc3\\xaf  1  x\n"
                        "abcde     1  x\n");
}

static void test_cut(void **state)
{
    static const struct {
        CtlOptions options;
        const char *expected;
    } cases[] = {
        {{.legend = true, .columns = 18}, /* no terminal */
         "NAME          RUN  NOTE\n"
         "ab\xe6\x97\xa5\xe6\x9c\xac xyz  12345  x\n"
         "b               6  1\n"},
        {{.legend = true, .terminal = true, .columns = 23},
         "NAME          RUN  NOTE\n"
         "ab\xe6\x97\xa5\xe6\x9c\xac xyz  12345  x\n"
         "b               6  1\n"},
        {{.legend = true, .terminal = true, .columns = 18},
         "NAME     RUN  NOTE\n"
         "ab\xe6\x97\xa5   12345  x\n" /* no half of a wide character */
         "b          6  1\n"},
    };

    test_utf8_locale();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(table_free_p) Table *table = make_table(&cases[i].options);

        add_row(table, "ab\xe6\x97\xa5\xe6\x9c\xac xyz", "12345", "x");
        add_row(table, "b", "6", "1");
        check_output(table, cases[i].expected);
    }
}

/* A set of CPUs is wrapped: cut, it would read as another set. */
static void test_wrapped(void **state)
{
    const CtlOptions options = {.legend = true, .terminal = true, .columns = 19};
    CLEANUP(table_free_p) Table *table = make_table(&options);

    add_row(table, "a", "12345", "0-7,16-23");
    check_output(table, "NAME    RUN  NOTE\n"
                        "a     12345  0-7,16\n"
                        "             -23\n");
}

/* Numbers are not cut either: columns that do not fit are left out as a whole. */
static void test_left_out(void **state)
{
    static const struct {
        CtlOptions options;
        const char *expected;
    } cases[] = {
        {{.legend = true, .terminal = true, .columns = 14},
         "NAME      RUN\n"
         "abcdef  12345\n"
         "(columns that do not fit: 1)\n"},
        {{.legend = true, .terminal = true, .columns = 1},
         "NAME\n"
         "abcd\n"
         "(columns that do not fit: 2)\n"},
        {{.terminal = true, .columns = 9}, "ab  12345\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(table_free_p) Table *table = make_table(&cases[i].options);

        add_row(table, "abcdef", "12345", "x");
        check_output(table, cases[i].expected);
    }
}

static void test_colour(void **state)
{
    static const struct {
        const CtlOptions *options;
        const char *expected;
    } cases[] = {
        {&colours, STYLE_BAD "a" STYLE_RESET "  1  x\n"},
        {&plain, "a  1  x\n"},
        {&titles_and_colours, STYLE_BOLD "NAME" STYLE_RESET "  " STYLE_BOLD "RUN" STYLE_RESET "  " STYLE_BOLD
                                         "NOTE" STYLE_RESET "\n" STYLE_BAD "a   " STYLE_RESET "    1  x\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(table_free_p) Table *table = make_table(cases[i].options);

        table_add(table, STYLE_BAD, "a");
        table_add(table, NULL, "1");
        table_add(table, NULL, "x");
        check_output(table, cases[i].expected);
    }
}

/* A process whose name is an escape sequence or a new row stays in its cell. */
static void test_injection(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table(&colours);

    table_add(table, NULL, "\033[31mx\n1 root");
    table_add(table, NULL, "1");
    table_add(table, NULL, "x");
    check_output(table, "\\x1b[31mx\\n1 root  1  x\n");
}

/* Text that looks like an escape is not changed: unit names contain such text. */
static void test_backslashes(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table(&plain);

    add_row(table, "dev-sda\\x2d1.swap", "1", "x");
    check_output(table, "dev-sda\\x2d1.swap  1  x\n");
}

static void test_empty(void **state)
{
    CLEANUP(table_free_p) Table *without = make_table(&plain), *with = make_table(&titles);

    check_output(without, "");
    check_output(with, "NAME  RUN  NOTE\n");
}

TEST_MAIN(NULL, NULL, test_alignment, test_no_legend, test_wide_characters, test_c_locale, test_cut,
          test_wrapped, test_left_out, test_colour, test_injection, test_backslashes, test_empty)
