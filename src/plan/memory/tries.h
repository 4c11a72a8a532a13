/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How often something was tried at an address, from round to round. Rounds go by ascending address, so two lists are
 * enough: the one of the last rounds is read while that of this round is written. */

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
    size_t at; /* what is before was carried over, or asked for */
} Tries;

void tries_done(Tries *tries);

/* A round begins; what one wrote that was not ended is forgotten. */
void tries_begin(Tries *tries);

/* How often it was tried at `start`, which is not below the last one asked for in this round. What is remembered of
 * the addresses between is kept; of this one only what tries_keep() says, and it is to be said before the next. 0;
 * or -ENOMEM. */
int tries_ask(Tries *tries, uint64_t start, uint32_t *ret_n);

/* Remembers `n` for the address that was asked for; 0: nothing. 0; or -ENOMEM. */
int tries_keep(Tries *tries, uint64_t start, uint32_t n);

/* The round is over: what it wrote is what is known, and the addresses above the last one asked for as they were. 0; or
 * -ENOMEM, and all is as it was before the round. */
int tries_end(Tries *tries);

/* Between rounds: takes one try back of all that was tried in [start, end). */
void tries_take_back(Tries *tries, uint64_t start, uint64_t end);
