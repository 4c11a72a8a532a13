/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why each policy matches a process or not, down to the key that fails. */

#include "ctl/ctl.h"
#include "policy/policy.h"

/* Makes {"pid", "comm", ..., "policy": NAME or null, "mode", "policies": [{"name", "verdict": "yes", "later" or "no",
 * "section", "sections": [{"file", "line", "verdict", "failed": [{"key", "wanted", "found"}]}]}]}. Sections count from
 * 1; 0 means that none matches. `pid` 0: a command that does not run yet. Returns 0 or -ENOMEM. */
int match_report(const PolicySet *set, const PolicySubject *subject, pid_t pid, json_object **ret);

/* Prints one as text, or as JSON if the options say so. */
CtlExit match_report_print(const CtlOptions *options, json_object *report);
