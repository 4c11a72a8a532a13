/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /run/numaplace: the directory of the socket, the undo journal and the lock. */

/* Makes the directory (0755) when it is missing and checks that it is one that nobody else could have
 * prepared: a real directory, owned by root or by this user, writable by nobody else. Returns a descriptor
 * (O_CLOEXEC), or -errno and a malloc'd sentence in *ret_error. */
int runtime_dir_open(const char *path, char **ret_error);

/* The same, and does not make it: -ENOENT, without a sentence, when it is missing. */
int runtime_dir_find(const char *path, char **ret_error);

/* Takes the lock that makes this the only daemon on the directory; it is held as long as the returned
 * descriptor is open and ends with the process however that ends. Returns -EBUSY, with the holder named in
 * *ret_error, when there is one. */
int runtime_dir_lock(int dir_fd, const char *path, char **ret_error);

/* Takes the lock that makes this the only daemon of the host that places tasks, whatever its runtime directory
 * `path` is. It lies in the `standard` one, which is made when it is missing, and is held and refused like the lock
 * above. */
int host_lock_take(const char *standard, const char *path, char **ret_error);

/* Makes sure that there is no such daemon, for as long as the returned descriptor is open; any number of programs
 * can do so at the same time. -ENOENT, without a sentence: there has never been one, and nothing is made. */
int host_lock_pass(const char *standard, char **ret_error);
