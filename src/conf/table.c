/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Key tables. This file only walks rows and converts text to values and back. Tables have a few dozen rows
 * and are searched some hundred times per load, so a linear search is fast enough. */

#include "conf/table.h"

#include "base/parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const ConfKey *conf_table_find(const ConfKey *table, size_t n, const char *section, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].section, section) == 0 && strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

void conf_table_warn_again(const ConfKey *key, unsigned before, const char *file, unsigned line,
                           ConfReport *report)
{
    if (before > 0)
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line,
                        "%s= was already set in line %u; the later value is used", key->name, before);
}

bool conf_table_has_section(const ConfKey *table, size_t n, const char *section)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].section, section) == 0)
            return true;
    return false;
}

/* Whether at most `slips` letters are wrong, missing or extra, ignoring case. */
static bool is_near(const char *a, const char *b, unsigned slips)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    if (!*a && !*b)
        return true;
    return slips > 0 && ((*a && is_near(a + 1, b, slips - 1)) || (*b && is_near(a, b + 1, slips - 1)) ||
                         (*a && *b && is_near(a + 1, b + 1, slips - 1)));
}

const char *conf_table_near_section(const ConfKey *table, size_t n, const char *section)
{
    for (unsigned slips = 0; slips <= 2; slips++) /* two: transposed letters */
        for (size_t i = 0; i < n; i++)
            if (is_near(section, table[i].section, slips))
                return table[i].section;
    return NULL;
}

/* Usual slips: the right key in the wrong section or the wrong case. The row of this section wins. */
static const ConfKey *find_similar(const ConfKey *table, size_t n, const char *section, const char *name)
{
    const ConfKey *similar = NULL;

    for (size_t i = 0; i < n; i++)
        if (!table[i].fixed && strcasecmp(table[i].name, name) == 0 &&
            (!similar || strcmp(table[i].section, section) == 0))
            similar = &table[i];
    return similar;
}

static void warn_unknown(const ConfKey *table, size_t n, const char *section, const char *name,
                         const char *file, unsigned line, ConfReport *report)
{
    const ConfKey *similar;

    if (!conf_table_has_section(table, n, section)) {
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line, "ignoring a key of unknown section [%s]",
                        section);
        return;
    }
    similar = find_similar(table, n, section, name);
    if (similar)
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line,
                        "ignoring unknown key in [%s] (is [%s] %s= meant?): %s=", section, similar->section,
                        similar->name, name);
    else
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line,
                        "ignoring unknown key in [%s]: %s=", section, name);
}

int conf_key_apply(const ConfKey *key, void *object, const char *value, const char *file, unsigned line,
                   ConfReport *report)
{
    int r = key->parse(*value ? value : key->fallback, (char *)object + key->offset, key->arg);

    if (r == 0 || r == -ENOMEM)
        return r;
    conf_report_add(report, CONF_SEVERITY_ERROR, file, line, "%s= takes %s, not: %s%s", key->name,
                    key->expected, value, strstr(value, " #") ? " (comments need a line of their own)" : "");
    return -EBADMSG;
}

int conf_table_apply(const ConfKey *table, size_t n, void *object, const char *section, const char *name,
                     const char *value, const char *file, unsigned line, ConfReport *report)
{
    const ConfKey *key = conf_table_find(table, n, section, name);

    if (!key)
        warn_unknown(table, n, section, name, file, line, report);
    else if (key->fixed)
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line, "ignoring %s=, which is always %s: %s",
                        name, key->fallback, key->fixed);
    else
        return conf_key_apply(key, object, value, file, line, report);
    return 0;
}

int conf_table_defaults(const ConfKey *table, size_t n, void *object)
{
    for (size_t i = 0; i < n; i++) {
        int r = table[i].parse(table[i].fallback, (char *)object + table[i].offset, table[i].arg);

        if (r == -ENOMEM)
            return r;
        assert(r == 0);
    }
    return 0;
}

/* Returns `r`, or -ERANGE for a valid value outside the range. */
static int check_range(int r, uint64_t v, const ConfRange *range)
{
    return r == 0 && range && (v < range->min || v > range->max) ? -ERANGE : r;
}

int conf_parse_bool(const char *value, void *field, const void *arg)
{
    return parse_bool(value, field);
}

int conf_parse_u32(const char *value, void *field, const void *arg)
{
    uint32_t v = 0;
    int r = parse_u32(value, &v);

    r = check_range(r, v, arg);
    if (r == 0)
        *(uint32_t *)field = v;
    return r;
}

int conf_parse_auto(const char *value, void *field, const void *arg)
{
    if (strcmp(value, "auto") != 0)
        return conf_parse_u32(value, field, arg);
    *(uint32_t *)field = CONF_AUTO;
    return 0;
}

