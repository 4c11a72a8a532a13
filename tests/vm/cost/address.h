/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From the addresses QEMU hands out to lines of guest memory, numbered through all nodes in order.
 *
 * The public interface gives no host address and no node, only a "physical address", which is one of two things:
 *
 *  - guest (8.1 and later): the guest-physical address. Memory is contiguous but for the hole of a PC below 4 GiB.
 *  - offset (before): the offset of the memory backend's block, plus the offset within it, plus the backend's address in
 *    the machine's memory. Blocks are made in the order of the nodes, before all others, so the first and the last are
 *    the same number, and a byte k of a node that begins at B is told as 2 * B + k.
 *
 * Both tell the node and the byte. With two nodes of 512 MiB, byte 7 of node 1 is 0x20000007 in the first form and
 * 0x40000007 in the second. Read-only memory of the firmware may fall into a node in the second form; it is rarely
 * touched once the guest is up. */

#include "config.h"

#define ADDRESS_LINE_BYTES 64U
#define ADDRESS_LINE_SHIFT 6

typedef struct AddressNode {
    uint64_t first; /* as QEMU tells it */
    uint64_t bytes;
    uint64_t line; /* number of its first line */
} AddressNode;

typedef struct AddressMap {
    AddressNode parts[COST_NODES_MAX + 1]; /* a node that lies around the hole has two */
    unsigned n_parts;
    uint64_t n_lines;
} AddressMap;

/* `guest`: addresses come in the first form. */
void address_map_init(AddressMap *m, const Config *c, bool guest);

/* Returns false when the address is no memory of a node: firmware, video memory. */
static inline bool address_map_line(const AddressMap *m, uint64_t address, uint64_t *ret_line)
{
    for (unsigned i = 0; i < m->n_parts; i++) {
        uint64_t offset = address - m->parts[i].first;

        if (offset < m->parts[i].bytes) {
            *ret_line = m->parts[i].line + (offset >> ADDRESS_LINE_SHIFT);
            return true;
        }
    }
    return false;
}
