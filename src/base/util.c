/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/util.h"

#include <stdint.h>
#include <string.h>

bool util_grow(void **array, size_t *capacity, size_t need, size_t element_size)
{
    size_t n;
    void *p;

    if (need <= *capacity)
        return true;
    if (need > SIZE_MAX / 2 / element_size)
        return false;

    n = MAX(MAX(*capacity * 2, need), (size_t)8);
    p = realloc(*array, n * element_size);
    if (!p)
        return false;

    *array = p;
    *capacity = n;
    return true;
}

bool util_insert(void **array, size_t *capacity, size_t *n, size_t at, size_t element_size)
{
    char *place;

    assert(at <= *n);
    if (!util_grow(array, capacity, *n + 1, element_size))
        return false;
    place = (char *)*array + at * element_size;
    memmove(place + element_size, place, (*n - at) * element_size);
    ++*n;
    return true;
}
