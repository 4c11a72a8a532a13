/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Login names of the users whose processes are looked at. A look-up may go over the network (NSS), so each
 * uid is looked up once per reload, and none while no policy names users. */

#include "base/util.h"

#include <sys/types.h>

#define USER_CACHE_MAX 4096U /* uids kept; with more, all are forgotten and looked up again */

typedef struct UserCache UserCache;

UserCache *user_cache_new(void);
UserCache *user_cache_free(UserCache *cache);

/* The login name, valid until the next call; NULL: none, or out of memory. */
const char *user_cache_name(UserCache *cache, uid_t uid);

/* Forgets everything: names may have changed. */
void user_cache_clear(UserCache *cache);
