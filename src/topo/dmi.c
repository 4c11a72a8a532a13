/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the firmware's tables, as in the System Management BIOS Reference Specification (DMTF DSP0134 3.7). They are a
 * sequence of structures: a header of four bytes (type, length, handle), data up to that length, and strings that end
 * in two zero bytes. Type 17 is a memory module. The tables do not say which modules share a channel. */

#include "topo/dmi.h"

#include <stdbool.h>

enum {
    HEADER_SIZE = 4,
    TYPE_BIOS = 0,
    BIOS_EXTENSION = 0x13, /* second byte of its extended characteristics; bit 4: a virtual machine */
    TYPE_MODULE = 17,
    MODULE_DATA_WIDTH = 0x0A, /* bits; this and all below but the last are little-endian words of 2 bytes */
    MODULE_SIZE = 0x0C,       /* 0: the slot is empty */
    MODULE_SPEED = 0x15,      /* maximum speed, MT/s; 0: unknown */
    MODULE_CONFIGURED = 0x20, /* the speed it runs at, MT/s */
    MODULE_TECHNOLOGY = 0x28, /* above 3: not DRAM */
    TYPE_END = 127,
};

#define NOT_KNOWN       0xFFFFU
#define TECHNOLOGY_DRAM 3

typedef struct Entry {
    const uint8_t *data;
    size_t len; /* without strings */
} Entry;

/* 0 if the structure ends before `at`. */
static uint32_t word(const Entry *e, size_t at)
{
    return at + 2 <= e->len ? (uint32_t)(e->data[at] | e->data[at + 1] << 8) : 0;
}

/* Returns the next structure. False if the rest is truncated. */
static bool next(const uint8_t *table, size_t size, size_t *at, Entry *ret)
{
    const uint8_t *data = table + *at;
    size_t left = size - *at, end;

    if (left < HEADER_SIZE || data[1] < HEADER_SIZE || data[1] > left)
        return false;
    *ret = (Entry){data, data[1]};
    for (end = data[1]; end + 2 <= left; end++)
        if (data[end] == 0 && data[end + 1] == 0) {
            *at += end + 2;
            return true;
        }
    return false;
}

/* Whether this is a module that may be DRAM. */
static bool is_memory(const Entry *e)
{
    return e->data[0] == TYPE_MODULE && word(e, MODULE_SIZE) != 0 &&
           (e->len <= MODULE_TECHNOLOGY || e->data[MODULE_TECHNOLOGY] <= TECHNOLOGY_DRAM);
}

/* 0: unknown. */
static uint64_t module_mb(const Entry *e)
{
    uint32_t speed = word(e, MODULE_CONFIGURED), width = word(e, MODULE_DATA_WIDTH);

    if (speed == 0 || speed == NOT_KNOWN)
        speed = word(e, MODULE_SPEED);
    return speed == NOT_KNOWN || width == NOT_KNOWN ? 0 : (uint64_t)speed * width / 8;
}

static bool is_virtual(const Entry *e)
{
    return e->data[0] == TYPE_BIOS && e->len > BIOS_EXTENSION && (e->data[BIOS_EXTENSION] & 0x10);
}

uint64_t dmi_memory_mb(const uint8_t *table, size_t size)
{
    uint64_t sum = 0;
    size_t at = 0;
    Entry e;

    while (at < size) {
        bool read = next(table, size, &at, &e);

        if (read && e.data[0] == TYPE_END)
            break;
        if (!read || is_virtual(&e) || (is_memory(&e) && module_mb(&e) == 0))
            return 0;
        sum += is_memory(&e) ? module_mb(&e) : 0;
    }
    return sum;
}
