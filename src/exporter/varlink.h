/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The metrics as io.systemd.Metrics over Varlink, which systemd-report (systemd 260 and later) reads from the sockets
 * below /run/systemd/report. */

#include "ctl/ctl.h"

/* Names of metrics begin with the name of the socket, as systemd-report demands; the rest of a name is that of
 * OpenMetrics without the prefix, in camel case: numaplace_idle_cpus is org.numaplace1.IdleCpus. */
#define VARLINK_PREFIX "org.numaplace1."

/* Answers the calls that come over a connected socket until the other side ends, breaks the protocol, or is silent for
 * ten seconds. Asks the daemon that options->socket names at each List and Describe. Returns an exit status. */
int varlink_serve(int fd, const CtlOptions *options);
