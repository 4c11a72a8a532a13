/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads scenario files; numaplace.scenario(5) is their manual. */

#include "conf/table.h"
#include "sim/scenario/spec.h"

#include <stddef.h>

/* The table of keys, in the order of the manual, without those of [Expect] (sim/scenario/expect.h) and [Policy ...]
 * (policy/policy.h). Offsets are into what the reader keeps per section, see sim/scenario/draft.h. */
extern const ConfKey sim_scenario_keys[];
extern const size_t sim_scenario_n_keys;

extern const char *const sim_imbalance_names[];
extern const char *const sim_wake_names[];
extern const char *const sim_touch_names[];

/* Reads and resolves one scenario. `policy_dirs` (NULL-terminated, first wins) are taken in place of the policies
 * the scenario names, in every variant; NULL: its own. Files it names are relative to its directory. Every error is
 * in `report` with file, line and what was expected, and nothing is returned then. Warnings come from policy files
 * only. Returns 0, -EBADMSG or -ENOMEM. */
int sim_scenario_load(const char *path, const char *const *policy_dirs, SimSpec **ret, ConfReport *report);

/* The same from memory, for tests and the fuzzer. `directory` is what files it names are relative to; NULL: it may name
 * none. */
int sim_scenario_parse(const char *name, const char *text, size_t len, const char *file,
                       const char *directory, SimSpec **ret, ConfReport *report);
