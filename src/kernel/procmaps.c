/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A line:
 *
 *     7f2c00000000-7f2c40000000 rw-s 00000000 00:01 1024                       /memfd:heap (deleted)
 *
 * Numbers are hexadecimal, except the inode. */

#include "kernel/procmaps.h"

#include "base/scan.h"
#include "base/util.h"

#include <string.h>

static bool scan_hex(const char **p, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;

    for (;; s++) {
        unsigned digit;

        if (*s >= '0' && *s <= '9')
            digit = (unsigned)(*s - '0');
        else if (*s >= 'a' && *s <= 'f')
            digit = (unsigned)(*s - 'a') + 10;
        else
            break;
        if (v > UINT64_MAX >> 4)
            return false;
        v = v << 4 | digit;
    }
    if (s == *p)
        return false;
    *p = s;
    *ret = v;
    return true;
}

/* A number and the character after it. */
static bool scan_field(const char **p, uint64_t *ret, char behind)
{
    return scan_hex(p, ret) && *(*p)++ == behind;
}

int procmaps_parse(const char *line, ProcMaps *ret)
{
    uint64_t major, minor, offset;
    ProcMaps maps;

    if (!scan_field(&line, &maps.start, '-') || !scan_field(&line, &maps.end, ' ') ||
        maps.start >= maps.end || strspn(line, "rwxsp-") != 4)
        return -EINVAL;
    maps.readable = line[0] == 'r';
    maps.writable = line[1] == 'w';
    maps.executable = line[2] == 'x';
    maps.shared = line[3] == 's';
    line += 4;
    if (*line++ != ' ' || !scan_field(&line, &offset, ' ') || !scan_field(&line, &major, ':') ||
        !scan_field(&line, &minor, ' ') || !scan_u64(&line, &maps.inode) || major > UINT32_MAX ||
        minor > UINT32_MAX || (*line != ' ' && *line != '\n' && *line != '\0'))
        return -EINVAL;
    maps.major = (uint32_t)major;
    maps.minor = (uint32_t)minor;
    maps.path = line + strspn(line, " ");
    *ret = maps;
    return 0;
}
