/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Of which threads it is known what they use, so that they can live on different nodes (P11, P14). */

#include "plan/buddies.h"
#include "policy/policy.h"
#include "world/world.h"

/* Of what a thread uses, so much must be its own, or it must have a buddy, with which it goes. */
#define PRIVATE_PERMILLE BUDDIES_PRIVATE_PERMILLE

/* So much is enough to keep a node: what two threads share by halves is less. */
#define PRIVATE_MOSTLY_PERMILLE 500U

/* Whether it is seen what it uses, and `enough` permille of that are its own, or it has a buddy. */
bool thread_is_seen(const World *world, const Process *process, const Task *task, const Policy *policy,
                    uint32_t enough);
