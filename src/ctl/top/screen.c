/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/top/screen.h"

#include <curses.h>
#include <poll.h>
#include <unistd.h>

/* How long a terminal may take to send the rest of a key; curses' 1000 is long for Escape alone. */
#define ESCAPE_MSEC 50
#define ESCAPE      27

static SCREEN *screen;
static attr_t attributes[FRAME_STYLES];

static void choose_colours(bool colour)
{
    static const short colours[FRAME_STYLES] = {
        [FRAME_GOOD] = COLOR_GREEN, [FRAME_WARN] = COLOR_YELLOW, [FRAME_BAD] = COLOR_RED};

    attributes[FRAME_TITLE] = A_BOLD;
    attributes[FRAME_DIM] = A_DIM;
    attributes[FRAME_WARN] = attributes[FRAME_BAD] = A_BOLD;
    attributes[FRAME_MARK] = A_REVERSE;
    if (!colour || !has_colors() || start_color() == ERR)
        return;
    (void)use_default_colors();
    for (short i = 0; i < FRAME_STYLES; i++)
        if (colours[i] && init_pair(i, colours[i], -1) != ERR)
            attributes[i] = COLOR_PAIR(i);
}

void screen_close(void)
{
    if (!screen)
        return;
    (void)endwin();
    delscreen(screen);
    screen = NULL;
}

bool screen_open(bool colour)
{
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return false;
    /* newterm() also accepts a terminal without cursor movement, such as TERM=dumb. */
    if (!tigetstr("cup")) {
        screen_close();
        return false;
    }
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)intrflush(stdscr, FALSE);
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    (void)set_escdelay(ESCAPE_MSEC);
    choose_colours(colour);
    return true;
}

void screen_size(unsigned *ret_rows, unsigned *ret_columns)
{
    *ret_rows = LINES > 0 ? (unsigned)LINES : 1;
    *ret_columns = COLS > 0 ? (unsigned)COLS : 1;
}

/* Curses finds out what has changed and sends only that. */
void screen_show(const Frame *frame)
{
    (void)erase();
    for (unsigned row = 0; row < frame->rows; row++)
        for (unsigned column = 0; column < frame->columns; column++) {
            const FrameCell *cell = &frame->cells[(size_t)row * frame->columns + column];
            wchar_t text[2] = {cell->c, 0};
            cchar_t c;

            if (!cell->c || (cell->c == L' ' && cell->style == FRAME_PLAIN))
                continue;
            (void)setcchar(&c, text, attributes[cell->style], (short)PAIR_NUMBER(attributes[cell->style]),
                           NULL);
            (void)mvadd_wch((int)row, (int)column, &c);
        }
    (void)refresh();
}

static int key_of_curses(wint_t c)
{
    static const struct {
        wint_t curses;
        ScreenKey key;
    } keys[] = {
        {KEY_UP, SCREEN_KEY_UP},         {KEY_DOWN, SCREEN_KEY_DOWN},
        {KEY_LEFT, SCREEN_KEY_LEFT},     {KEY_RIGHT, SCREEN_KEY_RIGHT},
        {KEY_PPAGE, SCREEN_KEY_PAGE_UP}, {KEY_NPAGE, SCREEN_KEY_PAGE_DOWN},
        {KEY_ENTER, SCREEN_KEY_ENTER},   {KEY_BACKSPACE, SCREEN_KEY_BACKSPACE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (keys[i].curses == c)
            return (int)keys[i].key;
    return SCREEN_KEY_NONE; /* also when the terminal was resized */
}

/* Reads on after an ESC for which curses knows no key: a terminal may send other sequences than its description says,
 * such as ESC [ A for ESC O A. A whole sequence is consumed and means nothing. ESC [ is followed by bytes up to one
 * from @ to ~ (ECMA-48, 5.4), ESC O by one byte. ESC with anything else is a key pressed with Alt. */
static int key_of_sequence(void)
{
    wint_t c = 0;
    int r;

    timeout(ESCAPE_MSEC);
    do
        r = get_wch(&c);
    while (r == OK && c == ESCAPE);
    if (r == ERR)
        return SCREEN_KEY_ESCAPE;
    if (r == OK && c == L'O')
        r = get_wch(&c);
    else if (r == OK && c == L'[')
        do
            r = get_wch(&c);
        while (r == OK && (c < L'@' || c > L'~'));
    return r == KEY_CODE_YES ? key_of_curses(c) : SCREEN_KEY_NONE;
}

int screen_key(int timeout_msec)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    wint_t c = 0;
    int r;

    /* Not in curses, which does not report that the terminal has gone. */
    if (poll(&keys, 1, timeout_msec) > 0 && (keys.revents & (POLLHUP | POLLERR | POLLNVAL)))
        return SCREEN_KEY_GONE;
    timeout(0);
    r = get_wch(&c);
    if (r == ERR)
        return SCREEN_KEY_NONE;
    if (r == KEY_CODE_YES)
        return key_of_curses(c);
    switch (c) {
    case L'\r':
    case L'\n':
        return SCREEN_KEY_ENTER;
    case ESCAPE:
        return key_of_sequence();
    case 8:
    case 127:
        return SCREEN_KEY_BACKSPACE;
    default:
        return (int)c;
    }
}
