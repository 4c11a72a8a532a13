/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plugin's output: one JSON object per line, flushed at once so that it can be followed. README.md
 * describes the keys. */

#include "model.h"

#include <stdio.h>

/* The first line: the shape of the guest and its prices. */
int report_config(FILE *f, const Config *c, int api_version);

/* The counters of all CPUs since power-on. `event` is "on", "off", "mark", "tick" or "exit"; `number` is that
 * of the mark or tick; `cpu` is the CPU that marked, or -1. All functions return 0 or -errno. */
int report_counters(FILE *f, const Config *c, Model *m, const char *event, unsigned number, int cpu,
                    uint64_t time_nsec);
