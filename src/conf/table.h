/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Key tables. The parsers, the defaults, the `--json` forms and the check of the manual follow from one row
 * per key. */

#include "conf/ini.h"

#include <stddef.h>
#include <stdint.h>

/* Parses `value` into `*field`, with the row's `arg`. Returns 0, -EINVAL, -ERANGE or -ENOMEM. Replaces
 * `*field`, and frees what it owned, only on 0. */
typedef int (*ConfParser)(const char *value, void *field, const void *arg);

typedef struct ConfKey {
    const char *section;
    const char *name;
    ConfParser parse;
    const void *arg;
    size_t offset;        /* of the field in the object that the table describes */
    const char *fallback; /* the default, in the form the parser reads; "" is the parser's empty value */
    const char *expected; /* what a good value is, for the message: "a time span such as 100ms" */
    const char *fixed;    /* why only scenarios and tests vary it; NULL: files set it */
} ConfKey;

/* The row, or NULL. */
const ConfKey *conf_table_find(const ConfKey *table, size_t n, const char *section, const char *name);

/* Warns when `key` was already set in line `before` of the same file (0: it was not). */
void conf_table_warn_again(const ConfKey *key, unsigned before, const char *file, unsigned line,
                           ConfReport *report);

bool conf_table_has_section(const ConfKey *table, size_t n, const char *section);

/* The section that a mistyped name may mean, which differs in at most two letters, or NULL. */
const char *conf_table_near_section(const ConfKey *table, size_t n, const char *section);

/* Applies one entry of a file to `object`; an empty value resets the key to its default. An unknown section or key, or
 * a constant, is a warning for each key; for one per section, call conf_table_has_section() first. A bad value is an
 * error with file, line and what was expected. Returns 0, -EBADMSG after an error, or -ENOMEM. */
int conf_table_apply(const ConfKey *table, size_t n, void *object, const char *section, const char *name,
                     const char *value, const char *file, unsigned line, ConfReport *report);

/* The same for one row, even a constant one. */
int conf_key_apply(const ConfKey *key, void *object, const char *value, const char *file, unsigned line,
                   ConfReport *report);

/* Sets every field of a zeroed or valid object to its default. Asserts that all defaults parse. Returns 0 or
 * -ENOMEM. */
int conf_table_defaults(const ConfKey *table, size_t n, void *object);

/* The value of one field in the form its parser reads, malloc'd. Returns 0, -ENOMEM, or -EOPNOTSUPP when the
 * parser is not one of those below. */
int conf_key_format(const ConfKey *key, const void *object, char **ret);

#define CONF_AUTO UINT32_MAX

typedef struct ConfRange {
    uint64_t min, max;
} ConfRange;

/* Parsers for ConfKey.parse. `field` points to the type named here. `arg` is a const ConfRange * of valid
 * values or NULL, unless noted.
 *
 * bool      bool; `arg` is unused
 * u32       uint32_t
 * auto      uint32_t, CONF_AUTO for "auto"
 * span      uint64_t, microseconds
 * bytes     uint64_t
 * permille  uint32_t, from "12%"
 * string    char *, malloc'd, NULL when ""; the range limits its length
 * enum      int; `arg` is a NULL-terminated array of names
 * list      hwloc_bitmap_t, allocated, NULL when ""; the range limits its numbers */
int conf_parse_bool(const char *value, void *field, const void *arg);
int conf_parse_u32(const char *value, void *field, const void *arg);
int conf_parse_auto(const char *value, void *field, const void *arg);
int conf_parse_span(const char *value, void *field, const void *arg);
int conf_parse_bytes(const char *value, void *field, const void *arg);
int conf_parse_permille(const char *value, void *field, const void *arg);
int conf_parse_string(const char *value, void *field, const void *arg);
int conf_parse_enum(const char *value, void *field, const void *arg);
int conf_parse_list(const char *value, void *field, const void *arg);
