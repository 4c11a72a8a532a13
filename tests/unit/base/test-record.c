/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/record/record.h"
#include "unit-test.h"

static const char *const color_names[] = {"red", "green", NULL};

typedef enum Color {
    COLOR_RED,
    COLOR_GREEN
} Color;

typedef struct Thing {
    bool flag;
    uint8_t color8;
    Color color;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    int32_t index;
    char chars[4];
    char *text;
    const char *string;
    CpuMask mask;
    RecordNumbers numbers;
    RecordNumbers numbers64;
} Thing;

static const RecordField fields[] = {
    {"flag", RECORD_BOOL, offsetof(Thing, flag)},
    {"color8", RECORD_ENUM8, offsetof(Thing, color8), false, 0, color_names},
    {"color", RECORD_ENUM, offsetof(Thing, color), false, 0, color_names},
    {"u16", RECORD_U16, offsetof(Thing, u16)},
    {"u32", RECORD_U32, offsetof(Thing, u32), true},
    {"u64", RECORD_U64, offsetof(Thing, u64)},
    {"index", RECORD_INDEX, offsetof(Thing, index)},
    {"chars", RECORD_CHARS, offsetof(Thing, chars), false, 4},
    {"text", RECORD_TEXT, offsetof(Thing, text)},
    {"string", RECORD_STRING, offsetof(Thing, string)},
    {"mask", RECORD_MASK, offsetof(Thing, mask)},
    {"numbers", RECORD_NUMBERS, offsetof(Thing, numbers)},
    {"numbers64", RECORD_NUMBERS64, offsetof(Thing, numbers64)},
};

static void thing_done(Thing *thing)
{
    free(thing->text);
    record_numbers_done(&thing->numbers);
    record_numbers_done(&thing->numbers64);
}

static char *write_thing(const Thing *thing)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    record_write(out, "thing", fields, ARRAY_SIZE(fields), thing);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Reads the only line of `text`; returns what record_read() returned, and a copy of its error. */
static int read_thing(InternPool *pool, const char *text, Thing *thing, char **ret_error)
{
    CLEANUP(record_reader_done) RecordReader reader = {0};
    int r;

    assert_int_equal(record_reader_init(&reader, text, strlen(text)), 0);
    reader.pool = pool;
    assert_int_equal(record_next(&reader), 0);
    assert_true(record_is(&reader, "thing"));
    assert_false(record_is(&reader, "thin"));
    r = record_read(&reader, fields, ARRAY_SIZE(fields), thing);
    *ret_error = TAKE_PTR(reader.error);
    if (r == 0) {
        assert_int_equal(record_next(&reader), 0);
        assert_null(reader.kind);
        assert_false(record_is(&reader, "thing"));
    }
    return r;
}

#define FULL                                                                                    \
    "thing flag=yes color8=green color=green u16=65535 u32=4294967295 "                         \
    "u64=18446744073709551615 index=-1 chars=\"a \\xff\" text=\"\\x22\\x5c\" string=\"\\x0a\" " \
    "mask=0-3,7,9-10 numbers=10,0,21 numbers64=0,18446744073709551615\n"
#define EMPTY                                                                                  \
    "thing flag=no color8=red color=red u16=0 u32=0 u64=0 index=0 chars=\"\" text=- string=- " \
    "mask=- numbers=1 numbers64=-\n"

static void test_round_trip(void **state)
{
    const char *const texts[] = {FULL, EMPTY};
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_FREE char *error = NULL, *again = NULL;
        CLEANUP(thing_done) Thing thing = {.flag = true, .string = "old", .mask = NULL};

        if (read_thing(pool, texts[i], &thing, &error) < 0)
            fail_msg("%s", error);
        again = write_thing(&thing);
        assert_string_equal(again, texts[i]);
    }
}

