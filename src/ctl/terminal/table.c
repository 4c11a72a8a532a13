/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libsmartcols draws. Its own escaping is off, because it passes direction overrides and escapes the backslash of
 * \xNN, which unit names contain. Its nowrap mode would cut a cell anywhere at the edge of a terminal, and half a
 * number reads as another one. So columns that do not fit are left out whole, from the right, and counted below. */

#include "ctl/terminal/table.h"

#include "base/parse.h"
#include "ctl/terminal/style.h"
#include "ctl/text.h"

#include <stdarg.h>
#include <string.h>

#define GAP "  "

struct Table {
    const CtlOptions *options;
    struct libscols_table *scols;
    struct libscols_line *line;
    size_t n_columns, n_cells;
    bool failed; /* out of memory in some cell */
};

/* Before version 2.40 the library leaves room even for titles it does not draw, so without legend they are empty. */
static int add_column(Table *table, const TableColumn *column)
{
    CLEANUP_FREE char *title = text_printable(table->options->legend ? column->title : "");
    struct libscols_column *added =
        title ? scols_table_new_column(table->scols, title, 0, column->flags) : NULL;

    return added ? scols_cell_set_color(scols_column_get_header(added), STYLE_BOLD) : -ENOMEM;
}

static int set_up(struct libscols_table *scols, const CtlOptions *options)
{
    if (!scols || scols_table_set_column_separator(scols, GAP) < 0)
        return -ENOMEM;
    (void)scols_table_enable_noencoding(scols, true);
    (void)scols_table_enable_noheadings(scols, !options->legend);
    (void)scols_table_enable_colors(scols, options->colour);
    (void)scols_table_set_termforce(scols,
                                    options->terminal ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
    if (options->columns > 0)
        (void)scols_table_set_termwidth(scols, options->columns);
    return 0;
}

int table_new(const CtlOptions *options, const TableColumn *columns, size_t n_columns, Table **ret)
{
    CLEANUP(table_free_p) Table *table = calloc(1, sizeof(*table));
    int r;

    assert(n_columns > 0);
    if (!table)
        return -ENOMEM;
    *table = (Table){.options = options, .scols = scols_new_table(), .n_columns = n_columns};
    r = set_up(table->scols, options);
    for (size_t c = 0; r == 0 && c < n_columns; c++)
        r = add_column(table, &columns[c]);
    if (r == 0)
        *ret = TAKE_PTR(table);
    return r;
}

Table *table_free(Table *table)
{
    if (table)
        scols_unref_table(table->scols);
    free(table);
    return NULL;
}

static void add_printable(Table *table, const char *colour, const char *text)
{
    size_t column = table->n_cells++ % table->n_columns;

    if (column == 0)
        table->line = scols_table_new_line(table->scols, NULL);
    /* The library rejects cells of a NULL line. */
    if (!text || scols_line_set_data(table->line, column, text) < 0 ||
        scols_cell_set_color(scols_line_get_cell(table->line, column), colour) < 0)
        table->failed = true;
}

void table_add(Table *table, const char *colour, const char *text)
{
    CLEANUP_FREE char *printable = text_printable(text ? text : "-");

    add_printable(table, colour, printable);
}

void table_addf(Table *table, const char *colour, const char *format, ...)
{
    CLEANUP_FREE char *printable = NULL;
    va_list ap;

    va_start(ap, format);
    printable = text_vprintable(format, ap);
    va_end(ap);
    add_printable(table, colour, printable);
}

/* The library draws no titles without rows, so the titles become a row. */
static void add_titles(Table *table)
{
    (void)scols_table_enable_noheadings(table->scols, true);
    for (size_t c = 0; c < table->n_columns; c++)
        add_printable(table, STYLE_BOLD, scols_column_get_name(scols_table_get_column(table->scols, c)));
}

/* Hides columns from the right until the rest fits. Returns their number or -errno. The library sets column
 * widths when it draws, and has then cut what it may. */
static int hide_columns(Table *table)
{
    CLEANUP_FREE char *drawn = NULL;
    size_t width = 0, n = table->n_columns;
    int r = scols_print_table_to_string(table->scols, &drawn);

    if (r < 0)
        return r;
    for (size_t c = 0; c < n; c++)
        width += scols_column_get_width(scols_table_get_column(table->scols, c)) + (c > 0 ? strlen(GAP) : 0);
    while (n > 1 && width > scols_table_get_termwidth(table->scols)) {
        struct libscols_column *last = scols_table_get_column(table->scols, --n);

        width -= scols_column_get_width(last) + strlen(GAP);
        (void)scols_column_set_flags(last, SCOLS_FL_HIDDEN);
    }
    return (int)(table->n_columns - n);
}

int table_print(Table *table, FILE *file)
{
    int r, hidden;

    assert(table->n_cells % table->n_columns == 0);
    if (table->n_cells == 0 && table->options->legend)
        add_titles(table);
    if (table->failed)
        return -ENOMEM;
    (void)scols_table_set_stream(table->scols, file);
    hidden = table->options->terminal ? hide_columns(table) : 0;
    if (hidden < 0)
        return hidden;
    r = scols_print_table(table->scols);
    if (r == 0 && hidden > 0 && table->options->legend)
        (void)fprintf(file, "(columns that do not fit: %d)\n", hidden);
    return r;
}
