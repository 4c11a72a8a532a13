/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl-test.h"
#include "ctl/style.h"
#include "ctl/table.h"

static const TableColumn columns[] = {{"NAME", false}, {"RUN", true}, {"NOTE", false}};

static Table *make_table(void)
{
    Table *table;

    assert_int_equal(table_new(columns, ARRAY_SIZE(columns), &table), 0);
    return table;
}

static void check_output(const Table *table, bool legend, bool colour, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    assert_int_equal(table_print(table, file, legend, colour), 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void test_alignment(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table();

    table_add(table, NULL, "a");
    table_addf(table, NULL, "%d", 5);
    table_add(table, NULL, "short");
    table_add(table, NULL, "longer");
    table_addf(table, NULL, "%d", 12345);
    table_add(table, NULL, NULL);
    check_output(table, true, false,
                 "NAME      RUN  NOTE\n"
                 "a           5  short\n"
                 "longer  12345  -\n");
    check_output(table, false, false,
                 "a           5  short\n"
                 "longer  12345  -\n");
}

static void test_wide_characters(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table();

    test_utf8_locale();
    table_add(table, NULL, "\xe6\x97\xa5\xe6\x9c\xac"); /* four columns */
    table_add(table, NULL, "1");
    table_add(table, NULL, "x");
    table_add(table, NULL, "abcde");
    table_add(table, NULL, "1");
    table_add(table, NULL, "x");
    check_output(table, false, false,
                 "\xe6\x97\xa5\xe6\x9c\xac   1  x\n"
                 "abcde  1  x\n");
}

static void test_colour(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table();

    table_add(table, STYLE_BAD, "a");
    table_add(table, NULL, "1");
    table_add(table, NULL, "x");
    check_output(table, false, true, STYLE_BAD "a" STYLE_RESET "  1  x\n");
    check_output(table, false, false, "a  1  x\n");
    check_output(table, true, true,
                 STYLE_BOLD "NAME" STYLE_RESET "  " STYLE_BOLD "RUN" STYLE_RESET "  " STYLE_BOLD
                            "NOTE" STYLE_RESET "\n" STYLE_BAD "a" STYLE_RESET "       1  x\n");
}

/* A process that calls itself an escape sequence or a new row stays in its cell. */
static void test_injection(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table();

    table_add(table, NULL, "\033[31mx\n1 root");
    table_add(table, NULL, "1");
    table_add(table, NULL, "x");
    check_output(table, false, true, "\\x1b[31mx\\n1 root  1  x\n");
}

static void test_empty(void **state)
{
    CLEANUP(table_free_p) Table *table = make_table();

    check_output(table, false, false, "");
    check_output(table, true, false, "NAME  RUN  NOTE\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_wide_characters),
        cmocka_unit_test(test_colour),    cmocka_unit_test(test_injection),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests_name("ctl/table", tests, NULL, NULL);
}
