/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sizes, spans and numbers of things for people to compare by eye; parse.h has the exact forms. */

#include <stddef.h>
#include <stdint.h>

/* "1.5 GiB"; "2 min 10 s". Return `buf`. */
char *human_bytes(uint64_t bytes, char *buf, size_t size);
char *human_span(uint64_t usec, char *buf, size_t size);

/* `one` for 1, else `many`. */
const char *human_noun(uint64_t n, const char *one, const char *many);
