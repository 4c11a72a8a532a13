/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon counts, as text: for `metrics`, and for numaplace-exporter. */

#include "ctl/ctl.h"

/* Asks the daemon that options->socket names, and writes OpenMetrics text. Nothing is written when that fails. */
CtlExit metrics_write(const CtlOptions *options, FILE *out);

/* Asks it, and gives the same as JSON: families of {name, type, help, samples of {labels, value}}. */
CtlExit metrics_get(const CtlOptions *options, json_object **ret);
