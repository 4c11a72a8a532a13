/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which threads' memory use is known, so that they can live on different nodes (P11, P14). */

#include "plan/buddies.h"
#include "policy/policy.h"
#include "world/world.h"

/* The share of its memory use that a thread must have alone; otherwise it needs a buddy, with which it goes. */
#define PRIVATE_PERMILLE BUDDIES_PRIVATE_PERMILLE

/* Enough to keep a node; of memory that two threads share evenly, each has less. */
#define PRIVATE_MOSTLY_PERMILLE 500U

/* Whether the memory use of the thread is known, and `enough` permille of it are its own or it has a buddy. */
bool thread_is_seen(const World *world, const Process *process, const Task *task, const Policy *policy,
                    uint32_t enough);

/* The number of threads of a process whose memory use is known. When it grows, a plan can give more of them a node. */
size_t thread_homes_n_known(const World *world, const Policy *policy, const Process *process);

/* A number that changes when a thread of the process gets, changes or loses a node of its own; 0: none has one. */
uint64_t thread_homes_digest(const World *world, const Process *process);
