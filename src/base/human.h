/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sizes, time spans and counts in a form that people compare by eye; parse.h has the exact forms. */

#include <stddef.h>
#include <stdint.h>

/* Format as "1.5 GiB" and "2 min 10 s". Both return `buf`. */
char *human_bytes(uint64_t bytes, char *buf, size_t size);
char *human_span(uint64_t usec, char *buf, size_t size);

/* Returns `one` if `n` is 1, else `many`. */
const char *human_noun(uint64_t n, const char *one, const char *many);
