/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Serves the metrics as io.systemd.Metrics over Varlink. systemd-report (systemd 260 and later) reads them
 * from the sockets below /run/systemd/report. */

#include "ctl/ctl.h"

/* Names of metrics begin with the name of the socket, as systemd-report demands. The rest is the OpenMetrics
 * name without its prefix, in camel case: numaplace_idle_cpus is org.numaplace1.IdleCpus. */
#define VARLINK_PREFIX "org.numaplace1."

/* Answers calls over a connected socket until the peer ends, breaks the protocol, or is silent for ten
 * seconds. Each List and Describe asks the daemon at options->socket. Returns an exit status. */
int varlink_serve(int fd, const CtlOptions *options);
