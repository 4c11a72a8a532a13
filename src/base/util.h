/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few macros every room uses: cleanup attributes, ownership transfer, growable arrays. */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)      ((a) < (b) ? (a) : (b))
#define MAX(a, b)      ((a) > (b) ? (a) : (b))
#define CLAMP(x, l, h) MIN(MAX(x, l), h)

/* Marks a variable to be released by `fn(&variable)` when it leaves scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hands a pointer out of a CLEANUP() variable: evaluates to its value and leaves NULL behind. */
#define TAKE_PTR(p)                        \
    ({                                     \
        __typeof__(p) *_take_pp = &(p);    \
        __typeof__(p) _take_p = *_take_pp; \
        *_take_pp = NULL;                  \
        _take_p;                           \
    })

/* The same for file descriptors: leaves -1 behind. */
#define TAKE_FD(fd)                \
    ({                             \
        int *_take_fdp = &(fd);    \
        int _take_fd = *_take_fdp; \
        *_take_fdp = -1;           \
        _take_fd;                  \
    })

/* Defines `name_p(type *p)`, for CLEANUP(), from a `type name(type)` that returns NULL. */
#define DEFINE_CLEANUP(type, name)       \
    static inline void name##_p(type *p) \
    {                                    \
        if (*p)                          \
            *p = name(*p);               \
    }

static inline void free_p(void *p)
{
    free(*(void **)p);
}

static inline void close_p(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define CLEANUP_FREE  CLEANUP(free_p)
#define CLEANUP_CLOSE CLEANUP(close_p)

/* Makes room for `need` elements in the malloc'd array `*array` of capacity `*capacity`, at least doubling it.
 * Returns false, with the array untouched, when memory is out or the size would overflow. */
bool util_grow(void **array, size_t *capacity, size_t need, size_t element_size);

#define GROW(array, capacity, need) util_grow((void **)&(array), &(capacity), (need), sizeof(*(array)))
