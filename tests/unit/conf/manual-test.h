/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks of a table of keys against its manual page and its sample file, for the tests of both tables. The
 * manual has a fixed form: a `.Ss [Section] section options` with one `.It Cm Key= ...` per key, in the order
 * of the table, each with "Default: none." or "Default\n.Ql VALUE .". Constants are in neither. */

#include "conf-test.h"
#include "conf/table.h"

#define MANUAL_MAX (256UL * 1024UL)

static inline char *manual_read(const char *directory, const char *name)
{
    const char *path = test_path(directory, name);
    char *text = calloc(1, MANUAL_MAX);
    FILE *f = fopen(path, "re");

    assert_non_null(text);
    if (!f)
        fail_msg("%s: cannot be opened", path);
    assert_in_range(fread(text, 1, MANUAL_MAX, f), 1, MANUAL_MAX - 1);
    assert_int_equal(fclose(f), 0);
    return text;
}

/* The text between `from` and the next line that starts with one of `ends`. Malloc'd. */
static inline char *manual_block(const char *from, const char *const *ends)
{
    const char *end = from + strlen(from);

    for (size_t i = 0; ends[i]; i++) {
        const char *hit = strstr(from, ends[i]);

        if (hit && hit < end)
            end = hit + 1;
    }
    return strndup(from, (size_t)(end - from));
}

static inline void manual_check_key(const ConfKey *key, const char *block)
{
    CLEANUP_FREE char *expected = NULL;

    assert_true(
        asprintf(&expected, *key->fallback ? "Default\n.Ql %s .\n" : "Default: none.\n", key->fallback) > 0);
    if (!strstr(block, expected))
        fail_msg("[%s] %s=: the manual does not say: %s", key->section, key->name, expected);
}

/* Every key of the table is documented, in order, and no others are. */
static inline void manual_check(const ConfKey *table, size_t n, const char *text)
{
    static const char *const section_ends[] = {"\n.Ss ", "\n.Sh ", NULL};
    static const char *const item_ends[] = {"\n.It ", "\n.El\n", NULL};
    const char *section = "";
    CLEANUP_FREE char *options = NULL;
    char *at = NULL;

    for (size_t i = 0; i <= n; i++) {
        CLEANUP_FREE char *block = NULL;
        char name[64];

        if (i == n || strcmp(table[i].section, section) != 0) {
            char title[64];
            const char *found;

            /* The section is complete: no item may be left. */
            if (at && strstr(at, "\n.It Cm "))
                fail_msg("[%s]: the manual has a key too many or in another order: %.40s", section,
                         strstr(at, "\n.It Cm ") + 1);
            if (i == n)
                break;
            section = table[i].section;
            (void)snprintf(title, sizeof(title), "\n.Ss [%s] section options\n", section);
            found = strstr(text, title);
            if (!found)
                fail_msg("[%s]: not in the manual", section);
            free(options);
            options = manual_block(found + 1, section_ends);
            assert_non_null(options);
            at = options;
        }
        if (table[i].fixed)
            continue;
        at = strstr(at, "\n.It Cm ");
        if (!at || sscanf(at, "\n.It Cm %63[A-Za-z]=", name) != 1 || strcmp(name, table[i].name) != 0)
            fail_msg("[%s] %s=: expected here in the manual, found: %.40s", section, table[i].name,
                     at ? at + 1 : "nothing");
        at++;
        block = manual_block(at, item_ends);
        assert_non_null(block);
        manual_check_key(&table[i], block);
    }
}

/* The sample holds a commented-out line for every key, with its default. */
static inline void sample_check(const ConfKey *table, size_t n, const char *text)
{
    size_t n_lines = 0, n_keys = 0;

    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *line = NULL;

        if (table[i].fixed)
            continue;
        n_keys++;
        assert_true(asprintf(&line, "\n#%s=%s\n", table[i].name, table[i].fallback) > 0);
        if (!strstr(text, line))
            fail_msg("[%s]: the sample has no line%s", table[i].section, line);
    }
    /* Comments have a blank after the mark; keys have none. */
    for (const char *s = text; (s = strstr(s, "\n#")); s++)
        n_lines += s[2] != ' ' && s[2] != '\n';
    assert_int_equal(n_lines, n_keys);
}
