/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads kernel text files, which may have megabytes, line by line. */

/* Called with each line, without its newline. Returns 0, or -errno, which ends the reading. */
typedef int (*LinesAdd)(void *userdata, const char *line);

/* Reads all of `file` below `dir_fd`. Returns 0; the error that `add` returned; -errno of opening or reading;
 * -ESRCH if the file is empty, as it is when the process has no memory (any more); -EINVAL if the last line
 * has no newline or a line is too long to be plausible; -ENOMEM. */
int lines_read(int dir_fd, const char *file, LinesAdd add, void *userdata);
