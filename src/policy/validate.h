/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a policy must hold beyond the form of its values. */

#include "policy/policy.h"

/* Whether `name` is a good name for a policy: 1 to POLICY_NAME_MAX bytes, ASCII letters, digits and
 * .-_@:+, the first of them a letter or digit. Names appear in bus paths, tables and file names. */
bool policy_name_valid(const char *name);

/* Checks keys against each other and against the machine (`topology` may be NULL). Adds an error to
 * `report` for each contradiction, and a warning for a match that can never come true. Returns 0 or
 * -ENOMEM. */
int policy_validate(const Policy *policy, const Topology *topology, ConfReport *report);
