/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A line is an address, a memory policy that may contain blanks, and words key=value; blanks in file names
 * are escaped.
 *
 *     7f2c00000000 default anon=512 dirty=512 active=0 N0=384 N1=128 kernelpagesize_kB=4
 *     7f2c40000000 default file=/memfd:heap\040(deleted) dirty=100 mapmax=2 N1=100 kernelpagesize_kB=4
 *     7f2c50000000 default file=/usr/lib/libc.so.6 anon=2 dirty=2 mapped=8 mapmax=40 N0=10 kernelpagesize_kB=4
 *
 * The first has 1.5 MiB on node 0 and 0.5 MiB on node 1, the second 200 KiB on node 1 (two processes map it),
 * the third 8 KiB on node 0: two of ten pages were written. A transparent huge page counts as its small
 * pages, one of hugetlbfs as one page, with kernelpagesize_kB=2048.
 *
 * If only some pages were written, the text does not say on which nodes. They are taken to be spread evenly. */

#include "probe/memory/numa-maps.h"

#include "base/lines.h"
#include "base/scan.h"
#include "base/util.h"
#include "kernel/shared-maps.h"
#include "world/world.h"

#include <string.h>

/* Page counts are below this, so that a product of two fits; 16 TiB of small pages in one mapping. */
#define PAGES_MAX (1ULL << 32)

/* 16 GiB, the largest huge page of any architecture. */
#define PAGE_KB_MAX (1ULL << 24)

static bool scan_count(const char **p, uint64_t *ret)
{
    return scan_u64(p, ret) && *ret < PAGES_MAX && (**p == ' ' || **p == '\0');
}

/* A word "N0=384". Returns 0; 1: it is another word; -EINVAL. */
static int scan_node(const char *word, uint64_t *ret_node, uint64_t *ret_pages)
{
    if (!scan_word(&word, "N") || !scan_u64(&word, ret_node) || *word++ != '=')
        return 1;
    return *ret_node < NUMA_MAPS_NODES_MAX && scan_count(&word, ret_pages) ? 0 : -EINVAL;
}

/* Takes in one word; most are of no use here. 0 or -EINVAL. */
static int read_word(const char *word, NumaMapsLine *mapping)
{
    uint64_t node, pages, kb;
    int r = scan_node(word, &node, &pages);

    if (r <= 0) {
        mapping->pages += r == 0 ? pages : 0;
        return r;
    }
    if (scan_word(&word, "file=")) {
        mapping->shared |= shared_maps_is_memory(word);
        return 0;
    }
    if (scan_word(&word, "anon="))
        return scan_count(&word, &mapping->anon) ? 0 : -EINVAL;
    if (scan_word(&word, "mapmax="))
        return scan_count(&word, &mapping->n_maps) && mapping->n_maps > 0 ? 0 : -EINVAL;
    if (scan_word(&word, "kernelpagesize_kB=")) {
        if (!scan_count(&word, &kb) || kb == 0 || kb > PAGE_KB_MAX)
            return -EINVAL;
        mapping->page_bytes = kb << 10;
        return 0;
    }
    if (scan_word(&word, "huge") && (*word == ' ' || *word == '\0'))
        mapping->shared = mapping->huge = true;
    return 0;
}

/* The kernel balances memory with no policy, and with one that asks for it; all other memory is bound. */
static bool is_bound(const char *policy)
{
    size_t len = strcspn(policy, " ");

    /* "prefer (many)=balancing:0-1", since Linux 6.10. */
    if (strncmp(policy + len, " (", 2) == 0)
        len += 1 + strcspn(policy + len + 1, " ");
    return !(len == 7 && strncmp(policy, "default", len) == 0) && !memmem(policy, len, "balancing", 9);
}

/* Whether somebody chose its nodes, even if the kernel may balance it among these. Local allocation chooses none. */
static bool names_nodes(const char *policy)
{
    return strncmp(policy, "default", 7) != 0 && strncmp(policy, "local", 5) != 0;
}

int numa_maps_parse(const char *line, NumaMapsLine *ret)
{
    NumaMapsLine mapping = {.n_maps = 1};
    size_t len = strspn(line, "0123456789abcdef");

    if (len == 0 || len > 16 || line[len] != ' ')
        return -EINVAL;
    mapping.address = strtoull(line, NULL, 16);
    mapping.words = scan_next_word(line);
    mapping.bound = is_bound(mapping.words);
    mapping.chosen = names_nodes(mapping.words);
    for (const char *word = mapping.words; *word; word = scan_next_word(word)) {
        int r = read_word(word, &mapping);

        if (r < 0)
            return r;
    }
    if (mapping.pages > 0 && (mapping.page_bytes == 0 || mapping.pages >= PAGES_MAX))
        return -EINVAL;
    *ret = mapping;
    return 0;
}

int numa_maps_add(NumaMaps *maps, const char *line)
{
    NumaMapsLine mapping;
    int r = numa_maps_parse(line, &mapping);

    if (r < 0)
        return r;

    for (const char *word = mapping.words; mapping.pages > 0 && *word; word = scan_next_word(word)) {
        uint64_t node, pages, bytes;

        if (scan_node(word, &node, &pages) != 0)
            continue;
        pages = mapping.shared ? pages / mapping.n_maps
                               : pages * MIN(mapping.anon, mapping.pages) / mapping.pages;
        bytes = MIN(pages, WORLD_MEMORY_MAX / mapping.page_bytes) * mapping.page_bytes;
        maps->bytes[node] = MIN(maps->bytes[node] + bytes, WORLD_MEMORY_MAX);
        if (mapping.chosen)
            maps->bound_bytes = MIN(maps->bound_bytes + bytes, WORLD_MEMORY_MAX);
    }
    return 0;
}

static int add_line(void *userdata, const char *line)
{
    return numa_maps_add(userdata, line);
}

int numa_maps_read(int dir_fd, NumaMaps *ret)
{
    return lines_read(dir_fd, "numa_maps", add_line, ret);
}
