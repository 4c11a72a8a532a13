/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads of a process that share memory, as sets: each with its buddy, that one with its own, and so on (P14). A set
 * that fits a node is to live on one; the memory of one that does not is nobody's, and is interleaved (P17). */

#include "plan/ablation.h"
#include "world/world.h"

/* Who has so much of what it uses for its own needs no buddy. In the first rounds, when nobody else has been seen there
 * yet, more than half of what four threads share looks as if each had it to itself. */
#define BUDDIES_PRIVATE_PERMILLE 750U

typedef struct BuddySet {
    size_t
        first; /* the first thread of the set, by its place in the process; of most it is the thread itself */
    size_t buddy;    /* the same of its buddy; itself: it has none */
    uint64_t demand; /* of the whole set, in permille of a CPU: what its threads run and wait on average */
    uint64_t peak;   /* that, and a standard deviation: each thread wants a CPU for its part of the time, by chance */
    size_t n;        /* its threads that are not gone */
    bool apart;      /* some live on another node than its first */
} BuddySet;

/* The set of each thread of a process: ret[number of its tasks]. Who `may` refuses, of those that are not gone, neither
 * has nor is a buddy; NULL: nobody. */
typedef bool BuddyMay(void *userdata, const Task *task);
void buddies_sets(World *world, const Process *process, BuddyMay *may, void *userdata, BuddySet *ret);

/* Whether the set has at most half of these threads, which is a choice of ours, and more than one. What more share is
 * everybody's. */
bool buddies_are_few(const BuddySet *set, size_t n_threads);

/* What a thread runs and waits on average, in permille of a CPU; at least 1. */
uint32_t buddies_demand(const Task *task);

/* Usable CPUs among these, and cores that have one, in permille. */
void buddies_count(const World *world, CpuMask cpus, uint64_t *ret_cpus, uint64_t *ret_cores);

/* What the largest of these nodes (NodeIx) has for a set, in permille of a CPU: its usable cores, as long as those who
 * are to live on these nodes want at most a third more than all cores there, `demand`; else its usable CPUs. Two
 * threads on one core run at 0.6 of their speed each, which is worth more than to be beside what they share. */
uint64_t buddies_largest(const World *world, CpuMask nodes, uint64_t demand);

/* Whether a set with this demand fits such a capacity: what is measured of either is off by some percent. */
bool buddies_fit(uint64_t demand, uint64_t capacity);
