/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /run/numaplace: where the socket, the undo journal and the lock live. */

#include <sys/types.h>

/* Makes the directory (0755) when it is missing and checks that it is one that nobody else could have
 * prepared: a real directory, owned by root or by this user, writable by nobody else. Returns a descriptor
 * (O_CLOEXEC), or -errno and a malloc'd sentence in *ret_error. */
int runtime_dir_open(const char *path, char **ret_error);

/* Takes the lock that makes this the only daemon on the directory; it is held as long as the returned
 * descriptor is open and ends with the process however that ends. Returns -EBUSY, with the holder named in
 * *ret_error, when there is one. */
int runtime_dir_lock(int dir_fd, const char *path, char **ret_error);
