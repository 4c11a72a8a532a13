/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/user-cache.h"

#include <pwd.h>
#include <string.h>
#include <uthash.h>

typedef struct UserEntry {
    uid_t uid;
    char *name; /* NULL: there is none; this is remembered too, a missing user is the slowest look-up */
    UT_hash_handle hh;
} UserEntry;

struct UserCache {
    UserEntry *by_uid;
};

UserCache *user_cache_new(void)
{
    return calloc(1, sizeof(UserCache));
}

static void entry_drop(UserCache *cache, UserEntry *e)
{
    HASH_DEL(cache->by_uid, e);
    free(e->name);
    free(e);
}

void user_cache_clear(UserCache *cache)
{
    UserEntry *e, *next;

    HASH_ITER (hh, cache->by_uid, e, next)
        entry_drop(cache, e);
}

UserCache *user_cache_free(UserCache *cache)
{
    if (!cache)
        return NULL;
    user_cache_clear(cache);
    free(cache);
    return NULL;
}

const char *user_cache_name(UserCache *cache, uid_t uid)
{
    UserEntry *e = NULL;
    struct passwd *pw;

    HASH_FIND(hh, cache->by_uid, &uid, sizeof(uid), e);
    if (e)
        return e->name;

    if (HASH_COUNT(cache->by_uid) >= USER_CACHE_MAX)
        user_cache_clear(cache);
    e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->uid = uid;
    pw = getpwuid(uid);
    e->name = pw ? strdup(pw->pw_name) : NULL;
    HASH_ADD(hh, cache->by_uid, uid, sizeof(e->uid), e);
    if (!e->hh.tbl) {
        free(e->name);
        free(e);
        return NULL;
    }
    return e->name;
}
