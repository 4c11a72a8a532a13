/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Strict parsers of short texts: the whole string must match, except surrounding blanks; nothing is guessed.
 * All return 0, -EINVAL (wrong form), -ERANGE (right form, but too large) or, from parse_list(), -ENOMEM.
 * They write ret_ only on 0. */

#include "base/util.h"

#include <hwloc/bitmap.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* For CLEANUP(). NULL is fine. */
static inline void bitmap_free_p(hwloc_bitmap_t *set)
{
    hwloc_bitmap_free(*set);
}
#define CLEANUP_BITMAP CLEANUP(bitmap_free_p)

/* Decimal digits only, no sign. */
int parse_u64(const char *s, uint64_t *ret);
int parse_u32(const char *s, uint32_t *ret);

/* An optional sign and decimal digits. */
int parse_i32(const char *s, int32_t *ret);

/* yes/no, true/false, on/off, 1/0, in any case. */
int parse_bool(const char *s, bool *ret);

/* A time span: "100ms", "2s", "1min 30s", "1.5s". Units are us, usec, ms, msec, s, sec, m, min, h, hour, d,
 * day; a bare number is seconds. The result is in microseconds. */
int parse_span_usec(const char *s, uint64_t *ret);

/* A size: digits, an optional fraction and an optional suffix K, M, G or T (powers of 1024, either case). A
 * nonzero fraction needs a suffix. The result is in bytes. */
int parse_bytes(const char *s, uint64_t *ret);

/* "12%", "1.5%" or "300permille" as permille. A bare number is -EINVAL, because its unit would be a guess. */
int parse_permille(const char *s, uint32_t *ret);

/* A kernel CPU or node list, "0-3,8,10-11"; the empty string is the empty set. Numbers above `max` are -ERANGE, a
 * descending range is -EINVAL. `ret` is overwritten, and only on success. */
int parse_list(const char *s, unsigned max, hwloc_bitmap_t ret);

/* Formats a bitmap in the form parse_list() reads. Returns a malloc'd string, or NULL when out of memory. An
 * infinite bitmap is cut at `max`. */
char *format_list(hwloc_const_bitmap_t set, unsigned max);

/* Like asprintf(3). Returns a malloc'd string, or NULL when out of memory. */
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *format_vtext(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

/* Formats a message into *ret_error (malloc'd, or NULL when out of memory) and returns `error`. */
int format_error(char **ret_error, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Returns what `print` writes about `object`, malloc'd, with its length in *ret_len (may be NULL). Returns
 * NULL when out of memory or if `print` returns nonzero. */
typedef int (*FormatPrint)(FILE *out, const void *object);
char *format_printed(FormatPrint print, const void *object, size_t *ret_len);

/* Formats microseconds in the form parse_span_usec() reads: "1min 30s", "150ms", "0s". Returns `buf`. */
char *format_span(uint64_t usec, char *buf, size_t size);

/* The largest CPU number this program supports; the kernel's own limit is 8192 (CONFIG_NR_CPUS, MAXSMP). */
#define PARSE_CPU_MAX 65535U
