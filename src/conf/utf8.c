/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Our own because the C library's decoder follows the locale, and the same file must be read the same way
 * in all. */

#include "conf/utf8.h"

#include <stdint.h>

size_t utf8_length(const char *s, size_t len)
{
    /* The smallest code point that needs so many bytes; anything below is an overlong form. */
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
