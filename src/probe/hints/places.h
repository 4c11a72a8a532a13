/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where blocks lie that were touched, and what memory they are part of: asked in each round, before it is counted. */

#include "probe/memory/evidence.h"

/* Pages asked for in one call, which holds the lock of the address space shared: 1 ms. */
#define HINT_PLACES_PER_CALL 4096U

/* All zero at first. */
typedef struct HintPlaces {
    uint32_t asked[HINT_PLACES_PER_CALL]; /* indices of blocks */
    void *pages[HINT_PLACES_PER_CALL];
    int status[HINT_PLACES_PER_CALL];
    uint64_t describe_usec; /* when to read numa_maps next */
} HintPlaces;

/* Fills in the nodes of the blocks, and the regions. After touches_gather() of a round with samples. 0,
 * EVIDENCE_E_GONE, or -errno. */
int hint_places_find(HintPlaces *places, int proc_fd, const EvidenceTarget *target, uint64_t now_usec,
                     EvidenceFinds *finds);
