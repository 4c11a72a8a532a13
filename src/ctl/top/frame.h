/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The contents of a terminal, cell by cell: drawn without one, and checked by tests. */

#include "base/util.h"

#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

typedef enum FrameStyle {
    FRAME_PLAIN,
    FRAME_TITLE,
    FRAME_DIM,
    FRAME_GOOD,
    FRAME_WARN,
    FRAME_BAD,
    FRAME_MARK, /* the selected line */
    FRAME_STYLES,
} FrameStyle;

typedef struct FrameCell {
    wchar_t c; /* 0: right half of the character on the left */
    uint8_t style;
} FrameCell;

typedef struct Frame {
    FrameCell *cells; /* [rows * columns] */
    size_t capacity;
    unsigned rows, columns;
} Frame;

void frame_done(Frame *frame);

/* Resizes and clears it. Returns 0 or -ENOMEM. */
int frame_clear(Frame *frame, unsigned rows, unsigned columns);

/* Writes text, made printable, from a cell on, and cuts what does not fit. Returns the column after it. */
unsigned frame_text(Frame *frame, unsigned row, unsigned column, FrameStyle style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Writes `c` `n` times. Returns the column after it. */
unsigned frame_fill(Frame *frame, unsigned row, unsigned column, FrameStyle style, char c, unsigned n);

/* Gives a whole line a style. */
void frame_mark(Frame *frame, unsigned row, FrameStyle style);

/* Prints it as lines of text, without trailing blanks and empty lines at the end. */
void frame_print(const Frame *frame, FILE *out);
