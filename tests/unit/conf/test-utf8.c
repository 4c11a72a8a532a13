/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Foreign text made printable. */

#include "conf/utf8.h"
#include "unit-test.h"

#include <stdlib.h>

static void check(const char *in, const char *out)
{
    char buf[256], *alloced = utf8_escape_alloc(in);

    assert_string_equal(utf8_escape(in, buf, sizeof(buf)), out);
    assert_non_null(alloced);
    assert_string_equal(alloced, out);
    free(alloced);
}

static void test_escape(void **state)
{
    check("", "");
    check(NULL, "");
    check("plain (name) 1:2", "plain (name) 1:2");
    check("gr\xc3\xbc\xc3\x9f"
          "e \xe2\x82\xac \xf0\x9f\x90\xa7",
          "gr\xc3\xbc\xc3\x9f"
          "e \xe2\x82\xac \xf0\x9f\x90\xa7");
    check("evil\nname\t", "evil\\x0aname\\x09");
    check("\x1b[2J", "\\x1b[2J");
    check("\x7f", "\\x7f");
    check("a\\b", "a\\b");
    check("na\xc3\xafve \\", "na\xc3\xafve \\");
    check("a\\x0a", "a\\x5cx0a");
    check("\\x41 \\y", "\\x5cx41 \\y");
    check("a\nb\t\033", "a\\x0ab\\x09\\x1b");
    check("\xc2\x9b\xff\xc3", "\\xc2\\x9b\\xff\\xc3");
}

static void test_escape_broken_utf8(void **state)
{
    check("cut\xc3", "cut\\xc3");
    check("cut\xe2\x82", "cut\\xe2\\x82");
    check("\xff\xfe", "\\xff\\xfe");
    check("\xc0\xaf", "\\xc0\\xaf"); /* over-long "/" */
    check("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
    check("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    check("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
    check("\xc2\x9b"
          "31m",
          "\\xc2\\x9b"
          "31m"); /* C1 control: starts an escape sequence */
}

/* Cut at the end of the buffer, never inside a character or an escape. */
static void test_escape_cut(void **state)
{
    char buf[5];

    assert_string_equal(utf8_escape("abcdef", buf, sizeof(buf)), "abcd");
    assert_string_equal(utf8_escape("abc\xc3\xbc", buf, sizeof(buf)), "abc");
    assert_string_equal(utf8_escape("\n\n", buf, sizeof(buf)), "\\x0a");
    assert_string_equal(utf8_escape("a\n", buf, sizeof(buf)), "a");
    assert_string_equal(utf8_escape("abc", buf, 1), "");
}

TEST_MAIN(NULL, NULL, test_escape, test_escape_broken_utf8, test_escape_cut)
