/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Turns counter differences into the loads of a World: permille, averages, idle spells. */

#include "world/world.h"

#include <stdint.h>

/* Below this a CPU is idle (P1: idle iff busy < 5 %), and a thread asleep. */
#define LOAD_IDLE_PERMILLE 50
#define LOAD_IDLE_TEXT     "5%" /* the same, in numaplaced.conf */

/* One whole CPU. */
#define LOAD_FULL_PERMILLE 1000

/* The share of `interval_nsec` that `delta_nsec` is, in permille; at most 65535 (65 tasks may wait for one
 * CPU), and 0 for an empty interval. load_task() cuts a task's own shares at 1000. */
uint16_t load_permille(uint64_t delta_nsec, uint64_t interval_nsec);

/* new = old + (sample - old)/8, rounded towards the sample, so that it is reached (the weight of rq->avg_idle). */
uint32_t load_ewma(uint32_t old, uint32_t sample);

/* Folds one tick's run and wait of a task into it: this tick, the tick before, and averages, by load_ewma()
 * once for each LOAD_EWMA_NSEC of the tick. An empty interval changes nothing. */
#define LOAD_EWMA_NSEC 100000000U
void load_task(Task *task, uint64_t run_nsec, uint64_t wait_nsec, uint64_t interval_nsec);

/* Sets the demand of groups, after world_sum(): what their threads want on average, with peaks held, so that a group
 * that wants more and less in turns keeps one home. Demand rises at once, and falls by a LOAD_HOLD_USEC-th of the
 * difference in each microsecond of World.interval_usec. Differences of less than a tenth, or a tenth of a CPU, are
 * noise. The demand of a group younger than LOAD_YOUNG_USEC is what it wanted in the last two ticks: programs set
 * themselves up with one thread and work with others, or with children that they wait for. */
#define LOAD_HOLD_USEC  15000000U
#define LOAD_YOUNG_USEC 2000000U
void load_groups(World *world);

/* Sets the load of each node besides groups, after world_sum(): an average over about LOAD_HOLD_USEC, so that
 * programs that come and go do not count. */
void load_nodes(World *world);

/* Folds one tick's busy and wait time of a CPU into it, and follows its idle spells. A spell starts with the first
 * idle tick. Its length goes into the average when a busy tick has ended it; the first is taken whole. Busy is cut at
 * 1000, wait is not. `wait_known` false: wait is 0 and marked unknown. An empty interval changes nothing. */
void load_cpu(CpuLoad *cpu, uint64_t now_usec, uint64_t busy_nsec, uint64_t wait_nsec, bool wait_known,
              uint64_t interval_nsec, uint32_t idle_permille);

/* Whether a CPU is usable and idle, in two ticks in a row (plan/cpu/overload.c). Leases are not regarded. */
bool load_cpu_is_idle(const World *world, const CpuLoad *cpu);
