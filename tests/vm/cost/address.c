/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "address.h"

static void add_part(AddressMap *m, uint64_t first, uint64_t bytes)
{
    if (bytes == 0)
        return;
    m->parts[m->n_parts++] = (AddressNode){first, bytes, m->n_lines};
    m->n_lines += bytes >> ADDRESS_LINE_SHIFT;
}

/* QEMU's q35: memory of less than 2816 MiB is all below 4 GiB, otherwise 2 GiB of it are. */
#define Q35_LOW_MAX_MIB 2816U
#define Q35_SPLIT_MIB   2048U

static uint64_t low_mib(const Config *c)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < c->n_nodes; i++)
        total += c->node_mib[i];
    return total < Q35_LOW_MAX_MIB ? Q35_LOW_MAX_MIB : Q35_SPLIT_MIB;
}

void address_map_init(AddressMap *m, const Config *c)
{
    const uint64_t high = 1ULL << 32;
    uint64_t begin = 0, below = low_mib(c) << 20;

    *m = (AddressMap){0};
    for (unsigned i = 0; i < c->n_nodes; i++) {
        uint64_t bytes = c->node_mib[i] << 20, low = 0;

        if (begin < below)
            low = bytes < below - begin ? bytes : below - begin;
        add_part(m, begin, low);
        add_part(m, high + begin + low - below, bytes - low);
        begin += bytes;
    }
}
