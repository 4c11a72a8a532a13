/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an access to memory costs. Knows nothing of QEMU, reads no clock. */

#include "address.h"
#include "cache.h"
#include "config.h"

/* What one CPU was charged for since power-on. Lines of 64 bytes; time as the guest sees it, after scaling. */
typedef struct ModelCounters {
    uint64_t
        user_local; /* from memory of the CPU's own node, by code in the lower half of the address space */
    uint64_t user_remote;
    uint64_t kernel_local;
    uint64_t kernel_remote;
    uint64_t line_local; /* from another CPU's cache, where it was dirty */
    uint64_t line_remote;
    uint64_t llc;
    uint64_t queue_nsec; /* part of charged_nsec: waiting for a node's memory */
    uint64_t charged_nsec;
    uint64_t waited_nsec; /* what the CPU was really held up, counted by who does that */
} ModelCounters;

typedef struct Model Model;

/* `map` gives the lines and where each node begins. Returns 0 or -ENOMEM. Release with model_free(). */
int model_new(const Config *c, const AddressMap *map, Model **ret);
Model *model_free(Model *m);

ModelCounters *model_counters(Model *m, unsigned cpu);

/* One load or store of `cpu`, to a line below the map's n_lines. Returns the nanoseconds it costs, and in
 * `ret_memory_node` the node whose memory was read, or -1. Callable for different CPUs at once. */
uint64_t model_access(Model *m, unsigned cpu, uint64_t line, bool store, bool user, int *ret_memory_node);

/* A node's memory hands out one line after the other. Returns the nanoseconds `cpu` waits when it asks at `now_nsec` of
 * a clock common to all CPUs: what the queue is long beyond two quanta, and 0 when bandwidth is not limited. */
uint64_t model_queue(Model *m, unsigned cpu, unsigned node, uint64_t now_nsec);
