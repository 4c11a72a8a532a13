/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* This machine as the daemon sees it, for tests of evidence. */

#include "support.h"

#include "probe/memory/evidence.h"

typedef struct Machine {
    int root_fd;
    Topology *topology;
    EvidenceMachine evidence;
} Machine;

extern Machine machine;

/* For cmocka, once for all tests of a program. */
int machine_setup(void **state);
int machine_teardown(void **state);

/* A process to observe. */
EvidenceTarget machine_target(pid_t pid);

/* Skips where there are no write hint faults. */
void need_write(void);
