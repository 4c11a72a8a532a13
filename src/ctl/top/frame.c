/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/top/frame.h"

#include "ctl/text.h"

#include <stdarg.h>
#include <stdlib.h>

void frame_done(Frame *frame)
{
    free(frame->cells);
    *frame = (Frame){0};
}

int frame_clear(Frame *frame, unsigned rows, unsigned columns)
{
    size_t n = (size_t)rows * columns;

    if (!GROW(frame->cells, frame->capacity, n + 1))
        return -ENOMEM;
    frame->rows = rows;
    frame->columns = columns;
    for (size_t i = 0; i < n; i++)
        frame->cells[i] = (FrameCell){.c = L' '};
    return 0;
}

static unsigned put(Frame *frame, unsigned row, unsigned column, FrameStyle style, wchar_t c)
{
    int width = wcwidth(c);
    FrameCell *cell;

    if (row >= frame->rows || width <= 0 || column + (unsigned)width > frame->columns)
        return column;
    cell = &frame->cells[(size_t)row * frame->columns + column];
    *cell = (FrameCell){.c = c, .style = (uint8_t)style};
    if (width == 2)
        cell[1] = (FrameCell){.style = (uint8_t)style};
    return column + (unsigned)width;
}

unsigned frame_text(Frame *frame, unsigned row, unsigned column, FrameStyle style, const char *format, ...)
{
    CLEANUP_FREE char *text = NULL;
    const char *at;
    mbstate_t state = {0};
    va_list ap;

    va_start(ap, format);
    text = text_vprintable(format, ap);
    va_end(ap);
    for (at = text ? text : "?"; *at;) {
        wchar_t c;
        size_t n = mbrtowc(&c, at, MB_CUR_MAX, &state);

        if (n == 0 || n == (size_t)-1 || n == (size_t)-2)
            break;
        column = put(frame, row, column, style, c);
        at += n;
    }
    return column;
}

unsigned frame_fill(Frame *frame, unsigned row, unsigned column, FrameStyle style, char c, unsigned n)
{
    while (n-- > 0)
        column = put(frame, row, column, style, (wchar_t)c);
    return column;
}

void frame_mark(Frame *frame, unsigned row, FrameStyle style)
{
    for (unsigned i = 0; row < frame->rows && i < frame->columns; i++)
        frame->cells[(size_t)row * frame->columns + i].style = (uint8_t)style;
}

static unsigned line_length(const Frame *frame, unsigned row)
{
    unsigned n = frame->columns;

    while (n > 0 && frame->cells[(size_t)row * frame->columns + n - 1].c == L' ')
        n--;
    return n;
}

void frame_print(const Frame *frame, FILE *out)
{
    unsigned rows = frame->rows;

    while (rows > 0 && line_length(frame, rows - 1) == 0)
        rows--;
    for (unsigned row = 0; row < rows; row++) {
        unsigned n = line_length(frame, row);

        for (unsigned i = 0; i < n; i++) {
            const FrameCell *cell = &frame->cells[(size_t)row * frame->columns + i];

            if (cell->c)
                (void)fprintf(out, "%lc", (wint_t)cell->c);
        }
        (void)fputc('\n', out);
    }
}
