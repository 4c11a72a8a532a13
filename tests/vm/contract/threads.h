/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads of a child, all of which do the same. */

#define THREADS_MAX 8U

/* Starts `n` threads, at most THREADS_MAX, which run `body` with their number, and waits for ever. For what is given to
 * child_start(); the child ends with a status of 1 when they are more or cannot be started. */
_Noreturn void threads_run(unsigned n, void (*body)(void *userdata, unsigned index), void *userdata);
