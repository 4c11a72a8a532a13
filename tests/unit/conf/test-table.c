/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Key tables: every parser with values at and past its limits, resetting, unknown keys, and printing. */

#include "conf-test.h"
#include "conf/table.h"

#include <hwloc/bitmap.h>

typedef struct Sample {
    bool flag;
    uint32_t number;
    uint64_t span;
    uint64_t bytes;
    uint32_t share;
    char *text;
    int choice;
    hwloc_bitmap_t list;
} Sample;

static const char *const names[] = {"red", "green", NULL};
static const ConfRange range_small = {1, 10};
static const ConfRange range_span = {1000, 60000000};
static const ConfRange range_list = {1, 7};

static const ConfKey table[] = {
    {"A", "Flag", conf_parse_bool, NULL, offsetof(Sample, flag), "yes", "yes or no", NULL},
    {"A", "Number", conf_parse_u32, &range_small, offsetof(Sample, number), "3", "a number from 1 to 10",
     NULL},
    {"A", "Span", conf_parse_span, &range_span, offsetof(Sample, span), "100ms", "a time span", NULL},
    {"A", "Bytes", conf_parse_bytes, NULL, offsetof(Sample, bytes), "2M", "a size", NULL},
    {"A", "Share", conf_parse_permille, &range_small, offsetof(Sample, share), "1%", "a share", NULL},
    {"B", "Text", conf_parse_string, &range_small, offsetof(Sample, text), "none", "1 to 10 bytes", NULL},
    {"B", "Choice", conf_parse_enum, names, offsetof(Sample, choice), "green", "red or green", NULL},
    {"B", "List", conf_parse_list, &range_list, offsetof(Sample, list), "", "a list of numbers up to 7",
     NULL},
};

static int setup(void **state)
{
    Sample *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    assert_int_equal(conf_table_defaults(table, ARRAY_SIZE(table), s), 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Sample *s = *state;

    free(s->text);
    hwloc_bitmap_free(s->list);
    return 0;
}

static void apply(Sample *s, const char *section, const char *name, const char *value, int expected_r,
                  const char *expected_report)
{
    ConfReport report = {0};

    assert_int_equal(conf_table_apply(table, ARRAY_SIZE(table), s, section, name, value, "f", 9, &report),
                     expected_r);
    assert_report(&report, expected_report);
}

static void test_defaults(void **state)
{
    Sample *s = *state;

    assert_true(s->flag);
    assert_int_equal(s->number, 3);
    assert_int_equal(s->span, 100000);
    assert_int_equal(s->bytes, 2 << 20);
    assert_int_equal(s->share, 10);
    assert_string_equal(s->text, "none");
    assert_int_equal(s->choice, 1);
    assert_null(s->list);
    /* Defaults again, over a valid object: what it owned must not leak. */
    apply(s, "B", "List", "1-3", 0, "");
    assert_int_equal(conf_table_defaults(table, ARRAY_SIZE(table), s), 0);
    assert_null(s->list);
}

static void test_good_values(void **state)
{
    Sample *s = *state;

    apply(s, "A", "Flag", "off", 0, "");
    assert_false(s->flag);
    apply(s, "A", "Number", "10", 0, "");
    assert_int_equal(s->number, 10);
    apply(s, "A", "Span", "1min", 0, "");
    assert_int_equal(s->span, 60000000);
    apply(s, "A", "Bytes", "1.5K", 0, "");
    assert_int_equal(s->bytes, 1536);
    apply(s, "A", "Share", "0.5%", 0, "");
    assert_int_equal(s->share, 5);
    apply(s, "B", "Text", "some words", 0, "");
    assert_string_equal(s->text, "some words");
    apply(s, "B", "Choice", "red", 0, "");
    assert_int_equal(s->choice, 0);
    apply(s, "B", "List", "1-2,7", 0, "");
    assert_int_equal(hwloc_bitmap_weight(s->list), 3);
    apply(s, "B", "List", "", 0, "");
    assert_null(s->list);
}

/* A bad value gives one line that says what was expected, and the field keeps its value. */
static void test_bad_values(void **state)
{
    static const struct {
        const char *section, *name, *value, *expected;
    } cases[] = {
        {"A", "Flag", "maybe", "yes or no"},
        {"A", "Number", "0", "a number from 1 to 10"},
        {"A", "Number", "11", "a number from 1 to 10"},
        {"A", "Number", "-1", "a number from 1 to 10"},
        {"A", "Number", "4294967296", "a number from 1 to 10"},
        {"A", "Number", "99999999999999999999999", "a number from 1 to 10"},
        {"A", "Number", "3 4", "a number from 1 to 10"},
        {"A", "Number", "0x3", "a number from 1 to 10"},
        {"A", "Span", "999us", "a time span"},
        {"A", "Span", "61s", "a time span"},
        {"A", "Span", "5 parsecs", "a time span"},
        {"A", "Span", "-5s", "a time span"},
        {"A", "Span", "99999999999999d", "a time span"},
        {"A", "Bytes", "12Q", "a size"},
        {"A", "Bytes", "99999999999999T", "a size"},
        {"A", "Share", "5", "a share"},
        {"A", "Share", "50%", "a share"},
        {"B", "Text", "eleven more", "1 to 10 bytes"},
        {"B", "Choice", "RED", "red or green"},
        {"B", "Choice", "red green", "red or green"},
        {"B", "List", "0,3", "a list of numbers up to 7"},
        {"B", "List", "8", "a list of numbers up to 7"},
        {"B", "List", "3-1", "a list of numbers up to 7"},
        {"B", "List", "all", "a list of numbers up to 7"},
    };
    Sample *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *line = NULL;

        assert_true(asprintf(&line, "error f:9: %s= takes %s, not: %s\n", cases[i].name, cases[i].expected,
                             cases[i].value) > 0);
        apply(s, cases[i].section, cases[i].name, cases[i].value, -EBADMSG, line);
    }
    test_defaults(state);
}

