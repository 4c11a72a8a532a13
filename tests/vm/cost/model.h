/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an access to memory costs. Knows nothing of QEMU, reads no clock. For one thread: the one that all CPUs of
 * the guest take turns in. */

#include "address.h"
#include "cache.h"
#include "config.h"

/* What one CPU was charged for since power-on. Lines of 64 bytes. */
typedef struct ModelCounters {
    uint64_t
        user_local; /* from memory of the CPU's own node, by code in the lower half of the address space */
    uint64_t user_remote;
    uint64_t kernel_local;
    uint64_t kernel_remote;
    uint64_t sequential; /* of all below and above: lines that came ahead of being asked for */
    uint64_t line_local; /* from another CPU's cache, where it was dirty */
    uint64_t line_remote;
    uint64_t llc;
    uint64_t walks;
    uint64_t written_back;
    uint64_t queue_psec; /* part of charged_psec: waiting for a node's memory */
    uint64_t charged_psec;
} ModelCounters;

typedef struct Model Model;

/* An access. `virtual_address`, `physical_address`: the guest's. `line`: of the map. */
typedef struct ModelAccess {
    uint64_t virtual_address;
    uint64_t physical_address;
    uint64_t line;
    bool store;
    bool user;
} ModelAccess;

/* `map` gives the lines and where each node begins. Returns 0 or -ENOMEM. Release with model_free(). */
int model_new(const Config *c, const AddressMap *map, Model **ret);
Model *model_free(Model *m);

ModelCounters *model_counters(Model *m, unsigned cpu);

/* One load or store of `cpu` at `now_psec` of its time. Returns the picoseconds it costs. */
uint64_t model_access(Model *m, unsigned cpu, const ModelAccess *a, uint64_t now_psec);
