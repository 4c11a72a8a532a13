/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* All runs of a scenario: every variant with every seed, on all CPUs that this process may use. */

#include "ctl/ctl.h"
#include "sim/scenario/expect.h"

typedef struct SimulateShared SimulateShared;

typedef struct SimulateRuns {
    SimTable table;
    SimulateShared *shared; /* owns table.values */
    size_t bytes;
} SimulateRuns;

/* Runs seeds 1 to spec->n_seeds of each variant in child processes, with progress on standard error if that
 * is a terminal. `spec` must outlive the result. Reports errors. */
CtlExit simulate_run_all(const SimSpec *spec, SimulateRuns *ret);
void simulate_runs_done(SimulateRuns *runs);

/* Draws the first seed of every variant through gnuplot into an SVG file: CPUs in use over time, by workload
 * and node. Reports errors. Does not touch the file before the picture is complete. */
CtlExit simulate_plot(const SimSpec *spec, const char *path);

/* Writes the plans of the first seed of the first variant with a daemon into a file, as numaplaced --record=
 * does. Reports errors; the file is written whole or not touched. */
CtlExit simulate_record(const SimSpec *spec, const char *path);
