/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes untrusted text printable: process names and paths are raw bytes, D-Bus strings and log lines are UTF-8. */

#include <stddef.h>

/* Copies `s`, keeping printable UTF-8 and writing every other byte as \xNN; \-escapes already in the text are
 * not recognised, but a backslash that stands before "x" is written as \x5c, so that the result can be read
 * back. Cut at `size` without breaking a character. NULL is "". Returns `buf`. */
char *text_escape(const char *s, char *buf, size_t size);

/* The same for a log line or a reply of any length: malloc'd, NULL when memory is out. */
char *text_escape_alloc(const char *s);
