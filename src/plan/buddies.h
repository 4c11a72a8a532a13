/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads of a process that share memory, as sets: each thread with its buddy, that one with its own, and so
 * on (P14). A set that fits a node is to live on one. The memory of a larger set belongs to no node, and is
 * interleaved (P17). */

#include "plan/ablation.h"
#include "world/world.h"

/* A thread with this much of its use on memory of its own needs no buddy. In the first rounds more than half of what
 * four threads share looks private, because no other thread was seen there yet. */
#define BUDDIES_PRIVATE_PERMILLE 750U

typedef struct BuddySet {
    size_t first;    /* index in the process of the set's first thread; mostly the thread itself */
    size_t buddy;    /* index of its buddy; its own: it has none */
    uint64_t demand; /* average run and wait of the whole set, permille of a CPU */
    uint64_t peak;   /* that plus a standard deviation, each thread wanting a CPU at random times */
    size_t n;        /* threads that are not gone */
    bool apart;      /* some have another home node than the first */
} BuddySet;

/* Finds the set of each thread of a process: ret[number of its tasks]. A thread that is not gone and that
 * `may` refuses neither has nor is a buddy; NULL refuses none. */
typedef bool BuddyMay(void *userdata, const Task *task);
void buddies_sets(World *world, const Process *process, BuddyMay *may, void *userdata, BuddySet *ret);

/* Whether the set has more than one thread, and at most half of these threads, a choice of ours. What more of
 * them share belongs to all. */
bool buddies_are_few(const BuddySet *set, size_t n_threads);

/* Average run and wait of a thread, permille of a CPU; at least 1. */
uint32_t buddies_demand(const Task *task);

/* Counts the usable CPUs among these, and the cores that have one, in permille. */
void buddies_count(const World *world, CpuMask cpus, uint64_t *ret_cpus, uint64_t *ret_cores);

/* Capacity of the largest of these nodes (NodeIx) for a set, permille of a CPU: its usable cores, while `demand`, of
 * all threads to live on these nodes, is at most a third more than all their cores; else its usable CPUs. Two threads
 * on one core run at 0.6 of their speed each, which costs more than being away from what they share. */
uint64_t buddies_largest(const World *world, CpuMask nodes, uint64_t demand);

/* Whether a set with this demand fits, with some percent of tolerance because both numbers are measured. */
bool buddies_fit(uint64_t demand, uint64_t capacity);
