/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/ablation.h"

#include <string.h>

const char *const ablation_names[] = {
    [ABLATION_NEAREST] = "nearest",
    [ABLATION_MOST_FIRST] = "most-first",
    [ABLATION_BACKOFF] = "backoff",
    [ABLATION_COOLDOWN] = "cooldown",
    [ABLATION_LEAN] = "lean",
    [ABLATION_IN_PLACE] = "in-place",
    [ABLATION_IMBALANCE] = "imbalance",
    [ABLATION_SIBLINGS] = "siblings",
    [ABLATION_PUSH] = "push",
    [ABLATION_OTHERS] = "others",
    [ABLATION_BOUND] = "bound",
    [ABLATION_REACH] = "reach",
    [ABLATION_FAIR_SHARE] = "fair-share",
    [ABLATION_PAUSES] = "pauses",
    [ABLATION_ALONE] = "alone",
    [ABLATION_TRAFFIC] = "traffic",
    [ABLATION_SLOWER] = "slower",
    [ABLATION_STALL] = "stall",
    [ABLATION_SORTED] = "sorted",
    [ABLATION_OUTGROWN] = "outgrown",
    [ABLATION_BEGUN] = "begun",
    [ABLATION_AWAIT_MEMORY] = "await-memory",
    [ABLATION_AWAIT_APART] = "await-apart",
    [ABLATION_IN_VAIN] = "in-vain",
    [ABLATION_LOANS] = "loans",
    [ABLATION_STARVES] = "starves",
    [ABLATION_BESIDE] = "beside",
    [ABLATION_FREEZE] = "freeze",
    [ABLATION_APART] = "apart",
    [ABLATION_POOL] = "pool",
    [ABLATION_ROOM] = "room",
    [ABLATION_BUDDIES] = "buddies",
    [ABLATION_FEW] = "few",
    [ABLATION_DIVIDED] = "divided",
    [ABLATION_SPILL] = "spill",
    [ABLATION_DISTANCES] = "distances",
    [ABLATION_HERE] = "here",
    [ABLATION_RELIEVE] = "relieve",
    [ABLATION_ANEW] = "anew",
    [ABLATION_AWAIT_USE] = "await-use",
    [ABLATION_PINNED] = "pinned",
    [ABLATION_TWO_USERS] = "two-users",
    [ABLATION_HELP] = "help",
    [ABLATION_BALANCE] = "balance",
    [ABLATION_TRIES] = "tries",
    [ABLATION_REST] = "rest",
    [ABLATION_STRIPE_SHARED] = "stripe-shared",
    [ABLATION_STAYS] = "stays",
    [ABLATION_BUSY] = "busy",
    [ABLATION_PARTS] = "parts",
    [ABLATION_FIRST_ROUNDS] = "first-rounds",
    [ABLATION_MAX] = NULL,
};

static_assert(ABLATION_MAX <= 64, "World.ablated has a bit for each");

int ablation_find(const char *name)
{
    for (int i = 0; i < ABLATION_MAX; i++)
        if (!strcmp(ablation_names[i], name))
            return i;
    return -EINVAL;
}
