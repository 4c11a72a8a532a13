/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How often to measure where the memory of a process lies. Reading numa_maps walks all page
 * tables of the process under the lock that its own mmap(2) waits for: 3 ms for 256 MiB of small pages. */

#include <stdint.h>

/* A young process still touches memory for the first time. It is measured when first seen, and then whenever
 * its age has doubled. The first wait is a little shorter than the second between two slow ticks, the last is
 * that of an old process. */
#define RESIDENCY_YOUNG_USEC 900000U
#define RESIDENCY_OLD_USEC   10000000U

/* All readings of old processes together take at most 1 / RESIDENCY_SHARE of one CPU, those of one young
 * process at most 1 / RESIDENCY_YOUNG_SHARE. */
#define RESIDENCY_SHARE       1000U
#define RESIDENCY_YOUNG_SHARE 100U

/* How long to wait after a reading that cost `cost_usec` of CPU time. `age_usec` is the time since the process
 * was first seen, `roots` the sum of the square roots of the costs of all processes, including this one.
 *
 * An old process waits sqrt(cost) x roots x RESIDENCY_SHARE. The sum of cost / wait over all is then 1 /
 * RESIDENCY_SHARE, and of all divisions with this sum it has the shortest mean wait. A large process is
 * measured more seldom than a small one, but does not take all time away from it. One that costs 1.2 s and a
 * hundred that cost 50 us wait for 33 min and 13 s. */
uint64_t residency_wait_usec(uint64_t age_usec, uint64_t cost_usec, double roots);
