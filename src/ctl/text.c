/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Making foreign text safe. Two readers with different needs: a terminal, which obeys control characters and knows only
 * the characters of its locale, and a JSON parser, which wants UTF-8 and nothing else. */

#include "ctl/text.h"

#include "base/parse.h"
#include "conf/utf8.h"

#include <stdint.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

/* Each byte may become four, "\xNN". */
#define ESCAPED_MAX 4U

static const char hex_digits[] = "0123456789abcdef";

/* Room for `len` bytes, all of them escaped; NULL when memory is out. */
static char *alloc_escaped(size_t len)
{
    return len > (SIZE_MAX - 1) / ESCAPED_MAX ? NULL : malloc(len * ESCAPED_MAX + 1);
}

static char *put_hex(char *out, unsigned char byte)
{
    *out++ = '\\';
    *out++ = 'x';
    *out++ = hex_digits[byte >> 4];
    *out++ = hex_digits[byte & 15];
    return out;
}

static char *put_escaped(char *out, unsigned char byte)
{
    if (byte != '\n' && byte != '\t')
        return put_hex(out, byte);
    *out++ = '\\';
    *out++ = byte == '\n' ? 'n' : 't';
    return out;
}

/* Characters that draw nothing but turn the direction of what follows: a name with one of them could make the rest of
 * its line read differently. */
static bool turns_direction(wchar_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f ||
           c == 0x061c;
}

char *text_printable(const char *s)
{
    size_t len = strlen(s);
    mbstate_t state = {0};
    char *result = alloc_escaped(len), *out = result;

    while (result && len > 0) {
        wchar_t c;
        size_t n = mbrtowc(&c, s, len, &state);

        if (n == 0 || n > len) { /* not a character here: take one byte and start afresh */
            memset(&state, 0, sizeof(state));
            out = put_escaped(out, (unsigned char)*s);
            n = 1;
        } else if (!iswprint((wint_t)c) || wcwidth(c) < 0 || turns_direction(c)) {
            for (size_t i = 0; i < n; i++)
                out = put_escaped(out, (unsigned char)s[i]);
        } else {
            memcpy(out, s, n);
            out += n;
        }
        s += n;
        len -= n;
    }
    if (result)
        *out = '\0';
    return result;
}

char *text_vprintable(const char *format, va_list ap)
{
    CLEANUP_FREE char *text = format_vtext(format, ap);

    return text ? text_printable(text) : NULL;
}

char *text_utf8(const char *s, size_t len)
{
    char *result = alloc_escaped(len), *out = result;

    while (result && len > 0) {
        size_t n = utf8_length(s, len);

        if (n == 0) {
            out = put_hex(out, (unsigned char)*s);
            n = 1;
        } else {
            memcpy(out, s, n);
            out += n;
        }
        s += n;
        len -= n;
    }
    if (result)
        *out = '\0';
    return result;
}
