/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cache_init(Cache *c, uint64_t lines)
{
    uint64_t sets = lines / CACHE_WAYS;

    assert(sets >> CACHE_PAGE_SHIFT >= 1 && (sets & (sets - 1)) == 0);
    c->keys = malloc(lines * sizeof(*c->keys));
    if (!c->keys)
        return -ENOMEM;
    memset(c->keys, 0xff, lines * sizeof(*c->keys));
    c->set_mask = sets - 1;
    return 0;
}

void cache_done(Cache *c)
{
    free(c->keys);
    *c = (Cache){0};
}
