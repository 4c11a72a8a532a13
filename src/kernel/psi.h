/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Pressure stall information: values and triggers (Documentation/accounting/psi). */

#include <stdbool.h>
#include <stdint.h>

typedef struct PsiLine {
    uint32_t avg10_permille, avg60_permille, avg300_permille;
    uint64_t total_usec;
} PsiLine;

typedef struct Psi {
    PsiLine some;
    PsiLine full;
    bool has_full;
} Psi;

/* Room for a pressure file. */
#define PSI_TEXT_SIZE 512U

/* Parses the text of a pressure file. 0 or -EINVAL. */
int psi_parse(const char *text, Psi *ret);

/* Reads `path` ("proc/pressure/cpu", "sys/fs/cgroup/x/cpu.pressure") below the root. 0 or -errno. */
int psi_read(int root_fd, const char *path, Psi *ret);

/* Arms a trigger on `path`: the descriptor polls as EPOLLPRI when some tasks were stalled for `stall_usec`
 * within `window_usec` (500 ms to 10 s). Returns the descriptor, or -errno. */
int psi_trigger(int root_fd, const char *path, uint64_t stall_usec, uint64_t window_usec);
