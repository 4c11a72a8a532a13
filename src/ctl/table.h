/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table of text on a terminal: cells are made printable, columns are as wide as their widest cell. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct Table Table;

typedef struct TableColumn {
    const char *title;
    bool right; /* numbers stand at the right edge */
} TableColumn;

/* Makes a table; `columns` is borrowed for its life. Returns 0 or -ENOMEM. */
int table_new(const TableColumn *columns, size_t n_columns, Table **ret);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table *, table_free)

/* Adds the next cell, rows filling from the left. `text` may be foreign; NULL shows as "-". `colour` is an escape
 * sequence of style.h or NULL. Out of memory is remembered and returned by table_print(), so callers need not check. */
void table_add(Table *table, const char *colour, const char *text);
void table_addf(Table *table, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes titles (when `legend`) and rows. Must stand at a full row. Returns 0 or -ENOMEM; write errors stay with the
 * stream. */
int table_print(const Table *table, FILE *file, bool legend, bool colour);
