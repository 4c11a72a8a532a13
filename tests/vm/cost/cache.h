/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A set-associative cache of line keys: two ways, the more recently used one first.
 *
 * A key is a line's number and, in its lower bits, a version. Sets are hashed by page. The two sides of a page copy
 * are often a power of two apart and would evict each other on every word: directly indexed caches charged several
 * times too much for page migration. Lines of one page keep their order, so a page never conflicts with itself. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_WAYS 2U
/* Lines of a 4 KiB page, as a power of two. */
#define CACHE_PAGE_SHIFT   6
#define CACHE_VERSION_BITS 16
/* No line has this key: it would be the last of 2^48. */
#define CACHE_NO_KEY UINT64_MAX

typedef struct Cache {
    uint64_t *keys;
    uint64_t set_mask;
} Cache;

/* `lines` is a power of two of at least 2 * 64. Returns 0 or -ENOMEM. A zeroed cache may be given to _done(). */
int cache_init(Cache *c, uint64_t lines);
void cache_done(Cache *c);

static inline uint64_t *cache_set(const Cache *c, uint64_t line)
{
    uint64_t page = ((line >> CACHE_PAGE_SHIFT) * 0x9e3779b97f4a7c15ULL) >> 32;
    uint64_t in_page = line & ((1ULL << CACHE_PAGE_SHIFT) - 1);

    return c->keys + (((page << CACHE_PAGE_SHIFT) | in_page) & c->set_mask) * CACHE_WAYS;
}

/* True when `key` is there. Changes nothing. */
static inline bool cache_has(const Cache *c, uint64_t key)
{
    const uint64_t *set = cache_set(c, key >> CACHE_VERSION_BITS);

    return set[0] == key || set[1] == key;
}

/* Makes `key` the first of its set. Returns the evicted key, or CACHE_NO_KEY if there is none or it is
 * another version of the same line. */
static inline uint64_t cache_put(Cache *c, uint64_t key)
{
    uint64_t *set = cache_set(c, key >> CACHE_VERSION_BITS), gone = set[1];

    if ((set[0] ^ key) >> CACHE_VERSION_BITS == 0) {
        set[0] = key;
        return CACHE_NO_KEY;
    }
    set[1] = set[0];
    set[0] = key;
    return (gone ^ key) >> CACHE_VERSION_BITS == 0 ? CACHE_NO_KEY : gone;
}
