/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The terminal, by ncurses: with colours if it has them and NO_COLOR is not set, else with bold, dim and reverse. */

#include "ctl/top/frame.h"

#include <stdbool.h>

typedef enum ScreenKey {
    SCREEN_KEY_NONE = 0, /* timeout, or a key without meaning */
    SCREEN_KEY_UP = 0x110000,
    SCREEN_KEY_DOWN,
    SCREEN_KEY_LEFT,
    SCREEN_KEY_RIGHT,
    SCREEN_KEY_PAGE_UP,
    SCREEN_KEY_PAGE_DOWN,
    SCREEN_KEY_ENTER,
    SCREEN_KEY_ESCAPE,
    SCREEN_KEY_BACKSPACE,
    SCREEN_KEY_GONE, /* the terminal has gone */
} ScreenKey;

/* Returns false if the terminal cannot be used ($TERM). */
bool screen_open(bool colour);
void screen_close(void);

void screen_size(unsigned *ret_rows, unsigned *ret_columns);
void screen_show(const Frame *frame);

/* Waits at most that long for a key: one of the above, or a character. */
int screen_key(int timeout_msec);
