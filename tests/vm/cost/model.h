/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an access to memory costs. The model does not depend on QEMU and reads no clock. It is for one thread:
 * the one in which all CPUs of the guest take turns. */

#include "address.h"
#include "cache.h"
#include "config.h"

/* What one CPU was charged for since power-on, in lines of 64 bytes. */
typedef struct ModelCounters {
    uint64_t
        user_local; /* from memory of the CPU's own node, by code in the lower half of the address space */
    uint64_t user_remote;
    uint64_t kernel_local;
    uint64_t kernel_remote;
    uint64_t sequential; /* of all below and above: prefetched lines */
    uint64_t line_local; /* dirty, from another CPU's cache */
    uint64_t line_remote;
    uint64_t llc;
    uint64_t walks;
    uint64_t written_back;
    uint64_t queue_psec; /* part of charged_psec: time waiting for a node's memory */
    uint64_t charged_psec;
} ModelCounters;

typedef struct Model Model;

/* An access. The addresses are the guest's; `line` is that of the AddressMap. */
typedef struct ModelAccess {
    uint64_t virtual_address;
    uint64_t physical_address;
    uint64_t line;
    bool store;
    bool user;
} ModelAccess;

/* `map` gives the lines and where each node begins. Returns 0 or -ENOMEM. Free with model_free(). */
int model_new(const Config *c, const AddressMap *map, Model **ret);
Model *model_free(Model *m);

ModelCounters *model_counters(Model *m, unsigned cpu);

/* One load or store of `cpu` at `now_psec` of its own time. Returns the picoseconds it costs. */
uint64_t model_access(Model *m, unsigned cpu, const ModelAccess *a, uint64_t now_psec);
