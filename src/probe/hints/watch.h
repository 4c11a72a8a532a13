/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether somebody else uses the soft-dirty bits of a process: a checkpoint in small steps (CRIU), a live migration, a
 * debugger. Nothing says so; it is told by what they leave.
 *
 * Before: each new mapping counts as dirty as a whole, so as long as nobody ever cleared the bits of a process all of
 * its memory has them. A mapping without means that somebody did, or did to the process it was forked from.
 *
 * Meanwhile: a page that was written after we protected it has the bit. When it has not, somebody cleared it since. */

#include <stddef.h>
#include <stdint.h>

/* Descriptors of /proc/PID; 1: somebody does or did, 0: no sign of it, -errno. Take the locks of the process. */
int hint_watch_before(int proc_fd);
/* `written` are `n` addresses that were written after the last protection. 1 when at least four pages are still
 * there, and seven of eight of these lack the bit. */
int hint_watch_meanwhile(int proc_fd, const uint64_t *written, size_t n);
