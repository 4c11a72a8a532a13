/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Splits match values by a shell's rules, reduced to what a glob needs. A backslash and the next character
 * are kept for fnmatch(), which unescapes them: `\*` is a star, `\"` a quote. */

#include "policy/pattern.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#define BLANKS " \t"

/* Takes one value from *p, which points to its first character. */
static int scan_value(const char **p, PolicyPattern *ret)
{
    const char *s = *p;
    CLEANUP_FREE char *glob = malloc(strlen(s) + 1);
    bool negate = *s == '!';
    char quote = '\0';
    size_t len = 0;

    if (!glob)
        return -ENOMEM;
    for (s += negate; *s && (quote || !strchr(BLANKS, *s)); s++) {
        if (*s == '\\') {
            /* It escapes nothing, and to fnmatch() such a glob matches nothing. */
            if (!s[1])
                return -EINVAL;
            glob[len++] = *s++;
            glob[len++] = *s;
        } else if (quote && *s == quote)
            quote = '\0';
        else if (!quote && (*s == '"' || *s == '\''))
            quote = *s;
        else
            glob[len++] = *s;
    }
    if (quote || len == 0)
        return -EINVAL;

    glob[len] = '\0';
    *ret = (PolicyPattern){.negate = negate, .glob = TAKE_PTR(glob)};
    *p = s;
    return 0;
}

int policy_patterns_parse(const char *value, void *field, const void *arg)
{
    PolicyPatterns *patterns = field;
    size_t n = patterns->n_values;
    int r = 0;

    for (const char *s = value + strspn(value, BLANKS); r == 0 && *s; s += strspn(s, BLANKS)) {
        PolicyPattern *values;

        if (n >= POLICY_VALUES_MAX) {
            r = -ERANGE;
            break;
        }
        values = realloc(patterns->values, (n + 1) * sizeof(*values));
        if (values)
            patterns->values = values;
        r = values ? scan_value(&s, &values[n]) : -ENOMEM;
        n += r == 0;
    }
    if (r < 0) {
        while (n > patterns->n_values)
            free(patterns->values[--n].glob);
        return r;
    }
    if (n == patterns->n_values)
        policy_patterns_done(patterns);
    else
        patterns->n_values = n;
    return 0;
}

/* Quotes the glob if needed. A " inside is put between ', unless it is escaped. */
static void format_glob(FILE *f, const char *glob)
{
    if (glob[0] != '!' && !glob[strcspn(glob, " \t\"'\\")]) {
        (void)fputs(glob, f);
        return;
    }
    (void)fputc('"', f);
    for (; *glob; glob++) {
        if (*glob == '\\' && glob[1])
            (void)fputc(*glob++, f);
        else if (*glob == '"') {
            (void)fputs("\"'\"'\"", f);
            continue;
        }
        (void)fputc(*glob, f);
    }
    (void)fputc('"', f);
}

static int print_patterns(FILE *f, const void *object)
{
    const PolicyPatterns *patterns = object;

    for (size_t i = 0; i < patterns->n_values; i++) {
        if (i > 0)
            (void)fputc(' ', f);
        if (patterns->values[i].negate)
            (void)fputc('!', f);
        format_glob(f, patterns->values[i].glob);
    }
    return 0;
}

char *policy_patterns_format(const PolicyPatterns *patterns)
{
    return format_printed(print_patterns, patterns, NULL);
}

void policy_patterns_done(PolicyPatterns *patterns)
{
    for (size_t i = 0; i < patterns->n_values; i++)
        free(patterns->values[i].glob);
    free(patterns->values);
    *patterns = (PolicyPatterns){0};
}
