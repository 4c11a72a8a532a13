/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Places are only compared, so a hash is enough (FNV-1a), and the journal needs no room for paths. A user
 * gains nothing by a collision: only a mask that is exactly one of ours can be taken for inherited. */

#include "act/place.h"

#include "act/act.h"

#include <stdlib.h>
#include <string.h>

#define FNV_OFFSET 14695981039346656037U
#define FNV_PRIME  1099511628211U

uint64_t place_of_cgroups(const char *text)
{
    uint64_t hash = FNV_OFFSET;
    bool any = false, root = true;

    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        /* "0::/system.slice": hierarchy, controllers, and path. */
        any |= len > 0;
        root &= len == 0 || (len >= 2 && line[len - 1] == '/' && line[len - 2] == ':');
        line += len + (line[len] == '\n');
    }
    if (!any || root)
        return any ? ACT_PLACE_ROOT : ACT_PLACE_UNKNOWN;
    for (const char *p = text; *p; p++)
        hash = (hash ^ (uint8_t)*p) * FNV_PRIME;
    return hash | 2; /* larger than both constants above */
}

bool place_is_first(const char *text)
{
    static const char key[] = "\nNSpid:";
    const char *p = strstr(text, key), *end;
    unsigned n = 0;
    unsigned long last = 0;

    if (!p)
        return false;
    p += strlen(key);
    end = p + strcspn(p, "\n");
    while (p < end) {
        size_t blank = strspn(p, " \t"), digits = strspn(p + blank, "0123456789");

        if (digits == 0)
            break;
        last = strtoul(p + blank, NULL, 10);
        p += blank + digits;
        n++;
    }
    return n > 1 && last == 1;
}
