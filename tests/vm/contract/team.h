/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process whose threads continually write memory of their own, or the same memory. */

#include "support.h"

#define TEAM_THREADS 4U
#define TEAM_BLOCKS  8U /* of HUGE bytes; for each thread, or for all */

typedef enum TeamMode {
    TEAM_OWN,
    TEAM_SHARED,
    TEAM_GROW, /* own memory, and ever more of it */
} TeamMode;

/* What the child's threads do. */
typedef struct Team {
    TeamMode mode;
    bool huge;
    unsigned node;
    char *volatile buffer[TEAM_THREADS];
    volatile pid_t tid[TEAM_THREADS];
    volatile uint64_t pass[TEAM_THREADS];     /* made so far */
    volatile uint64_t limit[TEAM_THREADS];    /* no more passes than that */
    volatile uint64_t gap_usec[TEAM_THREADS]; /* longest time that 16 writes took since it was set to 0 */
} Team;

/* Starts it, with small or huge pages on the last node, and waits until its last thread has made two passes. */
pid_t team_start(TeamMode mode, bool huge, Team **ret);
/* True when all passes that the limits allow were made. For eventually(). */
bool team_done(void *userdata);
/* The longest gap of all threads since the last call. */
uint64_t team_gap(Team *team);
