/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Requirements on a policy beyond the form of its values. */

#include "policy/policy.h"

/* Whether `name` is a valid policy name: 1 to POLICY_NAME_MAX bytes of ASCII letters, digits and .-_@:+,
 * beginning with a letter or digit. Names appear in bus paths, tables and file names. */
bool policy_name_valid(const char *name);

/* Checks keys against each other and against the machine (`topology` may be NULL). Adds an error to `report`
 * for each contradiction, and a warning for a match that can never succeed. Returns 0 or -ENOMEM. */
int policy_validate(const Policy *policy, const Topology *topology, ConfReport *report);
