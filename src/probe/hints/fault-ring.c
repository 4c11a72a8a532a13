/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record is a header and a body, a multiple of eight bytes long, and may wrap around to the start of the
 * ring. Numbers are in native byte order. */

#include "probe/hints/fault-ring.h"

#include "base/util.h"

#include <linux/perf_event.h>
#include <string.h>

static_assert(FAULT_RING_SAMPLE_TYPE ==
                  (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU),
              "as the kernel numbers them");

typedef struct SampleRecord {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t time, address;
    uint32_t cpu, reserved;
} SampleRecord;

static_assert(sizeof(SampleRecord) == FAULT_RING_SAMPLE_SIZE, "no padding");

typedef struct LostRecord {
    struct perf_event_header header;
    uint64_t id, lost;
} LostRecord;

static void copy(const FaultRing *ring, uint64_t from, void *to, size_t n)
{
    size_t at = (size_t)(from & (ring->size - 1)), first = MIN(n, ring->size - at);

    memcpy(to, ring->data + at, first);
    memcpy((char *)to + first, ring->data, n - first);
}

int fault_ring_next(const FaultRing *ring, uint64_t head, uint64_t *tail, FaultSample *ret,
                    uint64_t *ret_lost)
{
    assert(ring->size >= 4096 && (ring->size & (ring->size - 1)) == 0);
    while (*tail != head) {
        uint64_t at = *tail, left = head - at;
        struct perf_event_header header;

        if (left > ring->size || left < sizeof(header))
            return -EINVAL;
        copy(ring, at, &header, sizeof(header));
        if (header.size < sizeof(header) || header.size > left || header.size % sizeof(uint64_t) != 0)
            return -EINVAL;
        if (header.type == PERF_RECORD_SAMPLE) {
            SampleRecord record;

            if (header.size != sizeof(record))
                return -EINVAL;
            copy(ring, at, &record, sizeof(record));
            *tail = at + header.size;
            *ret = (FaultSample){
                .pid = (pid_t)record.pid,
                .tid = (pid_t)record.tid,
                .time_nsec = record.time,
                .address = record.address,
                .cpu = record.cpu,
            };
            return FAULT_RING_SAMPLE;
        }
        if (header.type == PERF_RECORD_LOST) {
            LostRecord record;

            if (header.size < sizeof(record))
                return -EINVAL;
            copy(ring, at, &record, sizeof(record));
            *tail = at + header.size;
            *ret_lost = record.lost;
            return FAULT_RING_LOST;
        }
        *tail = at + header.size;
    }
    return FAULT_RING_END;
}
