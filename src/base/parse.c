/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/parse.h"

#include "base/time.h"
#include "base/util.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

static bool at_end(const char *s)
{
    return *skip_blanks(s) == '\0';
}

/* Reads digits at *p. Returns -EINVAL if there are none, and -ERANGE on overflow, but then still moves past
 * all digits. */
static int scan_digits(const char **p, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;
    bool overflow = false;

    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    for (; isdigit((unsigned char)*s); s++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            overflow = true;

    *p = s;
    if (overflow)
        return -ERANGE;
    *ret = v;
    return 0;
}

/* Reads digits with an optional fraction, which is returned in millionths; further places are ignored. */
static int scan_decimal(const char **p, uint64_t *ret_whole, uint64_t *ret_micro)
{
    uint64_t micro = 0, scale = 100000;
    int r = scan_digits(p, ret_whole);

    if (r == -EINVAL)
        return r;
    if (**p == '.') {
        (*p)++;
        if (!isdigit((unsigned char)**p))
            return -EINVAL;
        for (; isdigit((unsigned char)**p); (*p)++, scale /= 10)
            micro += (uint64_t)(**p - '0') * scale;
    }
    *ret_micro = micro;
    return r;
}

/* Multiplies whole.micro by `unit`, rounding down. */
static int scale_decimal(uint64_t whole, uint64_t micro, uint64_t unit, uint64_t *ret)
{
    uint64_t v;

    if (__builtin_mul_overflow(whole, unit, &v))
        return -ERANGE;
    /* `unit / 1000000` alone would be 0 for small units; the split keeps their share and cannot overflow. */
    if (__builtin_add_overflow(v, unit / 1000000 * micro + unit % 1000000 * micro / 1000000, &v))
        return -ERANGE;
    *ret = v;
    return 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    int r;

    s = skip_blanks(s);
    r = scan_digits(&s, &v);
    if (r == -EINVAL || !at_end(s))
        return -EINVAL;
    if (r < 0)
        return r;
    *ret = v;
    return 0;
}

int parse_u32(const char *s, uint32_t *ret)
{
    uint64_t v;
    int r = parse_u64(s, &v);

    if (r < 0)
        return r;
    if (v > UINT32_MAX)
        return -ERANGE;
    *ret = (uint32_t)v;
    return 0;
}

int parse_i32(const char *s, int32_t *ret)
{
    bool negative;
    uint64_t v;
    int r;

    s = skip_blanks(s);
    negative = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    r = parse_u64(s, &v);
    if (r < 0)
        return r;
    if (v > (uint64_t)INT32_MAX + negative)
        return -ERANGE;
    *ret = negative ? (int32_t) - (int64_t)v : (int32_t)v;
    return 0;
}

int parse_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};
    size_t len;

    s = skip_blanks(s);
    len = strcspn(s, " \t");
    if (!at_end(s + len))
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (strlen(yes[i]) == len && strncasecmp(s, yes[i], len) == 0) {
            *ret = true;
            return 0;
        }
        if (strlen(no[i]) == len && strncasecmp(s, no[i], len) == 0) {
            *ret = false;
            return 0;
        }
    }
    return -EINVAL;
}

static int scan_span_unit(const char **p, uint64_t *ret_unit)
{
    static const struct {
        const char *name;
        uint64_t usec;
    } units[] = {
        {"us", 1},
        {"usec", 1},
        {"ms", USEC_PER_MSEC},
        {"msec", USEC_PER_MSEC},
        {"s", USEC_PER_SEC},
        {"sec", USEC_PER_SEC},
        {"m", 60 * USEC_PER_SEC},
        {"min", 60 * USEC_PER_SEC},
        {"h", 3600 * USEC_PER_SEC},
        {"hour", 3600 * USEC_PER_SEC},
        {"d", 86400 * USEC_PER_SEC},
        {"day", 86400 * USEC_PER_SEC},
    };
    const char *s = skip_blanks(*p);
    size_t len = 0;

    while (isalpha((unsigned char)s[len]))
        len++;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strlen(units[i].name) == len && strncmp(s, units[i].name, len) == 0) {
            *ret_unit = units[i].usec;
            *p = s + len;
            return 0;
        }
    return -EINVAL;
}

int parse_span_usec(const char *s, uint64_t *ret)
{
    uint64_t total = 0;
    bool overflow = false;
    unsigned n = 0;

    s = skip_blanks(s);
    do {
        uint64_t whole = 0, micro = 0, unit = USEC_PER_SEC, part = 0;
        int r = scan_decimal(&s, &whole, &micro);

        if (r == -EINVAL)
            return r;
        overflow = overflow || r == -ERANGE;
        /* A bare number is seconds only when it stands alone: "1min 30" is more likely a mistake. */
        if (!(n == 0 && at_end(s)) && scan_span_unit(&s, &unit) < 0)
            return -EINVAL;
        overflow = overflow || scale_decimal(whole, micro, unit, &part) < 0 ||
                   __builtin_add_overflow(total, part, &total);
        n++;
        s = skip_blanks(s);
    } while (*s);

    if (overflow)
        return -ERANGE;
    *ret = total;
    return 0;
}

