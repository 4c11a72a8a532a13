/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A line of maps:
 *
 *     7f2c00000000-7f2c40000000 rw-p 00000000 00:00 0
 *     7f2c50000000-7f2c50100000 rw-s 00000000 00:01 2061   /memfd:heap (deleted)
 *     7f2c60000000-7f2c60020000 r--p 00000000 08:01 1311   /usr/lib/libc.so.6
 *
 * Shared memory is not told from a file by its name: anybody may call a file /memfd:x. The device number is certain.
 * That of the kernel's own mount is the one a memfd of ours has; those of other tmpfs are in the target's mountinfo.
 * Names only tell what is left apart: a memfd or a SysV segment that is not on that mount can only be of huge pages.
 * Asking the file system itself, by fstatfs(2) behind map_files, was rejected: it may be a dead server's. */

#include "act/mover-maps.h"

#include <string.h>
#include <sys/sysmacros.h>

/* Mounts remembered of one process. A host with very many containers shows some thousands. */
#define MOUNTS_MAX 16384U

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Reads digits of `base`, 10 or 16, at *p and moves past them. */
static bool scan_number(const char **p, unsigned base, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;

    for (;; s++) {
        unsigned digit;

        if (*s >= '0' && *s <= '9')
            digit = (unsigned)(*s - '0');
        else if (base == 16 && *s >= 'a' && *s <= 'f')
            digit = (unsigned)(*s - 'a') + 10;
        else
            break;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    if (s == *p)
        return false;
    *p = s;
    *ret = v;
    return true;
}

static bool scan_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool scan_device(const char **p, unsigned base, uint64_t *ret)
{
    uint64_t major_number, minor_number;

    if (!scan_number(p, base, &major_number) || !scan_char(p, ':') || !scan_number(p, base, &minor_number) ||
        major_number > UINT32_MAX || minor_number > UINT32_MAX)
        return false;
    *ret = makedev((unsigned)major_number, (unsigned)minor_number);
    return true;
}

/* Moves past a word and the blanks behind it. */
static bool skip_word(const char **p)
{
    size_t n = strcspn(*p, " \n");

    if (n == 0)
        return false;
    *p += n;
    *p += strspn(*p, " ");
    return true;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/*
 * Mounts
 */

void mover_mounts_done(MoverMounts *mounts)
{
    free(mounts->list);
    *mounts = (MoverMounts){0};
}

static MoverKind kind_of_type(const char *type)
{
    if (starts_with(type, "tmpfs "))
        return MOVER_KIND_SHMEM;
    if (starts_with(type, "hugetlbfs "))
        return MOVER_KIND_HUGETLB;
    return MOVER_KIND_FILE;
}

static bool at_end(const char *p)
{
    return *p == '\0' || *p == '\n';
}

/* "36 35 0:24 /a /b rw,noatime master:1 - tmpfs tmpfs rw": the device is the third word, the type follows the "-". */
static int parse_mount(const char *line, MoverMounts *mounts)
{
    uint64_t device;
    MoverKind kind;

    for (int i = 0; i < 2; i++)
        if (!skip_word(&line))
            return 0;
    if (!scan_device(&line, 10, &device) || !scan_char(&line, ' '))
        return 0;
    while (!at_end(line) && !starts_with(line, "- "))
        if (!skip_word(&line))
            line += strspn(line, " ");
    if (at_end(line))
        return 0;
    kind = kind_of_type(line + 2);
    if (kind == MOVER_KIND_FILE || mounts->n >= MOUNTS_MAX)
        return 0;
    if (!GROW(mounts->list, mounts->capacity, mounts->n + 1))
        return -ENOMEM;
    mounts->list[mounts->n++] = (MoverMount){.device = device, .kind = kind};
    return 0;
}

int mover_mounts_parse(const char *text, MoverMounts *mounts)
{
    for (; *text; text = next_line(text)) {
        int r = parse_mount(text, mounts);

        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * Mappings
 */

static MoverKind kind_of_path(const char *path, uint64_t device, const MoverMounts *mounts)
{
    if (device == mounts->internal)
        return MOVER_KIND_SHMEM;
    /* The /dev of a container is a tmpfs, too. */
    if (starts_with(path, "/dev/") && !starts_with(path, "/dev/shm/") && !starts_with(path, "/dev/hugepages"))
        return MOVER_KIND_DEVICE;
    for (size_t i = 0; i < mounts->n; i++)
        if (mounts->list[i].device == device)
            return mounts->list[i].kind;
    if (starts_with(path, "/memfd:") || starts_with(path, "/SYSV") || starts_with(path, "/anon_hugepage"))
        return MOVER_KIND_HUGETLB;
    return MOVER_KIND_FILE;
}

static MoverKind kind_of(const char *path, uint64_t device, uint64_t inode, const MoverMounts *mounts)
{
    if (*path == '/')
        return kind_of_path(path, device, mounts);
    if (inode == 0 && (at_end(path) || starts_with(path, "[heap]") || starts_with(path, "[stack") ||
                       starts_with(path, "[anon:")))
        return MOVER_KIND_ANON;
    if (starts_with(path, "[anon_shmem:"))
        return MOVER_KIND_SHMEM;
    return MOVER_KIND_DEVICE;
}

static int parse_mapping(const char *p, const MoverMounts *mounts, MoverMapping *ret)
{
    uint64_t start, end, device, inode;
    const char *mode;

    if (!scan_number(&p, 16, &start) || !scan_char(&p, '-') || !scan_number(&p, 16, &end) || start >= end ||
        !scan_char(&p, ' '))
        return -EINVAL;
    mode = p;
    if (!skip_word(&p) || p - mode < 5 || !skip_word(&p) || !scan_device(&p, 16, &device) ||
        !scan_char(&p, ' ') || !scan_number(&p, 10, &inode))
        return -EINVAL;
    p += strspn(p, " ");
    *ret = (MoverMapping){
        .start = start,
        .end = end,
        .kind = kind_of(p, device, inode, mounts),
        .accessible = mode[0] != '-' || mode[1] != '-' || mode[2] != '-',
    };
    return 1;
}

int mover_maps_next(const char **text, const MoverMounts *mounts, MoverMapping *ret)
{
    const char *line = *text;

    if (!*line)
        return 0;
    *text = next_line(line);
    return parse_mapping(line, mounts, ret);
}
