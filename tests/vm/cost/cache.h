/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A set-associative cache of line keys: two ways, the more recently used one first.
 *
 * Sets are hashed by page, because the two sides of a page copy often lie a power of two apart and would evict each
 * other on every word: directly indexed caches charged page migration several times too much. Lines of one page keep
 * their order, so a page never conflicts with itself.
 *
 * Other threads may look while the owner changes it. Accesses are atomic but not ordered: a race costs a miss more or
 * less, never a wrong value. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_WAYS 2U
/* Lines of a 4 KiB page, as a power of two. */
#define CACHE_PAGE_SHIFT 6

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

/* Whether `key`, which belongs to `line`, is there. Changes nothing. */
static inline bool cache_has(const Cache *c, uint64_t line, uint64_t key)
{
    uint64_t *set = cache_set(c, line);

    return __atomic_load_n(&set[0], __ATOMIC_RELAXED) == key ||
           __atomic_load_n(&set[1], __ATOMIC_RELAXED) == key;
}

/* Makes `key` the first of its set; what was first becomes second. */
static inline void cache_put(Cache *c, uint64_t line, uint64_t key)
{
    uint64_t *set = cache_set(c, line);
    uint64_t first = __atomic_load_n(&set[0], __ATOMIC_RELAXED);

    if (first == key)
        return;
    __atomic_store_n(&set[1], first, __ATOMIC_RELAXED);
    __atomic_store_n(&set[0], key, __ATOMIC_RELAXED);
}
