/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/intern.h"

#include <string.h>
#include <uthash.h>

typedef struct InternString {
    UT_hash_handle hh;
    unsigned generation;
    char text[];
} InternString;

/* Masks are keyed by their list form: the storage of an hwloc bitmap has no canonical length, so its words cannot be
 * hashed. The last result is remembered because callers intern the same mask thread after thread. */
typedef struct InternMask {
    UT_hash_handle hh;       /* in by_key */
    UT_hash_handle hh_value; /* in by_value */
    unsigned generation;
    hwloc_bitmap_t set;
    char *key;
} InternMask;

struct InternPool {
    InternString *strings;
    InternMask *by_key;
    InternMask *by_value; /* keyed by the bitmap pointer that callers hold */
    InternMask *last;
    unsigned generation;
};

InternPool *intern_pool_new(void)
{
    return calloc(1, sizeof(InternPool));
}

static void string_drop(InternPool *pool, InternString *e)
{
    HASH_DEL(pool->strings, e);
    free(e);
}

static InternMask *mask_free(InternMask *e)
{
    hwloc_bitmap_free(e->set);
    free(e->key);
    free(e);
    return NULL;
}

static void mask_drop(InternPool *pool, InternMask *e)
{
    if (pool->last == e)
        pool->last = NULL;
    HASH_DELETE(hh, pool->by_key, e);
    HASH_DELETE(hh_value, pool->by_value, e);
    (void)mask_free(e);
}

InternPool *intern_pool_free(InternPool *pool)
{
    InternString *s, *s_next;
    InternMask *m, *m_next;

    if (!pool)
        return NULL;
    HASH_ITER (hh, pool->strings, s, s_next)
        string_drop(pool, s);
    HASH_ITER (hh, pool->by_key, m, m_next)
        mask_drop(pool, m);
    free(pool);
    return NULL;
}

const char *intern_string(InternPool *pool, const char *s)
{
    InternString *e = NULL;
    size_t len;

    if (!s)
        return NULL;

    len = strlen(s);
    HASH_FIND(hh, pool->strings, s, len, e);
    if (e) {
        e->generation = pool->generation;
        return e->text;
    }

    e = calloc(1, sizeof(*e) + len + 1);
    if (!e)
        return NULL;
    memcpy(e->text, s, len);
    e->generation = pool->generation;
    HASH_ADD_KEYPTR(hh, pool->strings, e->text, len, e);
    if (!e->hh.tbl) { /* out of memory: not added */
        free(e);
        return NULL;
    }
    return e->text;
}

/* Takes ownership of `key`, also on failure. */
static InternMask *mask_add(InternPool *pool, hwloc_const_bitmap_t set, char *key, size_t len)
{
    InternMask *e = calloc(1, sizeof(*e));

    if (!e) {
        free(key);
        return NULL;
    }
    e->key = key;
    e->set = hwloc_bitmap_dup(set);
    if (!e->set)
        return mask_free(e);
    HASH_ADD_KEYPTR(hh, pool->by_key, e->key, len, e);
    if (!e->hh.tbl) /* out of memory: not added */
        return mask_free(e);
    HASH_ADD(hh_value, pool->by_value, set, sizeof(CpuMask), e);
    if (!e->hh_value.tbl) {
        HASH_DELETE(hh, pool->by_key, e);
        return mask_free(e);
    }
    return e;
}

CpuMask intern_mask(InternPool *pool, hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *key = NULL;
    InternMask *e = NULL;
    size_t len;

    if (pool->last && hwloc_bitmap_isequal(pool->last->set, set)) {
        pool->last->generation = pool->generation;
        return pool->last->set;
    }

    if (hwloc_bitmap_list_asprintf(&key, set) < 0)
        return NULL;
    len = strlen(key);
    HASH_FIND(hh, pool->by_key, key, len, e);
    if (!e)
        e = mask_add(pool, set, TAKE_PTR(key), len);
    if (!e)
        return NULL;

    e->generation = pool->generation;
    pool->last = e;
    return e->set;
}

bool intern_has_string(const InternPool *pool, const char *s)
{
    InternString *e = NULL;

    if (!s)
        return false;
    HASH_FIND(hh, pool->strings, s, strlen(s), e);
    return e && e->text == s;
}

bool intern_has_mask(const InternPool *pool, CpuMask mask)
{
    InternMask *e = NULL;

    if (!mask)
        return false;
    if (pool->last && pool->last->set == mask)
        return true;
    HASH_FIND(hh_value, pool->by_value, &mask, sizeof(CpuMask), e);
    return e;
}

void intern_pool_begin(InternPool *pool)
{
    pool->generation++;
}

void intern_mark_string(InternPool *pool, const char *s)
{
    InternString *e;

    if (!s)
        return;
    e = (InternString *)(void *)((char *)s - offsetof(InternString, text));
    e->generation = pool->generation;
}

void intern_mark_mask(InternPool *pool, CpuMask mask)
{
    InternMask *e = NULL;

    if (!mask || (pool->last && pool->last->set == mask && pool->last->generation == pool->generation))
        return;
    HASH_FIND(hh_value, pool->by_value, &mask, sizeof(CpuMask), e);
    assert(e);
    if (!e)
        return;
    e->generation = pool->generation;
    pool->last = e;
}

void intern_pool_sweep(InternPool *pool)
{
    InternString *s, *s_next;
    InternMask *m, *m_next;

    HASH_ITER (hh, pool->strings, s, s_next)
        if (s->generation != pool->generation)
            string_drop(pool, s);
    HASH_ITER (hh, pool->by_key, m, m_next)
        if (m->generation != pool->generation)
            mask_drop(pool, m);
}

size_t intern_pool_size(const InternPool *pool)
{
    return HASH_CNT(hh, pool->strings) + HASH_CNT(hh, pool->by_key);
}
