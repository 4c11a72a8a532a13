/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cells are kept as printable text until the whole table is known, then written column by column. A very wide cell is
 * not cut: whoever reads a placement wants to see the whole mask, and can pipe the table through `cut` otherwise. */

#include "ctl/table.h"

#include "base/parse.h"
#include "ctl/style.h"
#include "ctl/text.h"

#include <stdarg.h>
#include <stdint.h>

#define GAP 2 /* blanks between columns */

typedef struct Cell {
    char *text;
    size_t width;
    const char *colour;
} Cell;

struct Table {
    const TableColumn *columns;
    size_t n_columns;
    Cell *cells;
    size_t n_cells, capacity;
    bool failed; /* memory was out at some cell */
};

int table_new(const TableColumn *columns, size_t n_columns, Table **ret)
{
    Table *table = calloc(1, sizeof(*table));

    assert(n_columns > 0);
    if (!table)
        return -ENOMEM;
    table->columns = columns;
    table->n_columns = n_columns;
    *ret = table;
    return 0;
}

Table *table_free(Table *table)
{
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table);
    return NULL;
}

void table_add(Table *table, const char *colour, const char *text)
{
    CLEANUP_FREE char *printable = text_printable(text ? text : "-");

    if (!printable || !GROW(table->cells, table->capacity, table->n_cells + 1)) {
        table->failed = true;
        return;
    }
    table->cells[table->n_cells] = (Cell){
        .width = text_width(printable),
        .colour = colour,
    };
    table->cells[table->n_cells++].text = TAKE_PTR(printable);
}

void table_addf(Table *table, const char *colour, const char *format, ...)
{
    CLEANUP_FREE char *text = NULL;
    va_list ap;

    va_start(ap, format);
    text = format_vtext(format, ap);
    va_end(ap);
    if (text)
        table_add(table, colour, text);
    else
        table->failed = true;
}

static size_t column_width(const Table *table, size_t column, bool legend)
{
    size_t width = legend ? text_width(table->columns[column].title) : 0;

    for (size_t i = column; i < table->n_cells; i += table->n_columns)
        width = MAX(width, table->cells[i].width);
    return width;
}

static void print_blanks(FILE *file, size_t n)
{
    while (n-- > 0)
        (void)fputc(' ', file);
}

/* One cell and the gap after it. No blanks at the end of a line, so that copied text is clean. */
static void print_cell(FILE *file, const Cell *cell, size_t width, bool right, bool last, bool colour)
{
    size_t blanks = width > cell->width ? width - cell->width : 0;
    bool coloured = colour && cell->colour;

    if (right)
        print_blanks(file, blanks);
    (void)fprintf(file, "%s%s%s", coloured ? cell->colour : "", cell->text, coloured ? STYLE_RESET : "");
    if (!last)
        print_blanks(file, (right ? 0 : blanks) + GAP);
}

int table_print(const Table *table, FILE *file, bool legend, bool colour)
{
    CLEANUP_FREE size_t *widths = NULL;

    if (table->failed)
        return -ENOMEM;
    assert(table->n_cells % table->n_columns == 0);

    widths = calloc(table->n_columns, sizeof(*widths));
    if (!widths)
        return -ENOMEM;
    for (size_t c = 0; c < table->n_columns; c++)
        widths[c] = column_width(table, c, legend);

    for (size_t c = 0; legend && c < table->n_columns; c++) {
        char *title = (char *)table->columns[c].title; /* only read by print_cell() */
        const Cell cell = {.text = title, .width = text_width(title), .colour = STYLE_BOLD};

        print_cell(file, &cell, widths[c], table->columns[c].right, c + 1 == table->n_columns, colour);
        if (c + 1 == table->n_columns)
            (void)fputc('\n', file);
    }
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t c = i % table->n_columns;
        bool last = c + 1 == table->n_columns;

        print_cell(file, &table->cells[i], widths[c], table->columns[c].right, last, colour);
        if (last)
            (void)fputc('\n', file);
    }
    return 0;
}
