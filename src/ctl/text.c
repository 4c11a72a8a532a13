/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes foreign text safe for two readers: a terminal, which obeys control characters and knows only the
 * characters of its locale, and a JSON parser, which accepts only UTF-8. */

#include "ctl/text.h"

#include "base/parse.h"
#include "conf/utf8.h"

#include <string.h>
#include <wchar.h>
#include <wctype.h>

/* Each byte may become four, "\xNN". */
#define ESCAPED_MAX 4U

static const char hex_digits[] = "0123456789abcdef";

static char *put_escaped(char *out, unsigned char byte)
{
    *out++ = '\\';
    if (byte == '\n' || byte == '\t') {
        *out++ = byte == '\n' ? 'n' : 't';
        return out;
    }
    *out++ = 'x';
    *out++ = hex_digits[byte >> 4];
    *out++ = hex_digits[byte & 15];
    return out;
}

/* Invisible characters that change the text direction: one in a name could make the rest of its line read
 * differently. */
static bool turns_direction(wchar_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f ||
           c == 0x061c;
}

/* Returns the length of the character at `s` and whether it may stay. A byte that is no character has length
 * 1 and may not stay. */
typedef size_t (*Look)(const char *s, size_t len, mbstate_t *state, bool *ret_stays);

static size_t look_printable(const char *s, size_t len, mbstate_t *state, bool *ret_stays)
{
    wchar_t c;
    size_t n = mbrtowc(&c, s, len, state);
    bool known = n > 0 && n <= len;

    if (!known) /* take one byte and start again */
        memset(state, 0, sizeof(*state));
    *ret_stays = known && iswprint((wint_t)c) && wcwidth(c) >= 0 && !turns_direction(c);
    return known ? n : 1;
}

static size_t look_utf8(const char *s, size_t len, mbstate_t *state, bool *ret_stays)
{
    size_t n = utf8_length(s, len);

    *ret_stays = n > 0;
    return MAX(n, 1U);
}

static char *escape(const char *s, size_t len, Look look)
{
    char *result = len > (SIZE_MAX - 1) / ESCAPED_MAX ? NULL : malloc(len * ESCAPED_MAX + 1), *out = result;
    mbstate_t state = {0};

    while (result && len > 0) {
        bool stays;
        size_t n = look(s, len, &state, &stays);

        for (size_t i = 0; i < n; i++)
            if (stays)
                *out++ = s[i];
            else
                out = put_escaped(out, (unsigned char)s[i]);
        s += n;
        len -= n;
    }
    if (result)
        *out = '\0';
    return result;
}

char *text_printable(const char *s)
{
    return escape(s, strlen(s), look_printable);
}

char *text_vprintable(const char *format, va_list ap)
{
    CLEANUP_FREE char *text = format_vtext(format, ap);

    return text ? text_printable(text) : NULL;
}

char *text_utf8(const char *s, size_t len)
{
    return escape(s, len, look_utf8);
}
