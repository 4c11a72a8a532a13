/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Threads of a child that all do the same. */

#define THREADS_MAX 64U

/* Starts `n` threads, at most THREADS_MAX, which run `body` with their number, and waits for ever. For the
 * body of child_start(). The child exits with status 1 when there are more threads or they cannot be started. */
_Noreturn void threads_run(unsigned n, void (*body)(void *userdata, unsigned index), void *userdata);
