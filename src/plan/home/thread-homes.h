/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads of one process on different nodes (P11): what callers outside this file need. */

#include "policy/policy.h"
#include "world/world.h"

/* The number of threads of a process whose memory use is known. When it grows, a plan can give more of them a node. */
size_t thread_homes_n_known(const World *world, const Policy *policy, const Process *process);

/* A number that changes when a thread of the process gets, changes or loses a node of its own; 0: none has one. */
uint64_t thread_homes_digest(const World *world, const Process *process);
