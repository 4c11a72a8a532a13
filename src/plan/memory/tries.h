/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts attempts by address, from round to round. A round goes by ascending address, so two lists are
 * enough: the list of earlier rounds is read while that of this round is written. */

#include <stddef.h>
#include <stdint.h>

typedef struct TriesEntry {
    uint64_t start;
    uint32_t n;
} TriesEntry;

/* All zeros: nothing was tried. */
typedef struct Tries {
    TriesEntry *list, *now; /* ascending */
    size_t n, capacity, n_now, capacity_now;
    size_t at; /* entries of `list` before this were carried over or asked for */
} Tries;

void tries_done(Tries *tries);

/* Begins a round. Drops what a round that was not ended has written. */
void tries_begin(Tries *tries);

/* Returns in *ret_n the attempts at `start`, which must not be below the last address asked for in this
 * round. Addresses in between keep their counts. That of `start` is kept only by tries_keep(), which must
 * come before the next call. 0 or -ENOMEM. */
int tries_ask(Tries *tries, uint64_t start, uint32_t *ret_n);

/* Remembers `n` attempts for the address asked for last; 0: none. Returns 0 or -ENOMEM. */
int tries_keep(Tries *tries, uint64_t start, uint32_t n);

/* Ends the round. What it wrote is now known, and addresses above the last one asked for keep their counts.
 * Returns 0; or -ENOMEM, and all counts are as before the round. */
int tries_end(Tries *tries);

/* Between rounds: takes back one attempt at each address in [start, end). */
void tries_take_back(Tries *tries, uint64_t start, uint64_t end);
