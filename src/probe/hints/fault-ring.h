/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Records of page faults in a ring of perf_event_open(2): what stands between two of its positions. Pure, and trusts
 * nothing: the ring is memory that somebody else writes. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a record of a sample holds, in this order: PERF_SAMPLE_TID, TIME, ADDR and CPU. */
#define FAULT_RING_SAMPLE_TYPE (1U << 1 | 1U << 2 | 1U << 3 | 1U << 7)

/* Bytes of one. */
#define FAULT_RING_SAMPLE_SIZE 40U

typedef struct FaultSample {
    pid_t pid, tid;
    uint64_t time_nsec; /* of the clock the event was opened with */
    uint64_t address;
    uint32_t cpu;
} FaultSample;

typedef enum FaultRingRecord {
    FAULT_RING_END,    /* nothing up to `head` */
    FAULT_RING_SAMPLE, /* one sample in *ret */
    FAULT_RING_LOST,   /* so many samples did not fit, in *ret_lost */
} FaultRingRecord;

/* The ring's data. */
typedef struct FaultRing {
    const uint8_t *data;
    size_t size; /* a power of two, at least 4096 */
} FaultRing;

/* Takes the next record at *tail, which counts up and never wraps, as `head` does; other kinds of records are passed
 * over. *tail is then behind it. Returns a FaultRingRecord, or -EINVAL when what stands there is no record: the rest
 * up to `head` is of no use. */
int fault_ring_next(const FaultRing *ring, uint64_t head, uint64_t *tail, FaultSample *ret,
                    uint64_t *ret_lost);
