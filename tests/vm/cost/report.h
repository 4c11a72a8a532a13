/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plugin's output: one JSON object per line, written at once so that it can be followed. README.md has the keys. */

#include "model.h"

#include <stdio.h>

/* The first line: what the guest is made of and what it is charged. */
int report_config(FILE *f, const Config *c, int api_version);

/* The counters of all CPUs, summed up since power-on. `event` is "on", "off", "mark", "tick" or "exit"; `number` is the
 * mark's or tick's; `cpu` the one that marked, or -1. All return 0 or -errno. */
int report_counters(FILE *f, const Config *c, Model *m, const char *event, unsigned number, int cpu,
                    uint64_t time_nsec);
