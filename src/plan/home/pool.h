/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "plan/home/thread-units.h"

/* Whether the threads of a group share all CPUs of its home instead of having a node each (P11): for a trial,
 * or because one has shown that they wait less that way. The nodes of `h` are measured and its units
 * gathered. `may_be_apart`: at least two units could have a node. */
bool pool_decide(const ThreadHomes *h, bool may_be_apart);
