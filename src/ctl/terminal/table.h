/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table of text: cells are made printable, columns are as wide as their widest cell, or as a terminal allows. */

#include "ctl/ctl.h"

#include <libsmartcols.h>
#include <stddef.h>
#include <stdio.h>

typedef struct Table Table;

typedef struct TableColumn {
    const char *title;
    int flags; /* SCOLS_FL_RIGHT: numbers; where a terminal is too narrow, _TRUNC: cut, _WRAP: broken into lines */
} TableColumn;

/* Makes a table of columns, which are copied; the options are borrowed for its life: whether it has titles and colours,
 * and stands on a terminal. Returns 0 or -ENOMEM. */
int table_new(const CtlOptions *options, const TableColumn *columns, size_t n_columns, Table **ret);
Table *table_free(Table *table);
DEFINE_CLEANUP(Table *, table_free)

/* Adds the next cell, rows filling from the left. `text` may be foreign; NULL shows as "-". `colour` is an escape
 * sequence of style.h or NULL. Out of memory is remembered and returned by table_print(), so callers need not check. */
void table_add(Table *table, const char *colour, const char *text);
void table_addf(Table *table, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes titles and rows. Must stand at a full row. Columns for which a terminal has no room are left out from the
 * right, and counted below. Returns 0 or -ENOMEM; write errors stay with the stream. */
int table_print(Table *table, FILE *file);
