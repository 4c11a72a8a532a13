/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The few macros every room uses: cleanup attributes, ownership transfer, growable arrays. */

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
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

static inline void closedir_p(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

#define CLEANUP_FREE  CLEANUP(free_p)
#define CLEANUP_CLOSE CLEANUP(close_p)

/* Whether a text of `len` bytes ends with `suffix`, and has something before it. */
static inline bool has_suffix(const char *text, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);

    return len > n && memcmp(text + len - n, suffix, n) == 0;
}

static inline bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Makes room for `need` elements in the malloc'd array `*array` of capacity `*capacity`, at least doubling the
 * capacity if it grows. Returns false, with the array untouched, when out of memory or if the size would overflow. */
bool util_grow(void **array, size_t *capacity, size_t need, size_t element_size);

#define GROW(array, capacity, need) util_grow((void **)&(array), &(capacity), (need), sizeof(*(array)))

/* Appends a value to an array of `n` elements and counts it. 0 or -ENOMEM. */
#define APPEND(array, capacity, n, ...) \
    (GROW(array, capacity, (n) + 1) ? ((array)[(n)++] = (__VA_ARGS__), 0) : -ENOMEM)

/* Opens a gap for one element at index `at` of an array of `*n` elements and increments `*n`. The caller
 * fills the gap. Returns false, with nothing changed, in the cases util_grow() does. */
bool util_insert(void **array, size_t *capacity, size_t *n, size_t at, size_t element_size);

#define INSERT(array, capacity, n, at) \
    util_insert((void **)&(array), &(capacity), &(n), (at), sizeof(*(array)))

/* The lowest index `i` from 0 to `n` - 1 for which the expression `below` is false, or `n` if there is none.
 * The array must be sorted so that `below` is true up to some index and false from there on. This is a macro
 * because a comparison callback would be most of the cost of finding a thread. */
#define LOWER_BOUND(i, n, below)                  \
    ({                                            \
        size_t _low = 0, _high = (n);             \
        while (_low < _high) {                    \
            size_t i = _low + (_high - _low) / 2; \
            if (below)                            \
                _low = i + 1;                     \
            else                                  \
                _high = i;                        \
        }                                         \
        _low;                                     \
    })
