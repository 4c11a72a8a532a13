/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines of maps:
 *
 *     7f2c00000000-7f2c40000000 rw-p 00000000 00:00 0
 *     7f2c50000000-7f2c50100000 rw-s 00000000 00:01 2061   /memfd:heap (deleted)
 *     7f2c60000000-7f2c60020000 r--p 00000000 08:01 1311   /usr/lib/libc.so.6
 *
 * A name does not distinguish shared memory from a file: anybody may call a file /memfd:x. The device number
 * does. The kernel-internal mount has the device of a memfd that the daemon creates; other tmpfs mounts are
 * in the target's mountinfo. Names decide only the remaining cases: a memfd or SysV segment that is not on
 * the internal mount can only consist of huge pages. Asking the file system itself, by fstatfs(2) through
 * map_files, was rejected: it may belong to a dead server. */

#include "kernel/page-maps.h"

#include "base/scan.h"
#include "kernel/procmaps.h"

#include <string.h>
#include <sys/sysmacros.h>

/* Most mounts remembered for one process. A host with very many containers shows some thousands. */
#define MOUNTS_MAX 16384U

/* Moves past a word and the blanks after it. */
static bool skip_word(const char **p)
{
    size_t n = strcspn(*p, " \n");

    if (n == 0)
        return false;
    *p += n;
    *p += strspn(*p, " ");
    return true;
}

/*
 * Mounts
 */

void page_mounts_done(PageMounts *mounts)
{
    free(mounts->list);
    *mounts = (PageMounts){0};
}

static PageKind kind_of_type(const char *type)
{
    if (has_prefix(type, "tmpfs "))
        return PAGE_KIND_SHMEM;
    if (has_prefix(type, "hugetlbfs "))
        return PAGE_KIND_HUGETLB;
    return PAGE_KIND_FILE;
}

static bool at_end(const char *p)
{
    return *p == '\0' || *p == '\n';
}

/* "36 35 0:24 /a /b rw,noatime master:1 - tmpfs tmpfs rw": the third word is the device, the type follows "-". */
static int parse_mount(const char *line, PageMounts *mounts)
{
    uint64_t major_number, minor_number;
    PageKind kind;

    for (int i = 0; i < 2; i++)
        if (!skip_word(&line))
            return 0;
    if (!scan_u64(&line, &major_number) || !scan_word(&line, ":") || !scan_u64(&line, &minor_number) ||
        !scan_word(&line, " ") || major_number > UINT32_MAX || minor_number > UINT32_MAX)
        return 0;
    while (!at_end(line) && !has_prefix(line, "- "))
        if (!skip_word(&line))
            line += strspn(line, " ");
    if (at_end(line))
        return 0;
    kind = kind_of_type(line + 2);
    if (kind == PAGE_KIND_FILE || mounts->n >= MOUNTS_MAX)
        return 0;
    return APPEND(
        mounts->list, mounts->capacity, mounts->n,
        (PageMount){.device = makedev((unsigned)major_number, (unsigned)minor_number), .kind = kind});
}

int page_mounts_parse(const char *text, PageMounts *mounts)
{
    for (; *text; text = scan_next_line(text)) {
        int r = parse_mount(text, mounts);

        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * Mappings
 */

static PageKind kind_of_path(const char *path, uint64_t device, const PageMounts *mounts)
{
    if (device == mounts->internal)
        return PAGE_KIND_SHMEM;
    /* The /dev of a container is a tmpfs too. */
    if (has_prefix(path, "/dev/") && !has_prefix(path, "/dev/shm/") && !has_prefix(path, "/dev/hugepages"))
        return PAGE_KIND_DEVICE;
    for (size_t i = 0; i < mounts->n; i++)
        if (mounts->list[i].device == device)
            return mounts->list[i].kind;
    if (has_prefix(path, "/memfd:") || has_prefix(path, "/SYSV") || has_prefix(path, "/anon_hugepage"))
        return PAGE_KIND_HUGETLB;
    return PAGE_KIND_FILE;
}

static PageKind kind_of(const ProcMaps *maps, const PageMounts *mounts)
{
    const char *path = maps->path;

    if (*path == '/') {
        PageKind kind = kind_of_path(path, makedev(maps->major, maps->minor), mounts);

        return kind == PAGE_KIND_FILE && maps->writable && !maps->shared ? PAGE_KIND_ANON : kind;
    }
    if (maps->inode == 0 && (at_end(path) || has_prefix(path, "[heap]") || has_prefix(path, "[stack") ||
                             has_prefix(path, "[anon:")))
        return PAGE_KIND_ANON;
    if (has_prefix(path, "[anon_shmem:"))
        return PAGE_KIND_SHMEM;
    return PAGE_KIND_DEVICE;
}

int page_maps_next(const char **text, const PageMounts *mounts, PageMapping *ret)
{
    const char *line = *text;
    ProcMaps maps;
    int r;

    if (!*line)
        return 0;
    *text = scan_next_line(line);
    r = procmaps_parse(line, &maps);
    if (r < 0)
        return r;
    *ret = (PageMapping){
        .start = maps.start,
        .end = maps.end,
        .kind = kind_of(&maps, mounts),
        .accessible = maps.readable || maps.writable || maps.executable,
    };
    return 1;
}
