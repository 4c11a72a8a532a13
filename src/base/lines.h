/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts of the kernel that may have megabytes, line by line. */

/* Takes in one line, without its newline. Returns 0, or -errno, which ends the reading. */
typedef int (*LinesAdd)(void *userdata, const char *line);

/* Reads all of `file` below `dir_fd`. Returns 0; what `add` returned; -errno of the reading; -ESRCH when the text is
 * empty, as it is when the process has no memory (any more); -EINVAL when a line does not end or is longer than any
 * should be. */
int lines_read(int dir_fd, const char *file, LinesAdd add, void *userdata);
