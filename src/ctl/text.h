/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Foreign text (process names, command lines, paths) made safe to print.
 *
 * A process may call itself anything, terminal escape sequences included, and root reads the table. So
 * nothing foreign reaches standard output or standard error except through text_printable() or as JSON. */

#include <stdarg.h>
#include <stddef.h>

/* The text for a terminal: control characters, direction overrides and bytes that are not characters of the
 * current locale appear as \n, \t or \xNN. Backslashes are not doubled, because unit names are full of them.
 * Malloc'd, NULL when out of memory. */
char *text_printable(const char *s);

/* The same for formatted text. */
char *text_vprintable(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

/* The text as valid UTF-8 in any locale: other bytes become \xNN. Control characters stay, because JSON
 * escapes them. Malloc'd, NULL when out of memory. */
char *text_utf8(const char *s, size_t len);
