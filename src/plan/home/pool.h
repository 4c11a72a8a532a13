/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "plan/home/thread-units.h"

/* Whether no thread of the group is to have a node of its own (P11): its threads share the CPUs of the home, for a
 * trial or because one has shown that they wait less so. `h` has its nodes measured and its units gathered;
 * `may_be_apart`: there are two at least that could have one. */
bool pool_decide(const ThreadHomes *h, bool may_be_apart);
