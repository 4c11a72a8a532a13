/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon's counters as text, for `metrics` and numaplace-exporter. */

#include "ctl/ctl.h"

/* Queries the daemon at options->socket and writes OpenMetrics text. Writes nothing when that fails. */
CtlExit metrics_write(const CtlOptions *options, FILE *out);

/* Queries the daemon and returns the same as JSON: families of {name, type, help, samples of {labels, value}}. */
CtlExit metrics_get(const CtlOptions *options, json_object **ret);
