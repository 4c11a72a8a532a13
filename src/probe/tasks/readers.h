/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One reader per sampled thread: its open descriptor and its counters at the last reading. Task.reader is the
 * index. */

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After this many samples without run time a thread is quiet: sampled only after a discovery, until it runs. */
#define READER_QUIET_SAMPLES 8U

typedef struct Reader {
    int fd;               /* schedstat (stat without it), kept open; -1: opened for each read */
    uint8_t n_still;      /* samples in a row without run time, up to READER_QUIET_SAMPLES */
    uint8_t hands_before; /* eligibility that TASK_HANDS_UNKNOWN hides after a failed read */
    uint8_t mark;         /* sweep in which it was last in use */
    bool used : 1;
    bool mask_failed : 1; /* its mask could not be read: reading its times is not enough */
    uint64_t run_nsec, wait_nsec;
    uint64_t read_usec; /* when the counters were read; 0: not yet */
} Reader;

/* Ten thousand of them are walked in every tick: two fit into a cache line. */
static_assert(sizeof(Reader) == 32, "Reader has grown");

typedef struct Readers {
    Reader *slots;
    size_t n_slots, capacity;
    uint32_t first_free; /* chained through run_nsec; n_slots: none */
    uint32_t n_open;
    uint32_t max_open;
    uint8_t mark;
} Readers;

/* Takes a free reader, with nothing open and nothing read. Returns 0 or -ENOMEM. */
int readers_take(Readers *readers, uint32_t *ret);

/* Gives a descriptor to a reader and returns true; at the limit returns false, and the caller still owns it. */
bool readers_keep(Readers *readers, Reader *reader, int fd);

void readers_close(Readers *readers, Reader *reader);

/* Mark and sweep: frees every reader not marked since readers_begin(). Tasks leave the World in many ways
 * (exit, a whole World replaced), so the readers follow the World's tasks. */
void readers_begin(Readers *readers);
void readers_mark(Readers *readers, uint32_t index);
void readers_sweep(Readers *readers);

void readers_done(Readers *readers);
