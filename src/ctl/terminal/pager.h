/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shows long output in a pager, as systemctl(1) does: on a terminal, with $NUMAPLACE_PAGER, $PAGER, less(1)
 * or more(1). An empty variable or "cat" means none. */

#include "ctl/ctl.h"

#include <sys/types.h>

/* A running pager. */
typedef struct Pager {
    pid_t pid; /* 0: none, and nothing has changed */
    int error; /* the original standard error; -1: it is unchanged */
} Pager;

/* Starts a pager if one is wanted. Standard output becomes its input, and so does standard error if that is
 * the terminal. Records the terminal's width in `options`, because it cannot be read any more. */
Pager pager_open(CtlOptions *options);

/* Ends the output and waits for the pager to exit. Returns `code`, or reports and returns a failure when the
 * pager could not be run. */
CtlExit pager_close(Pager pager, CtlExit code);
