/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Scanners for kernel text. They run for every thread in every tick, so they are inline and keep no state.
 * base/parse.h is for whole strings that a person wrote. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Reads decimal digits at *p and moves past them. Returns false, with *p unchanged, if there are none or the
 * number overflows. */
static inline bool scan_u64(const char **p, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;
    unsigned digit = (unsigned)(unsigned char)*s - '0';

    if (digit > 9)
        return false;
    /* Nineteen digits always fit. */
    for (int n = 0; digit <= 9 && n < 19; n++) {
        v = v * 10 + digit;
        digit = (unsigned)(unsigned char)*++s - '0';
    }
    for (; digit <= 9; digit = (unsigned)(unsigned char)*++s - '0')
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
            return false;

    *p = s;
    *ret = v;
    return true;
}

/* Whether the text is a PID, digits without a leading zero, and which. */
static inline bool scan_pid(const char *s, pid_t *ret)
{
    uint64_t v;

    if (*s == '0' || !scan_u64(&s, &v) || *s || v > INT32_MAX)
        return false;
    *ret = (pid_t)v;
    return true;
}

/* Moves past `word` if it is at *p. Returns whether it was. */
static inline bool scan_word(const char **p, const char *word)
{
    const char *s = *p;

    for (; *word; word++, s++)
        if (*s != *word)
            return false;
    *p = s;
    return true;
}

/* Returns the start of the next line, or the end of the text. */
static inline const char *scan_next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/* Returns the start of the next word: skips the rest of the word at `word` and the blanks after it. */
static inline const char *scan_next_word(const char *word)
{
    word += strcspn(word, " ");
    return word + strspn(word, " ");
}
