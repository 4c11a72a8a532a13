/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bandwidth.h"

#include <string.h>

/* Fewer lines in a slot could not be shared evenly. */
#define CAPACITY_MIN 16U

void bandwidth_init(Bandwidth *b, uint64_t line_psec, uint64_t slot_psec)
{
    memset(b, 0, sizeof(*b));
    if (line_psec == 0)
        return;
    b->capacity = CAPACITY_MIN;
    if (slot_psec / line_psec > CAPACITY_MIN)
        b->capacity = (uint32_t)(slot_psec / line_psec);
    b->slot_psec = b->capacity * line_psec;
}

/* Returns NULL when the ring has a later slot in its place and no longer knows this one. */
static BandwidthSlot *slot_of(Bandwidth *b, uint64_t number)
{
    BandwidthSlot *s = &b->slots[number % BANDWIDTH_SLOTS];

    if (s->number > number)
        return NULL;
    if (s->number < number) {
        memset(s, 0, sizeof(*s));
        s->number = number;
    }
    return s;
}

/* Lines that each CPU may take of a slot. */
static uint32_t share_of(const Bandwidth *b, uint64_t number)
{
    const BandwidthSlot *before = &b->slots[(number - 1) % BANDWIDTH_SLOTS];

    if (before->number != number - 1 || before->used < b->capacity || before->users == 0)
        return b->capacity;
    return before->users < b->capacity ? b->capacity / before->users : 1;
}

uint64_t bandwidth_take(Bandwidth *b, unsigned cpu, uint64_t now_psec)
{
    uint64_t number;

    if (b->slot_psec == 0)
        return 0;
    /* Half of the ring, so that CPUs at different times do not overwrite each other's slots. */
    number = now_psec / b->slot_psec + 1;
    for (unsigned i = 0; i < BANDWIDTH_SLOTS / 2; i++, number++) {
        BandwidthSlot *s = slot_of(b, number);

        if (!s)
            return 0;
        if (s->used >= b->capacity || s->used_by[cpu] >= share_of(b, number))
            continue;
        s->used++;
        if (s->used_by[cpu]++ == 0)
            s->users++;
        return i == 0 ? 0 : (number - 1) * b->slot_psec - now_psec;
    }
    return (number - 1) * b->slot_psec - now_psec;
}

void bandwidth_post(Bandwidth *b, uint64_t now_psec)
{
    uint64_t number;

    if (b->slot_psec == 0)
        return;
    number = now_psec / b->slot_psec + 1;
    for (unsigned i = 0; i < BANDWIDTH_SLOTS / 2; i++, number++) {
        BandwidthSlot *s = slot_of(b, number);

        if (!s)
            return;
        if (s->used < b->capacity) {
            s->used++;
            return;
        }
    }
}
