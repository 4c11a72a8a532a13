/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* No foreign text may control the terminal, and all of it must be valid in JSON. */

#include "base/util.h"
#include "ctl-test.h"
#include "ctl/text.h"

static void check_printable(const char *text, const char *expected)
{
    CLEANUP_FREE char *printable = text_printable(text);

    assert_non_null(printable);
    assert_string_equal(printable, expected);
}

static void test_plain(void **state)
{
    check_printable("", "");
    check_printable("kworker/0:1-events (x) \\x2d", "kworker/0:1-events (x) \\x2d");
}

static void test_control_characters(void **state)
{
    check_printable("a\nb\tc\r", "a\\nb\\tc\\x0d");
    check_printable("\033]0;owned\007\033[2J", "\\x1b]0;owned\\x07\\x1b[2J");
    check_printable("\x7f", "\\x7f");
}

static void test_c_locale_escapes_bytes(void **state)
{
    assert_non_null(setlocale(LC_CTYPE, "C"));
    check_printable("na\xc3\xafve", "na\\xc3\\xafve");
    check_printable("\x9b", "\\x9b");
}

static void test_utf8(void **state)
{
    test_utf8_locale();
    check_printable("na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac", "na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac");
    check_printable("\xff\xc3", "\\xff\\xc3"); /* not characters */
    check_printable("\xc2\x9b"
                    "31m",
                    "\\xc2\\x9b31m"); /* U+009B, a control sequence introducer */
    check_printable("a\xe2\x80\xae"
                    "b",
                    "a\\xe2\\x80\\xaeb");               /* U+202E, right-to-left override */
    check_printable("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
}

/* Every byte string of up to two bytes, each followed by an escape: no character below blank, nor DEL, comes out. */
static void test_nothing_gets_through(void **state)
{
    test_utf8_locale();
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            const char text[] = {(char)a, (char)b, '\033', 'c', '\0'};
            CLEANUP_FREE char *printable = text_printable(text);

            assert_non_null(printable);
            for (const char *c = printable; *c; c++) {
                assert_true((unsigned char)*c >= ' ');
                assert_int_not_equal((unsigned char)*c, 0x7f);
            }
        }
}

static void check_utf8(const char *text, size_t len, const char *expected)
{
    CLEANUP_FREE char *valid = text_utf8(text, len);

    assert_non_null(valid);
    assert_string_equal(valid, expected);
}

static void test_json_text(void **state)
{
    assert_non_null(setlocale(LC_CTYPE, "C")); /* must not matter */
    check_utf8("na\xc3\xafve", 6, "na\xc3\xafve");
    check_utf8("a\xff\xc3", 3, "a\\xff\\xc3");
    check_utf8("\xc0\xaf", 2, "\\xc0\\xaf"); /* overlong */
    check_utf8("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80");
    check_utf8("cut\xe6\x97\xa5", 5, "cut\\xe6\\x97"); /* only a part of the character is within the length */
}

TEST_MAIN(NULL, NULL, test_plain, test_control_characters, test_c_locale_escapes_bytes, test_utf8,
          test_nothing_gets_through, test_json_text)
