/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* UTF-8, as far as configuration files and messages need it. */

#include <stdbool.h>
#include <stddef.h>

/* The longest character. */
#define UTF8_MAX 4U

/* Bytes of the well-formed UTF-8 character at `s` (1 to 4), looking at no more than `len` of them; 0 when
 * there is none: a stray or cut byte, an overlong form, a surrogate. NUL and control characters count as
 * well-formed. */
size_t utf8_length(const char *s, size_t len);

/* Whether that character, of `n` bytes, is one (n > 0) and no control character. */
bool utf8_is_printable(const char *s, size_t n);

/* Makes untrusted text printable, as process names and paths are raw bytes, and D-Bus strings, log lines and JSON are
 * UTF-8: see "Conventions" in numaplace-json(5). Copies `s`, keeping printable UTF-8 and writing every other byte as
 * \xNN; \-escapes already in the text are not recognised, but a backslash that stands before "x" is written as \x5c, so
 * that the result can be read back. Cut at `size` without breaking a character. NULL is "". Returns `buf`. */
char *utf8_escape(const char *s, char *buf, size_t size);

/* The same of any length: malloc'd, NULL when memory is out. */
char *utf8_escape_alloc(const char *s);
