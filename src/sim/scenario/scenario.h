/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads scenario files; numaplace.scenario(5) is their manual. */

#include "conf/table.h"
#include "sim/scenario/spec.h"

#include <stddef.h>

/* The table of keys in the order of the manual, without those of [Expect] (sim/scenario/expect.h) and [Policy
 * ...] (policy/policy.h). Offsets are into the reader's object for the section, see sim/scenario/draft.h. */
extern const ConfKey sim_scenario_keys[];
extern const size_t sim_scenario_n_keys;

extern const char *const sim_imbalance_names[];
extern const char *const sim_wake_names[];
extern const char *const sim_touch_names[];

/* Reads and resolves one scenario. `policy_dirs` (NULL-terminated, first wins) replace the scenario's
 * policies in every variant with a daemon; NULL: they do not. Files that it names are relative to its
 * directory. Errors are added to `report` with file, line and what was expected, and then nothing is
 * returned. Only policy files cause warnings. Returns 0, -EBADMSG or -ENOMEM. */
int sim_scenario_load(const char *path, const char *const *policy_dirs, SimSpec **ret, ConfReport *report);

/* The same from memory, for tests and the fuzzer. Files that it names are relative to `directory`; NULL: it
 * may name none. */
int sim_scenario_parse(const char *name, const char *text, size_t len, const char *file,
                       const char *directory, SimSpec **ret, ConfReport *report);
