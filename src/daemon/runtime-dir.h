/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /run/numaplace: the directory of the socket, the undo journal and the lock. */

/* Creates the directory (0755) if it is missing, and checks that nobody else could have prepared it: no link,
 * owned by root or this user, writable by nobody else. Returns a descriptor (O_CLOEXEC), or -errno and a
 * malloc'd sentence in *ret_error. */
int runtime_dir_open(const char *path, char **ret_error);

/* The same, but does not create it: returns -ENOENT, without a sentence, if it is missing. */
int runtime_dir_find(const char *path, char **ret_error);

/* Takes the lock that makes this the only daemon on the directory. It is held while the returned descriptor is open,
 * and ends with the process, however that ends. Returns -EBUSY, and names the holder in *ret_error, if it is taken. */
int runtime_dir_lock(int dir_fd, const char *path, char **ret_error);

/* Takes the lock that makes this the only daemon of the host that places tasks, whatever its runtime directory. The
 * lock lies in the directory `standard`, which is created if missing, and is held and refused like that above. */
int host_lock_take(const char *standard, char **ret_error);
/* The runtime directories that the last holder signed for, one a line, malloc'd, or ""; NULL with errno set
 * if these cannot be read. */
char *host_lock_last(int fd);
/* Notes the runtime directories with masks that the next holder may have to put back, one a line: first that of this
 * holder. Nothing changes if the file cannot be written. */
void host_lock_sign(int fd, const char *paths);

/* Makes sure that there is no such daemon while the returned descriptor is open; any number of programs can
 * do so at once. Creates nothing: returns -ENOENT, without a sentence, if there has never been one. */
int host_lock_pass(const char *standard, char **ret_error);
