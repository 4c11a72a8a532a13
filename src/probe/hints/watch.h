/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether somebody else uses the soft-dirty bits of a process: an incremental checkpoint (CRIU), a live
 * migration, a debugger. Nothing announces that; it shows in the bits.
 *
 * Before: each new mapping counts as dirty as a whole. So a mapping without the bits means that somebody
 * cleared those of the process, or of the process it was forked from.
 *
 * Meanwhile: a page written after we protected it has the bit, unless somebody has cleared it since. */

#include <stddef.h>
#include <stdint.h>

/* `proc_fd` is /proc/PID. 1: somebody uses or used them, 0: no sign of it, -errno. Both functions take the
 * locks of the process. */
int hint_watch_before(int proc_fd);
/* `written` are `n` addresses written after the last protection. 1 when at least four of their pages are
 * still present, and seven of eight of these lack the bit. */
int hint_watch_meanwhile(int proc_fd, const uint64_t *written, size_t n);
