/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "allocations.h"

#include <stdbool.h>
#include <stddef.h>

/* Allocations left before one fails; negative: none fails. */
static int n_left = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool out_of_memory(void)
{
    return n_left >= 0 && n_left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return out_of_memory() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return out_of_memory() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return out_of_memory() ? NULL : __real_realloc(p, size);
}

void allocations_fail_after(int n)
{
    n_left = n;
}
