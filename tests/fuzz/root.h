/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A root directory for targets that read files, in TMPDIR. It is removed when the program ends. */

#include <stddef.h>

/* The directory's descriptor, and its path. It is made at the first call; on failure the program aborts. */
int fuzz_root(void);
const char *fuzz_root_path(void);

/* Writes a file below it ("proc/1/comm") and creates its directories. */
void fuzz_root_write(const char *path, const void *data, size_t size);
