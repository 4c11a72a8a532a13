/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts attempts by address, from round to round. Rounds go by ascending address, so two lists are enough:
 * that of earlier rounds is read while that of this round is written. */

#include <stddef.h>
#include <stdint.h>

/* If there are more, those not asked for in the next round are forgotten: memory that is freed and allocated elsewhere
 * would leave one entry after the other. As many as there are blocks at most (world/touches.h). */
#define TRIES_MAX 65536U

typedef struct TriesEntry {
    uint64_t start;
    uint32_t n;
} TriesEntry;

/* All zeros: nothing was tried. */
typedef struct Tries {
    TriesEntry *list, *now; /* ascending */
    size_t n, capacity, n_now, capacity_now;
    size_t at; /* entries before this were carried over or asked for */
} Tries;

void tries_done(Tries *tries);

/* Begins a round. Drops what an unfinished one wrote. */
void tries_begin(Tries *tries);

/* Gets the attempts at `start`, which must not be below the last address asked for in this round. Addresses in between
 * keep their counts, if there are not too many; `start` only by tries_keep(), before the next call. Returns 0 or
 * -ENOMEM. */
int tries_ask(Tries *tries, uint64_t start, uint32_t *ret_n);

/* Remembers `n` attempts for the address asked for last; 0: none. Returns 0 or -ENOMEM. */
int tries_keep(Tries *tries, uint64_t start, uint32_t n);

/* Ends the round: what it wrote is now known, and addresses above the last one asked for are as those in between.
 * Returns 0; or -ENOMEM, and all is as before the round. */
int tries_end(Tries *tries);

/* Between rounds: takes back one attempt at each address in [start, end). */
void tries_take_back(Tries *tries, uint64_t start, uint64_t end);
