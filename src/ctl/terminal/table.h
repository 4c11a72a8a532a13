/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table of text. Cells are made printable; a column is as wide as its widest cell, or as the terminal allows. */

#include "ctl/ctl.h"

#include <libsmartcols.h>
#include <stddef.h>
#include <stdio.h>

typedef struct Table Table;

typedef struct TableColumn {
    const char *title;
    int flags; /* SCOLS_FL_RIGHT: numbers; on too narrow a terminal _TRUNC cuts and _WRAP wraps */
} TableColumn;

/* Makes a table. `columns` are copied. `options` say whether it has titles and colours and is on a terminal;
 * they are borrowed for its lifetime. Returns 0 or -ENOMEM. */
int table_new(const CtlOptions *options, const TableColumn *columns, size_t n_columns, Table **ret);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table *, table_free)

/* Adds the next cell; rows fill from the left. `text` may be foreign; NULL shows as "-". `colour` is an
 * escape sequence of style.h or NULL. Callers need not check for lack of memory: table_print() returns it. */
void table_add(Table *table, const char *colour, const char *text);
void table_addf(Table *table, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints titles and rows. The last row must be complete. Columns that do not fit the terminal are left out
 * from the right, and counted below. Returns 0 or -ENOMEM; write errors stay with the stream. */
int table_print(Table *table, FILE *file);