static void test_values(void **state)
{
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();
    CLEANUP_FREE char *error = NULL;
    CLEANUP(thing_done) Thing thing = {.u16 = 7, .text = strdup("old")};

    assert_int_equal(
        read_thing(pool, "thing   u32=1  mask=empty text=\"new\" string=\"s\"  ", &thing, &error), 0);
    assert_int_equal(thing.u16, 7); /* not given: unchanged */
    assert_int_equal(thing.u32, 1);
    assert_string_equal(thing.text, "new");
    assert_true(hwloc_bitmap_iszero(thing.mask));
    assert_ptr_equal(thing.string, intern_string(pool, "s"));
    assert_true(intern_has_string(pool, thing.string));
    assert_true(intern_has_mask(pool, thing.mask));
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"thing", "line 1: expected u32="},
        {"thing u32", "line 1: expected key=value, not \"u32\""},
        {"thing =1", "line 1: expected key=value, not \"=1\""},
        {"thing u32=1 u32=1", "line 1: expected u32= at most once per line"},
        {"thing u33=1", "line 1: expected a key of \"thing\", not u33="},
        {"thing u32=0x1", "line 1: expected u32= a number up to 4294967295, not \"0x1\""},
        {"thing u32=\"1\"", "line 1: expected u32= a value without quotes"},
        {"thing u32=-", "line 1: expected u32= a number up to 4294967295, not \"-\""},
        {"thing u64=18446744073709551616",
         "line 1: expected u64= a number up to 18446744073709551615, not \"18446744073709551616\""},
        {"thing index=-2", "line 1: expected index= a number from -1 to 2147483647, not \"-2\""},
        {"thing flag=maybe", "line 1: expected flag=yes or flag=no, not \"maybe\""},
        {"thing color=blue", "line 1: expected color= a name such as red, not \"blue\""},
        {"thing chars=\"abcd\"", "line 1: expected chars= at most 3 bytes, not 4"},
        {"thing chars=-", "line 1: expected chars= a string in double quotes"},
        {"thing chars=\"a", "line 1: expected chars=\"...\", with special characters written as \\xNN"},
        {"thing chars=\"\\x\"", "line 1: expected chars=\"...\", with special characters written as \\xNN"},
        {"thing chars=\"\\xg0\"", "line 1: expected chars=\"...\", with special characters written as \\xNN"},
        {"thing chars=\"\\x00\"", "line 1: expected chars=\"...\", with special characters written as \\xNN"},
        {"thing numbers=", "line 1: expected numbers= at most 4096 comma-separated numbers, not \"\""},
        {"thing numbers=1,,2", "line 1: expected numbers= at most 4096 comma-separated numbers, not \"\""},
        {"thing numbers=4294967296",
         "line 1: expected numbers= at most 4096 comma-separated numbers, not \"4294967296\""},
        {"thing numbers64=1,-",
         "line 1: expected numbers64= at most 4096 comma-separated numbers, not \"-\""},
        {"thing mask=3-1",
         "line 1: expected mask= a list such as 0-3,8 of numbers up to 65535, or empty, not \"3-1\""},
    };
    CLEANUP(intern_pool_free_p) InternPool *pool = intern_pool_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *error = NULL;
        CLEANUP(thing_done) Thing thing = {0};

        assert_int_equal(read_thing(pool, cases[i].text, &thing, &error), -EINVAL);
        assert_string_equal(error, cases[i].error);
    }
}

static void test_lines(void **state)
{
    static const char text[] = "\n# comment\n  a\n\n \nb c=1\n";
    CLEANUP(record_reader_done) RecordReader reader = {0};

    assert_int_equal(record_reader_init(&reader, text, strlen(text)), 0);
    assert_int_equal(record_next(&reader), 0);
    assert_string_equal(reader.kind, "a");
    assert_int_equal(reader.line, 3);
    assert_int_equal(record_next(&reader), 0);
    assert_string_equal(reader.kind, "b");
    assert_int_equal(reader.line, 6);
    assert_int_equal(record_expected(&reader, "%d things", 2), -EINVAL);
    assert_string_equal(reader.error, "line 6: expected 2 things");
    assert_int_equal(record_next(&reader), 0);
    assert_null(reader.kind);
    assert_int_equal(record_next(&reader), 0); /* repeated at the end */
    assert_null(reader.kind);
}

TEST_MAIN(NULL, NULL, test_round_trip, test_values, test_bad, test_lines)
