/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine in memory for the mover: four nodes, one process, and a clock that only system calls move. Its
 * move_pages(2) does what tests/vm/contract/contract-move-pages.c found the kernel to do, and what it leaves undone,
 * too. */

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
    MACHINE_PINNED = 1 << 0, /* is queued, but cannot be moved */
    MACHINE_BUSY = 1 << 1,   /* cannot even be queued */
    MACHINE_SHARED = 1 << 2, /* others map it */
} MachineFlag;

/* A mapping, page by page. */
typedef struct MachineArea {
    uint64_t start;
    size_t n_pages;
    bool huge;      /* each block of 2 MB is one page */
    int8_t *node;   /* -1: nothing there */
    uint8_t *flags; /* MachineFlag */
} MachineArea;

typedef struct Machine {
    pthread_mutex_t lock;
    uint64_t page_bytes;
    MachineArea areas[MACHINE_AREAS];
    size_t n_areas;
    char maps[65536];
    size_t whole_max;      /* of a file that was read at once, so much at most */
    const char *mountinfo; /* NULL: cannot be read */
    uint64_t rss_pages;
    unsigned node_cpus; /* CPUs of a node; 0: n_settled_on is not counted */
    bool dead;
    uint64_t free_bytes[MACHINE_NODES], cache_bytes[MACHINE_NODES];
    uint64_t now_usec, page_usec, huge_usec; /* what moving one takes */

    /* Failures to come: of the nth call from now on, counted from 1; 0: never. */
    unsigned fail_move, fail_ask, fail_read, die_in_move;
    long move_error, ask_error, migrate_error;
    int read_error, open_error, settle_error;
    const char *fail_path; /* only reads of paths that end so fail */
    pthread_cond_t hang;   /* what hangs waits for this */
    bool hanging;          /* whether moves hang, */
    unsigned n_passing;    /* but for the next ones, */
    bool settling_hangs;   /* or setting the nice value, */
    unsigned n_waiting;    /* and how many do */

    /* What was called. */
    unsigned n_moves, n_asks, n_migrates, n_settled;
    unsigned
        n_settled_on[MACHINE_NODES]; /* of n_settled, on CPUs of this node, which has as many as others */
    size_t most_pages;               /* in one move */
    uint64_t most_bytes;             /* really moved by one */
    uint64_t moved_alive;            /* in all, before the process died */
    uint64_t moved_bytes;            /* in all */
    int nice;
} Machine;

extern const MoverOps machine_ops;

/* Numbers that look as if drawn, of 31 bits. */
static inline uint32_t machine_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33);
}

void machine_init(Machine *machine);
void machine_done(Machine *machine);

/* Adds a private mapping, all of it on `node` (-1: untouched). */
MachineArea *machine_add(Machine *machine, uint64_t start, uint64_t bytes, int node);
/* Adds a line to maps. */
__attribute__((format(printf, 2, 3))) void machine_map(Machine *machine, const char *format, ...);
/* How many pages of the area are on the node. */
size_t machine_count(const Machine *machine, const MachineArea *area, int node);
