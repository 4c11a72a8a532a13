/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of the ctl room share. */

#include "ctl/bus-json.h"
#include "unit-test.h"

#include <json-c/json.h>
#include <locale.h>
#include <stdlib.h>

/* Switches to a UTF-8 locale that every glibc since 2.35 has built in; skips the test where it is missing. */
static inline void test_utf8_locale(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
}

/* A JSON value from text with ' for ". Fails the test when it does not parse. */
static inline json_object *test_json(const char *text)
{
    char *copy = strdup(text);
    json_object *value;

    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    value = json_tokener_parse(copy);
    free(copy);
    assert_non_null(value);
    return value;
}