int conf_parse_span(const char *value, void *field, const void *arg)
{
    uint64_t v = 0;
    int r = parse_span_usec(value, &v);

    r = check_range(r, v, arg);
    if (r == 0)
        *(uint64_t *)field = v;
    return r;
}

int conf_parse_bytes(const char *value, void *field, const void *arg)
{
    uint64_t v = 0;
    int r = parse_bytes(value, &v);

    r = check_range(r, v, arg);
    if (r == 0)
        *(uint64_t *)field = v;
    return r;
}

int conf_parse_permille(const char *value, void *field, const void *arg)
{
    uint32_t v = 0;
    int r = parse_permille(value, &v);

    r = check_range(r, v, arg);
    if (r == 0)
        *(uint32_t *)field = v;
    return r;
}

int conf_parse_string(const char *value, void *field, const void *arg)
{
    char *copy = NULL;

    if (check_range(0, strlen(value), arg) < 0)
        return -ERANGE;
    if (*value) {
        copy = strdup(value);
        if (!copy)
            return -ENOMEM;
    }
    free(*(char **)field);
    *(char **)field = copy;
    return 0;
}

int conf_parse_enum(const char *value, void *field, const void *arg)
{
    const char *const *names = arg;

    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], value) == 0) {
            *(int *)field = i;
            return 0;
        }
    return -EINVAL;
}

int conf_parse_list(const char *value, void *field, const void *arg)
{
    const ConfRange *range = arg;
    CLEANUP_BITMAP hwloc_bitmap_t set = NULL;
    int r;

    if (*value) {
        set = hwloc_bitmap_alloc();
        if (!set)
            return -ENOMEM;
        r = parse_list(value, range ? (unsigned)range->max : PARSE_CPU_MAX, set);
        if (r == 0 && range && hwloc_bitmap_first(set) >= 0 && (uint64_t)hwloc_bitmap_first(set) < range->min)
            r = -ERANGE;
        if (r < 0)
            return r;
    }
    hwloc_bitmap_free(*(hwloc_bitmap_t *)field);
    *(hwloc_bitmap_t *)field = TAKE_PTR(set);
    return 0;
}

/* The shortest exact form: "2M" for 2097152. */
static int format_bytes(uint64_t v, char **ret)
{
    static const char suffixes[] = "KMGT";
    int i = -1;

    while (v > 0 && v % 1024 == 0 && suffixes[i + 1]) {
        v /= 1024;
        i++;
    }
    return asprintf(ret, "%" PRIu64 "%.*s", v, i >= 0, i >= 0 ? &suffixes[i] : "");
}

static int format_permille(uint32_t v, char **ret)
{
    return v % 10 ? asprintf(ret, "%" PRIu32 ".%" PRIu32 "%%", v / 10, v % 10)
                  : asprintf(ret, "%" PRIu32 "%%", v / 10);
}

int conf_key_format(const ConfKey *key, const void *object, char **ret)
{
    const void *field = (const char *)object + key->offset;
    char span[128], *text = NULL;
    int n;

    if (key->parse == conf_parse_bool)
        n = asprintf(&text, "%s", *(const bool *)field ? "yes" : "no");
    else if (key->parse == conf_parse_u32)
        n = asprintf(&text, "%" PRIu32, *(const uint32_t *)field);
    else if (key->parse == conf_parse_auto && *(const uint32_t *)field == CONF_AUTO)
        n = asprintf(&text, "auto");
    else if (key->parse == conf_parse_auto)
        n = asprintf(&text, "%" PRIu32, *(const uint32_t *)field);
    else if (key->parse == conf_parse_span)
        n = asprintf(&text, "%s", format_span(*(const uint64_t *)field, span, sizeof(span)));
    else if (key->parse == conf_parse_bytes)
        n = format_bytes(*(const uint64_t *)field, &text);
    else if (key->parse == conf_parse_permille)
        n = format_permille(*(const uint32_t *)field, &text);
    else if (key->parse == conf_parse_string)
        n = asprintf(&text, "%s", *(char *const *)field ? *(char *const *)field : "");
    else if (key->parse == conf_parse_enum)
        n = asprintf(&text, "%s", ((const char *const *)key->arg)[*(const int *)field]);
    else if (key->parse == conf_parse_list) {
        hwloc_const_bitmap_t set = *(hwloc_bitmap_t const *)field;

        text = set ? format_list(set, PARSE_CPU_MAX) : strdup("");
        n = text ? 0 : -1;
    } else
        return -EOPNOTSUPP;

    if (n < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}
