/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the targets share. */

#include "base/util.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must hold in NDEBUG builds too. */
static inline void check(bool condition)
{
    if (!condition)
        abort();
}

/* The input as a text, of exactly its size, so that the address sanitizer sees a read past its end. The caller frees
 * it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    check(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
