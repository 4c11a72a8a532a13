/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine in memory for the mover: four nodes, one process, and a clock that only system calls advance. Its
 * move_pages(2) does, and leaves undone, what tests/vm/contract/contract-move-pages.c found of the kernel. */

#include "act/mover/mover.h"
#include "unit-test.h"

#include <pthread.h>

#define MACHINE_PID   100
#define MACHINE_START UINT64_C(5000)
#define MACHINE_NODES 4U
#define MACHINE_AREAS 8U

#define MIB   (UINT64_C(1) << 20)
#define BLOCK (2 * MIB)

typedef enum MachineFlag {
    MACHINE_PINNED = 1 << 0, /* can be queued, but not moved */
    MACHINE_BUSY = 1 << 1,   /* cannot even be queued */
    MACHINE_SHARED = 1 << 2, /* mapped by others, too */
} MachineFlag;

/* One mapping, page by page. */
typedef struct MachineArea {
    uint64_t start;
    size_t n_pages;
    bool huge;      /* each block of 2 MB is one page */
    int8_t *node;   /* -1: no page */
    uint8_t *flags; /* MachineFlag */
} MachineArea;

typedef struct Machine {
    pthread_mutex_t lock;
    uint64_t page_bytes;
    MachineArea areas[MACHINE_AREAS];
    size_t n_areas;
    char maps[65536];
    size_t whole_max;      /* largest size asked for in reading a whole file at once */
    const char *mountinfo; /* NULL: cannot be read */
    uint64_t rss_pages;
    unsigned node_cpus; /* CPUs of each node; 0: n_settled_on is not counted */
    bool dead;
    uint64_t free_bytes[MACHINE_NODES], cache_bytes[MACHINE_NODES];
    uint64_t now_usec, page_usec, huge_usec; /* time to move one page, and one huge page */

    /* Which call from now on fails, counted from 1; 0: none. */
    unsigned fail_move, fail_ask, fail_read, die_in_move;
    long move_error, ask_error, migrate_error;
    int read_error, open_error, settle_error;
    const char *fail_path; /* only reads of paths with this ending fail */
    pthread_cond_t hang;   /* hanging calls wait for this */
    bool hanging;          /* moves hang, */
    unsigned n_passing;    /* except the next ones, */
    bool settling_hangs;   /* or setting the nice value hangs, */
    unsigned n_waiting;    /* threads that hang */

    /* What was called and moved. */
    unsigned n_moves, n_asks, n_migrates, n_settled;
    unsigned n_settled_on[MACHINE_NODES]; /* of n_settled, those on the CPUs of each node */
    size_t most_pages;                    /* in one move */
    uint64_t most_bytes;                  /* moved by one call */
    uint64_t moved_alive;                 /* in all, until the process died */
    uint64_t moved_bytes;                 /* in all */
    int nice;
} Machine;

extern const MoverOps machine_ops;

/* Pseudo-random numbers of 31 bits. */
static inline uint32_t machine_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33);
}

void machine_init(Machine *machine);
void machine_done(Machine *machine);

/* Adds a private mapping, all of it on `node` (-1: no pages yet). */
MachineArea *machine_add(Machine *machine, uint64_t start, uint64_t bytes, int node);
/* Adds a line to maps. */
__attribute__((format(printf, 2, 3))) void machine_map(Machine *machine, const char *format, ...);
/* Returns how many pages of the area are on the node. */
size_t machine_count(const Machine *machine, const MachineArea *area, int node);
