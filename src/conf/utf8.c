/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A decoder of our own, because the C library's depends on the locale and a file must read the same in every one.
 *
 * The kernel returns names as the program set them: "evil\nname", a UTF-8 character cut at 15 bytes, anything but NUL.
 * sd-bus rejects a whole message for one such byte, and a newline would start a forged log line. */

#include "conf/utf8.h"

#include "base/util.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t utf8_length(const char *s, size_t len)
{
    /* The smallest code point that needs this many bytes; a smaller one is an overlong form. */
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c;
    size_t n;

    if (len == 0)
        return 0;
    c = (unsigned char)s[0];
    if (c < 0x80)
        return 1;

    n = c >= 0xf8 ? 0 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
    if (n == 0 || n > len)
        return 0;
    c &= 0x7fU >> n;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    return n;
}

bool utf8_is_printable(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];

    if (n <= 1)
        return n == 1 && c >= 0x20 && c != 0x7f;
    /* U+0080 to U+009F: the second set of control characters, which terminals obey. */
    return !(n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0);
}

char *utf8_escape(const char *s, char *buf, size_t size)
{
    const char *p = s ? s : "";
    size_t used = 0;

    assert(size > 0);
    while (*p) {
        size_t n = utf8_length(p, strnlen(p, UTF8_MAX));
        bool plain = utf8_is_printable(p, n) && !(*p == '\\' && p[1] == 'x');

        if (used + (plain ? n : 4) >= size)
            break;
        if (plain) {
            memcpy(buf + used, p, n);
            used += n;
            p += n;
        } else {
            (void)snprintf(buf + used, 5, "\\x%02x", (unsigned char)*p);
            used += 4;
            p++;
        }
    }
    buf[used] = '\0';
    return buf;
}

char *utf8_escape_alloc(const char *s)
{
    size_t size = (s ? strlen(s) : 0) * 4 + 1;
    char *buf = malloc(size);

    return buf ? utf8_escape(s, buf, size) : NULL;
}
