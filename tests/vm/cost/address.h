/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Translates guest-physical addresses to lines of guest memory, which are numbered through all nodes in
 * order. Memory is contiguous except for the hole of a PC below 4 GiB. */

#include "config.h"

#define ADDRESS_LINE_BYTES 64U
#define ADDRESS_LINE_SHIFT 6

typedef struct AddressNode {
    uint64_t first; /* guest-physical */
    uint64_t bytes;
    uint64_t line; /* number of its first line */
} AddressNode;

typedef struct AddressMap {
    AddressNode parts[COST_NODES_MAX + 1]; /* a node on both sides of the hole has two */
    unsigned n_parts;
    uint64_t n_lines;
} AddressMap;

void address_map_init(AddressMap *m, const Config *c);

/* Returns false when the address belongs to no node: firmware, video memory. */
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