int parse_bytes(const char *s, uint64_t *ret)
{
    static const char suffixes[] = "KMGT";
    uint64_t whole = 0, micro = 0, unit = 1, v;
    const char *suffix;
    int r;

    s = skip_blanks(s);
    r = scan_decimal(&s, &whole, &micro);
    if (r == -EINVAL)
        return r;
    s = skip_blanks(s);
    suffix = *s ? strchr(suffixes, toupper((unsigned char)*s)) : NULL;
    if (suffix) {
        unit = 1ULL << (10 * (suffix - suffixes + 1));
        s++;
    }
    if (!at_end(s) || (unit == 1 && micro))
        return -EINVAL;
    if (r < 0 || scale_decimal(whole, micro, unit, &v) < 0)
        return -ERANGE;
    *ret = v;
    return 0;
}

int parse_permille(const char *s, uint32_t *ret)
{
    uint64_t whole = 0, micro = 0, v;
    int r;

    s = skip_blanks(s);
    r = scan_decimal(&s, &whole, &micro);
    if (r == -EINVAL)
        return r;
    s = skip_blanks(s);
    if (*s == '%' && at_end(s + 1)) {
        if (micro % 100000)
            return -EINVAL; /* finer than a permille */
        if (r < 0 || scale_decimal(whole, micro, 10, &v) < 0)
            return -ERANGE;
    } else if (strncmp(s, "permille", 8) == 0 && at_end(s + 8) && !micro) {
        v = whole;
    } else {
        return -EINVAL;
    }
    if (r < 0 || v > UINT32_MAX)
        return -ERANGE;
    *ret = (uint32_t)v;
    return 0;
}

int parse_list(const char *s, unsigned max, hwloc_bitmap_t ret)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    bool too_large = false;

    assert(max <= INT_MAX); /* hwloc takes the end of a range as an int, and -1 as "no end" */
    if (!set)
        return -ENOMEM;

    s = skip_blanks(s);
    while (*s && *s != '\n') {
        uint64_t first = 0, last;
        int r = scan_digits(&s, &first);

        if (r == -EINVAL)
            return r;
        too_large = too_large || r < 0 || first > max;
        last = first;
        if (*s == '-') {
            s++;
            r = scan_digits(&s, &last);
            if (r == -EINVAL)
                return r;
            too_large = too_large || r < 0 || last > max;
            if (!too_large && last < first)
                return -EINVAL;
        }
        if (!too_large && hwloc_bitmap_set_range(set, (unsigned)first, (int)last) < 0)
            return -ENOMEM;
        s = skip_blanks(s);
        if (*s == ',') {
            s = skip_blanks(s + 1);
            if (!isdigit((unsigned char)*s))
                return -EINVAL;
        } else if (*s && *s != '\n') {
            return -EINVAL;
        }
    }
    if (*s == '\n' && !at_end(s + 1))
        return -EINVAL;
    if (too_large)
        return -ERANGE;
    return hwloc_bitmap_copy(ret, set) < 0 ? -ENOMEM : 0;
}

char *format_list(hwloc_const_bitmap_t set, unsigned max)
{
    CLEANUP_BITMAP hwloc_bitmap_t cut = NULL;
    char *text = NULL;

    if (hwloc_bitmap_last(set) >= 0) /* finite */
        return hwloc_bitmap_list_asprintf(&text, set) < 0 ? NULL : text;

    cut = hwloc_bitmap_dup(set);
    if (!cut)
        return NULL;
    if (hwloc_bitmap_clr_range(cut, max + 1, -1) < 0 || hwloc_bitmap_list_asprintf(&text, cut) < 0)
        return NULL;
    return text;
}

char *format_vtext(const char *format, va_list ap)
{
    char *text;

    return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

char *format_text(const char *format, ...)
{
    char *text;
    va_list ap;

    va_start(ap, format);
    text = format_vtext(format, ap);
    va_end(ap);
    return text;
}

int format_error(char **ret_error, int error, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    *ret_error = format_vtext(format, ap);
    va_end(ap);
    return error;
}

char *format_printed(FormatPrint print, const void *object, size_t *ret_len)
{
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    bool failed;

    if (!out)
        return NULL;
    failed = print(out, object) != 0 || ferror(out);
    if (fclose(out) != 0 || failed)
        return NULL;
    if (ret_len)
        *ret_len = len;
    return TAKE_PTR(text);
}

char *format_span(uint64_t usec, char *buf, size_t size)
{
    size_t len = 0;

    (void)snprintf(buf, size, "0s");
    for (size_t i = 0; i < TIME_UNITS && len < size; i++) {
        if (usec < time_units[i].usec)
            continue;
        len += (size_t)snprintf(buf + len, size - len, "%s%" PRIu64 "%s", len ? " " : "",
                                usec / time_units[i].usec, time_units[i].name);
        usec %= time_units[i].usec;
    }
    return buf;
}