static void test_empty_resets(void **state)
{
    Sample *s = *state;

    apply(s, "A", "Number", "7", 0, "");
    apply(s, "A", "Number", "", 0, "");
    assert_int_equal(s->number, 3);
    apply(s, "B", "Text", "x", 0, "");
    apply(s, "B", "Text", "", 0, "");
    assert_string_equal(s->text, "none");
}

static void test_unknown(void **state)
{
    Sample *s = *state;

    apply(s, "C", "Flag", "no", 0, "warning f:9: ignoring a key of unknown section [C]\n");
    apply(s, "A", "Foo", "no", 0, "warning f:9: ignoring unknown key in [A]: Foo=\n");
    apply(s, "A", "flag", "no", 0, "warning f:9: ignoring unknown key in [A] (is [A] Flag= meant?): flag=\n");
    apply(s, "A", "Choice", "red", 0,
          "warning f:9: ignoring unknown key in [A] (is [B] Choice= meant?): Choice=\n");
    assert_true(s->flag);
    assert_int_equal(s->choice, 1);
    assert_true(conf_table_has_section(table, ARRAY_SIZE(table), "B"));
    assert_false(conf_table_has_section(table, ARRAY_SIZE(table), "b"));
    assert_null(conf_table_find(table, ARRAY_SIZE(table), "A", "Choice"));
    assert_ptr_equal(conf_table_find(table, ARRAY_SIZE(table), "B", "Choice"), &table[6]);
}

/* Every value is printed in the form its parser reads, and exactly. */
static void test_format(void **state)
{
    static const struct {
        size_t key;
        const char *value, *printed;
    } cases[] = {
        {0, "1", "yes"},           {0, "off", "no"},           {1, "007", "7"},
        {2, "59.5s", "59s 500ms"}, {2, "1500us", "1ms 500us"}, {3, "0", "0"},
        {3, "1023", "1023"},       {3, "1024", "1K"},          {3, "1025", "1025"},
        {3, "3221225472", "3G"},   {3, "4096T", "4096T"},      {4, "1%", "1%"},
        {4, "0.1%", "0.1%"},       {4, "7permille", "0.7%"},   {5, "a  b", "a  b"},
        {6, "red", "red"},         {7, "7,1,2,3", "1-3,7"},
    };
    Sample *s = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const ConfKey *key = &table[cases[i].key];
        CLEANUP_FREE char *text = NULL;

        apply(s, key->section, key->name, cases[i].value, 0, "");
        assert_int_equal(conf_key_format(key, s, &text), 0);
        assert_string_equal(text, cases[i].printed);
        apply(s, key->section, key->name, text, 0, "");
    }
}

static int parse_other(const char *value, void *field, const void *arg)
{
    return 0;
}

static void test_format_other(void **state)
{
    static const ConfKey other = {"A", "X", parse_other, NULL, 0, "", "", NULL};
    char *text = NULL;

    assert_int_equal(conf_key_format(&other, *state, &text), -EOPNOTSUPP);
    assert_null(text);
}

TEST_MAIN(setup, teardown, test_defaults, test_good_values, test_bad_values, test_empty_resets, test_unknown,
          test_format, test_format_other)
