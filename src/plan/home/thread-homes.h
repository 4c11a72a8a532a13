/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When threads of one process can live on different nodes (P11): what callers outside this file need of it. */

#include "policy/policy.h"
#include "world/world.h"

/* Of how many threads of a process is known what they use. When they become more, a plan can give more of them a
 * node. */
size_t thread_homes_n_known(const World *world, const Policy *policy, const Process *process);

/* A number that is another one when a thread of the process has begun or ended to live on another node than before;
 * 0: none lives on one. */
uint64_t thread_homes_digest(const World *world, const Process *process);
