/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel returns names as the program set them: "evil\nname", half a UTF-8 character cut at 15 bytes, anything but
 * NUL. sd-bus rejects a whole message for one such byte, and a newline would start a forged log line. */

#include "daemon/views/text.h"

#include "base/util.h"
#include "conf/utf8.h"

#include <stdio.h>
#include <string.h>

char *text_escape(const char *s, char *buf, size_t size)
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

char *text_escape_alloc(const char *s)
{
    size_t size = (s ? strlen(s) : 0) * 4 + 1;
    char *buf = malloc(size);

    return buf ? text_escape(s, buf, size) : NULL;
}
