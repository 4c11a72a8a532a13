/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "probe/hints/fault-ring.h"

/* The first two bytes say where in the ring the rest is. Whatever the rest is, reading ends at or before
 * `head`, and each step consumes a record. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[4096];
    const FaultRing ring = {bytes, sizeof(bytes)};
    uint64_t head, tail, before, lost;
    FaultSample sample;
    int r;

    if (size < 2)
        return 0;
    before = tail = (uint64_t)(data[0] | data[1] << 8);
    size = MIN(size - 2, sizeof(bytes));
    head = tail + size;
    for (size_t i = 0; i < size; i++)
        bytes[(tail + i) % sizeof(bytes)] = data[2 + i];
    while ((r = fault_ring_next(&ring, head, &tail, &sample, &lost)) > 0) {
        if (tail < before + 8 || tail > head || (r == FAULT_RING_SAMPLE && tail < before + 40))
            abort();
        before = tail;
    }
    if ((r == FAULT_RING_END) != (tail == head))
        abort();
    return 0;
}
