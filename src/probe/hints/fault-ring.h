/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Page fault records in a ring of perf_event_open(2): reads what lies between two positions. Pure, and trusts
 * nothing, because somebody else writes the ring. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Contents of a sample record, in this order: PERF_SAMPLE_TID, TIME, ADDR and CPU. */
#define FAULT_RING_SAMPLE_TYPE (1U << 1 | 1U << 2 | 1U << 3 | 1U << 7)

#define FAULT_RING_SAMPLE_SIZE 40U

typedef struct FaultSample {
    pid_t pid, tid;
    uint64_t time_nsec; /* on the clock the event was opened with */
    uint64_t address;
    uint32_t cpu;
} FaultSample;

typedef enum FaultRingRecord {
    FAULT_RING_END,    /* nothing up to `head` */
    FAULT_RING_SAMPLE, /* one sample in *ret */
    FAULT_RING_LOST,   /* that many samples did not fit, in *ret_lost */
} FaultRingRecord;

typedef struct FaultRing {
    const uint8_t *data;
    size_t size; /* a power of two, at least 4096 */
} FaultRing;

/* Takes the next record at *tail and moves *tail behind it, skipping other kinds of records. *tail counts up
 * and never wraps, like `head`. Returns a FaultRingRecord, or -EINVAL when there is no valid record: the rest
 * up to `head` is useless. */
int fault_ring_next(const FaultRing *ring, uint64_t head, uint64_t *tail, FaultSample *ret,
                    uint64_t *ret_lost);
