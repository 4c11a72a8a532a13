/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [Match] sections by themselves. */

#include "policy/policy.h"

/* Frees what a section holds and empties it. */
void policy_match_done(PolicyMatch *match);

/* Whether nothing is asked for in it. Such a section would match everything, and is never part of a
 * Policy. */
bool policy_match_empty(const PolicyMatch *match);
