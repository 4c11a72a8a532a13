/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is long is shown by a pager, as systemctl(1) does it: on a terminal, by $NUMAPLACE_PAGER, $PAGER, less(1) or
 * more(1). An empty one, or "cat", is none. */

#include "ctl/ctl.h"

#include <sys/types.h>

/* A pager that runs. */
typedef struct Pager {
    pid_t pid; /* 0: there is none, and nothing has changed */
    int error; /* standard error as it was, -1: it still is */
} Pager;

/* Makes standard output, and standard error where that is the terminal, too, the pager's input, if there is to be one,
 * and notes in `options` how wide the terminal is, which cannot be seen any more. */
Pager pager_open(CtlOptions *options);

/* Ends the output and waits until its reader is done with it. Returns `code`, or a failure, and says so, when the pager
 * could not be run. */
CtlExit pager_close(Pager pager, CtlExit code);
