/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The values of match keys as text: globs separated by blanks. */

#include "policy/policy.h"

/* A ConfParser for PolicyPatterns. Appends the globs of `value`, because a repeated key adds values; an empty
 * value removes all. Blanks separate globs. A leading ! outside quotes negates. "" and '' may quote any part
 * of a value (NAME="a b") and hold blanks and anything else except themselves. A backslash and the next
 * character are left to the glob, also inside quotes. -EINVAL: an unclosed quote, a value without characters
 * or a trailing backslash. -ERANGE: more than POLICY_VALUES_MAX. */
int policy_patterns_parse(const char *value, void *field, const void *arg);

/* The text that policy_patterns_parse() reads. Malloc'd, NULL when out of memory. */
char *policy_patterns_format(const PolicyPatterns *patterns);

void policy_patterns_done(PolicyPatterns *patterns);

/* In match.c: frees the contents of a [Match] section and empties it. */
void policy_match_done(PolicyMatch *match);
/* Whether it has no condition. Such a section would match everything, and is never part of a Policy. */
bool policy_match_empty(const PolicyMatch *match);
