/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* UTF-8, as far as configuration files and messages need it. */

#include <stddef.h>

/* Bytes of the well-formed UTF-8 character at `s` (1 to 4), looking at no more than `len` of them; 0 when
 * there is none: a stray or cut byte, an overlong form, a surrogate. NUL and control characters count as
 * well-formed. */
size_t conf_utf8_length(const char *s, size_t len);
