/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel returns names as the program set them: "evil\nname", half a UTF-8 character cut at 15 bytes, anything but
 * NUL. sd-bus rejects a whole message for one such byte, and a newline would start a forged log line. */

#include "daemon/views/text.h"

#include "base/util.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at `s`, 0 when there is none. Over-long forms, surrogates and what
 * lies above U+10FFFF are not well-formed. Short sequences end at the terminator, which is no continuation
 * byte. */
static size_t utf8_length(const unsigned char *s)
{
    uint32_t c;
    size_t n;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        n = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4;
    else
        return 0;

    c = s[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fU);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        return 0;
    /* The C1 controls U+0080..U+009F move the cursor on some terminals. */
    if (c < 0xa0)
        return 0;
    return n;
}

char *text_escape(const char *s, char *buf, size_t size)
{
    const unsigned char *p = (const unsigned char *)(s ? s : "");
    size_t used = 0;

    assert(size > 0);
    while (*p) {
        size_t n = utf8_length(p);
        bool plain = n > 1 || (n == 1 && *p >= 0x20 && *p != 0x7f && !(*p == '\\' && p[1] == 'x'));

        if (used + (plain ? n : 4) >= size)
            break;
        if (plain) {
            memcpy(buf + used, p, n);
            used += n;
            p += n;
        } else {
            (void)snprintf(buf + used, 5, "\\x%02x", *p);
            used += 4;
            p++;
        }
    }
    buf[used] = '\0';
    return buf;
}

char *text_escape_alloc(const char *s)
{
    size_t size = (s ? strlen(s) : 0) * 4 + 1;
    char *buf = malloc(size);

    return buf ? text_escape(s, buf, size) : NULL;
}
