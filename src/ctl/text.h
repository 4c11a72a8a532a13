/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Foreign text (process names, command lines, paths) made safe to print.
 *
 * A process may call itself anything, terminal escape sequences included, and root reads the table. So nothing foreign
 * reaches standard output or standard error except through text_printable() or as JSON. */

#include <stdarg.h>
#include <stddef.h>

/* The text for a terminal: control characters, direction overrides and bytes that are no characters of the current
 * locale appear as \n, \t or \xNN. Backslashes stay single, as unit names are full of them. Malloc'd, NULL when
 * memory is out. */
char *text_printable(const char *s);

/* The same of a formatted text. */
char *text_vprintable(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

/* The text as valid UTF-8, whatever the locale: bytes that are not become \xNN. Control characters stay, since JSON
 * escapes them itself. Malloc'd, NULL when memory is out. */
char *text_utf8(const char *s, size_t len);
