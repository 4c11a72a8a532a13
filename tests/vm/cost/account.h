/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What one CPU owes for its accesses, and what it has waited.
 *
 * Emulating an access takes time too: 30 ns on a quiet host, more than 100 on a busy one. Added to each latency, that
 * would pull every ratio towards 1. So up to `overlap` of the time between two payments is taken as part of each
 * latency charged in between, as a CPU hides work behind a miss: an access that costs 450 and takes 35 to emulate takes
 * 450 in all; with 500 of computing between two of them, 450 + 500 - 200.
 *
 * Waiting overshoots. The excess is credit, so that the mean is right, up to CREDIT_MAX_NSEC. */

#include <stdint.h>

/* A thread that wakes a whole time slice of the host late (4 ms) gets it back; a host that was suspended does not let
 * the guest run free for long. */
#define CREDIT_MAX_NSEC 5000000

typedef struct Account {
    int64_t debt_nsec;
    uint64_t hidden_nsec; /* what may be deducted from it */
    uint64_t paid_at_nsec;
} __attribute__((aligned(128))) Account; /* one per thread of the host: no shared lines, nor pairs of them */

static inline void account_charge(Account *a, uint64_t nsec, uint64_t overlap_nsec)
{
    a->debt_nsec += (int64_t)nsec;
    a->hidden_nsec += nsec < overlap_nsec ? nsec : overlap_nsec;
}

/* Deducts what is hidden. Returns the nanoseconds to wait from `now_nsec` on; 0 or less: none. */
int64_t account_due(Account *a, uint64_t now_nsec);

/* Tells that waiting, begun at `begin_nsec`, ended at `end_nsec`. */
void account_paid(Account *a, uint64_t begin_nsec, uint64_t end_nsec);
