/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A machine, policies and a World to plan for, in a few lines. Time starts at 1000 s and tick 1000, with 100
 * ms a tick. All CPUs are online and have long been idle unless said otherwise. */

#include "plan/group.h"
#include "plan/plan.h"
#include "unit-test.h"

#define FIXTURE_TICK_USEC 100000U

/* Two nodes of 8 CPUs, one LLC each, 20 apart. */
#define TWO_SHARDS "numa:2 l3:1 core:8 pu:1 distances=10,20,20,10"

typedef struct Fixture {
    World *world;
    PolicySet *policies;
    PlanLimits limits;
    Plan plan;
} Fixture;

void fixture_init(Fixture *f, const char *synthetic);
/* The same, with a policy "a". */
void fixture_init_with(Fixture *f, const char *synthetic, const char *policy);
void fixture_done(Fixture *f);

/* Adds a policy from its text (the [Match] section is added), and its workload. Returns it, to be changed by hand. */
Policy *fixture_policy(Fixture *f, const char *name, const char *text);

/* Adds a process under a policy, first seen 10 s ago, and returns its index. Masks are CPU lists; NULL: all CPUs. */
size_t fixture_process(Fixture *f, pid_t pid, const char *policy, const char *cpuset);

/* Adds one free thread with the given waiting time on both ticks; it runs the rest of the time. */
Task *fixture_task(Fixture *f, pid_t pid, pid_t tid, uint16_t wait);

/* Adds a process under policy "a" with `n` threads that run all the time, numbered from its own number. */
void fixture_threads(Fixture *f, pid_t pid, unsigned n);

CpuMask fixture_mask(Fixture *f, const char *list);
/* What the process has on each node, in bytes, and what the thread used there, as measured now. */
void fixture_bytes(Fixture *f, pid_t pid, const uint64_t *bytes);
void fixture_use(Fixture *f, pid_t pid, pid_t tid, const uint64_t *pages, uint32_t private_permille,
                 TaskKey buddy);
/* Gives every node 8 GiB, half of them free. */
void fixture_memory(Fixture *f);
void fixture_cpu(Fixture *f, int cpu, uint16_t busy, uint16_t wait);
void fixture_cpus(Fixture *f, int first, int last, uint16_t busy, uint16_t wait);

/* Computes the plan, slow or fast, and asserts that the plan and the World are consistent. */
void fixture_plan(Fixture *f, bool slow);
/* Commits the plan (`outcomes` NULL: all done), and asserts that the World is consistent. */
void fixture_commit(Fixture *f, const PlanOutcome *outcomes);
/* Both, in a slow tick, all done. */
void fixture_place(Fixture *f);
/* Asserts that planning again changes nothing (I9). */
void fixture_assert_settled(Fixture *f, bool slow);
/* Asserts that plan_check() finds fault with the plan after `change`, and none after `restore`. */
#define ASSERT_BROKEN(f, change, restore)                                                                  \
    do {                                                                                                   \
        change;                                                                                            \
        assert_int_equal(plan_check((f)->world, (f)->policies, &(f)->limits, &(f)->plan, NULL), -EUCLEAN); \
        restore;                                                                                           \
        assert_int_equal(plan_check((f)->world, (f)->policies, &(f)->limits, &(f)->plan, NULL), 0);        \
    } while (0)

/* Advances time by one tick; loads stay. */
void fixture_tick(Fixture *f);
/* The same with a tick of this length. */
void fixture_wait(Fixture *f, uint64_t usec);
/* Plans and commits homes, and advances time by one tick. */
void fixture_home(Fixture *f);

size_t fixture_count(const Fixture *f, PlanKind kind);
const PlanAction *fixture_action(const Fixture *f, PlanKind kind, size_t nth);
Task *fixture_find(Fixture *f, pid_t pid, pid_t tid);

/* The plainest closed loop: one tick passes in which every thread wants the share of a CPU (permille) in `demand`,
 * indexed as World.tasks. The model kernel puts each thread on the least wanted CPU of its mask, confined threads
 * first and in a rotating order; a CPU wanted by too many is shared in proportion. Fills in the loads. */
void fixture_model(Fixture *f, const uint16_t *demand);
/* Returns what all threads of a process ran in the last tick, permille. */
uint32_t fixture_run(Fixture *f, pid_t pid);

/* xorshift64*: the same numbers everywhere. The state must not be 0. */
uint32_t fixture_random(uint64_t *state, uint32_t below);
