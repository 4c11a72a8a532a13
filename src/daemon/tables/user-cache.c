/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/user-cache.h"

#include <pwd.h>

typedef struct User {
    uid_t uid;
    char *name; /* NULL: none; kept, because a missing user is the slowest look-up */
} User;

struct UserCache {
    User *users; /* ascending uid */
    size_t n, capacity;
};

UserCache *user_cache_new(void)
{
    return calloc(1, sizeof(UserCache));
}

void user_cache_clear(UserCache *cache)
{
    while (cache->n > 0)
        free(cache->users[--cache->n].name);
}

UserCache *user_cache_free(UserCache *cache)
{
    if (!cache)
        return NULL;
    user_cache_clear(cache);
    free(cache->users);
    free(cache);
    return NULL;
}

const char *user_cache_name(UserCache *cache, uid_t uid)
{
    size_t at = LOWER_BOUND(i, cache->n, cache->users[i].uid < uid);
    struct passwd *pw;

    if (at < cache->n && cache->users[at].uid == uid)
        return cache->users[at].name;
    if (cache->n >= USER_CACHE_MAX) {
        user_cache_clear(cache);
        at = 0;
    }
    if (!INSERT(cache->users, cache->capacity, cache->n, at))
        return NULL;
    pw = getpwuid(uid);
    cache->users[at] = (User){uid, pw ? strdup(pw->pw_name) : NULL};
    return cache->users[at].name;
}
