/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The values of match keys as text: globs separated by blanks. */

#include "policy/policy.h"

/* A ConfParser for PolicyPatterns. Appends the globs of `value`, so that a repeated key adds to its
 * values; an empty value drops them all. A leading ! outside of quotes negates; "" and '' hold blanks and
 * anything else but themselves, and may stand around any part of a value: NAME="a b". A backslash and what follows it
 * are left to the glob, in quotes, too. -EINVAL: an unclosed quote, a value with nothing in it, or a backslash
 * with nothing to escape. -ERANGE: more than POLICY_VALUES_MAX. */
int policy_patterns_parse(const char *value, void *field, const void *arg);

/* The text policy_patterns_parse() reads. Malloc'd, NULL when memory is out. */
char *policy_patterns_format(const PolicyPatterns *patterns);

void policy_patterns_done(PolicyPatterns *patterns);

/* match.c: frees what a [Match] section holds and empties it. */
void policy_match_done(PolicyMatch *match);
/* Whether nothing is asked for in it. Such a section would match everything, and is never part of a Policy. */
bool policy_match_empty(const PolicyMatch *match);
