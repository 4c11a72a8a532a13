/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* UTF-8, as far as configuration files and messages need it. */

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the longest character. */
#define UTF8_MAX 4U

/* Returns the length in bytes (1 to 4) of the well-formed UTF-8 character within the first `len` bytes of `s`, or 0
 * for a stray or truncated byte, an overlong form or a surrogate. NUL and control characters count as well-formed. */
size_t utf8_length(const char *s, size_t len);

/* Whether the character at `s`, of `n` bytes, is well-formed (n > 0) and not a control character. */
bool utf8_is_printable(const char *s, size_t n);

/* Makes untrusted text printable: process names and paths are raw bytes, but D-Bus strings, log lines and
 * JSON are UTF-8, see "Conventions" in numaplace-json(5). Copies `s` (NULL: "") to `buf` and writes all but
 * printable UTF-8 as \xNN. A backslash before "x" becomes \x5c, so that the result can be decoded; other
 * \-escapes are copied. Cuts at `size` bytes without breaking a character. Returns `buf`. */
char *utf8_escape(const char *s, char *buf, size_t size);

/* The same without a limit: malloc'd, NULL when out of memory. */
char *utf8_escape_alloc(const char *s);
