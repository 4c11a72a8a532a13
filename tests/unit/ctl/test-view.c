/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Numbers as an administrator reads them. */

#include "ctl-test.h"
#include "ctl/view.h"

static void check_member(const char *json, const char *key, ViewKind kind, const char *expected)
{
    CLEANUP_JSON json_object *object = test_json(json);
    CLEANUP_FREE char *text = view_member(object, key, kind);

    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void test_members(void **state)
{
    check_member("{'a':'x'}", "a", VIEW_TEXT, "x");
    check_member("{'a':''}", "a", VIEW_TEXT, "-");
    check_member("{}", "a", VIEW_TEXT, "-");
    check_member("{}", "a", VIEW_BYTES, "-");
    check_member("{'a':0}", "a", VIEW_NUMBER, "0");
    check_member("{'a':-1}", "a", VIEW_NUMBER, "-");
    check_member("{'a':833}", "a", VIEW_PERMILLE, "83.3 %");
    check_member("{'a':1750}", "a", VIEW_CPUS, "1.75");
    check_member("{'a':true}", "a", VIEW_BOOL, "yes");
    check_member("{'a':false}", "a", VIEW_BOOL, "no");
    check_member("{'a':2048}", "a", VIEW_BYTES, "2.0 KiB");
    check_member("{'a':2048}", "a", VIEW_SIZE, "2.0 KiB");
    check_member("{'a':0}", "a", VIEW_SIZE, "-");
    check_member("{'a':2000000}", "a", VIEW_SPAN, "2 s");
    check_member("{'a':[]}", "a", VIEW_MEMORY, "-");
    check_member("{'a':[{'node':0,'bytes':1024},{'node':4,'bytes':2048}]}", "a", VIEW_MEMORY,
                 "0: 1.0 KiB, 4: 2.0 KiB");
}

/* Numbers end below each other. */
static void test_numbers_to_the_right(void **state)
{
    static const struct {
        ViewKind kind;
        const char *expected;
    } cases[] = {
        {VIEW_TEXT, "1        x\n1048576  x\n"},
        {VIEW_NUMBER, "      1  x\n1048576  x\n"},
        {VIEW_SIZE, "    1 B  x\n1.0 MiB  x\n"},
        {VIEW_BYTES, "    1 B  x\n1.0 MiB  x\n"},
    };
    CLEANUP_JSON json_object *list = test_json("[{'a':1,'b':'x'},{'a':1048576,'b':'x'}]");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const ViewColumn columns[] = {{"A", "a", cases[i].kind}, {"B", "b", VIEW_TEXT}};
        CLEANUP_FREE char *text = NULL;
        size_t size;
        FILE *out = stdout, *file = open_memstream(&text, &size);
        CtlExit code;

        assert_non_null(file);
        stdout = file;
        code = view_print_table(&(CtlOptions){0}, list, columns, ARRAY_SIZE(columns));
        stdout = out;
        assert_int_equal(fclose(file), 0);
        assert_int_equal(code, CTL_EXIT_OK);
        assert_string_equal(text, cases[i].expected);
    }
}

static void test_rest(void **state)
{
    CLEANUP_FREE char *text = NULL;
    size_t size;
    FILE *out = stdout, *file = open_memstream(&text, &size);

    assert_non_null(file);
    stdout = file;
    view_rest(0, 0, "");
    view_rest(1000, 1000, "");
    view_rest(1000, 1001, "");
    view_rest(64, 70, "; numaplacectl tasks lists them");
    stdout = out;
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "  ... 1001 in all\n  ... 70 in all; numaplacectl tasks lists them\n");
}

static void test_getters(void **state)
{
    CLEANUP_JSON json_object *object = test_json("{'s':'x','n':7,'b':true,'l':[1,2]}");

    assert_string_equal(view_string(object, "s"), "x");
    assert_string_equal(view_string(object, "none"), "");
    assert_int_equal(view_number(object, "n", 1), 7);
    assert_int_equal(view_number(object, "none", 1), 1);
    assert_true(view_bool(object, "b"));
    assert_false(view_bool(object, "none"));
    assert_int_equal(view_length(view_list(object, "l")), 2);
    assert_null(view_list(object, "n"));
    assert_int_equal(view_length(NULL), 0);
}

static void test_text(void **state)
{
    CLEANUP(view_text_done) ViewText text = {0};

    view_text_add(&text, "%s", "");
    assert_string_equal(text.text, "");
    for (int i = 0; i < 1000; i++)
        view_text_add(&text, "%d,", i % 10);
    assert_false(text.failed);
    assert_int_equal(text.len, 2000);
    assert_int_equal(strlen(text.text), 2000);
    assert_memory_equal(text.text + 1990, "5,6,7,8,9,", 10);
}

TEST_MAIN(NULL, NULL, test_members, test_getters, test_text, test_rest, test_numbers_to_the_right)
