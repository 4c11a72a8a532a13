/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A root directory for targets that read files, in TMPDIR, gone when the program ends. */

#include <stddef.h>

/* Of the directory, and its path. Made at the first call; a program that cannot make it aborts. */
int fuzz_root(void);
const char *fuzz_root_path(void);

/* Writes a file below it ("proc/1/comm"), with its directories. */
void fuzz_root_write(const char *path, const void *data, size_t size);
