/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* PID namespaces, in which the same number means different processes. What a daemon of one has written about processes
 * is nothing to a daemon of another, though they may have a runtime directory in common. */

#include <stdbool.h>

/* The length of the longest name of a journal, and the byte that ends it. */
#define JOURNAL_NAME_SIZE sizeof("journal-4294967295")

/* What the journal is called in this process's namespace: "journal" in the machine's first one, or where /proc below
 * `root_fd` does not say; otherwise "journal-N", N the number of the namespace (pid_namespaces(7)). */
void namespace_journal_name(int root_fd, char ret[static JOURNAL_NAME_SIZE]);

/* Whether a file of a runtime directory is called as a journal is in some namespace. */
bool namespace_is_journal_name(const char *name);

/* Whether /proc below `root_fd` is the one of this process's namespace. Otherwise its numbers are other processes'
 * here, and no system call may be made with them. */
bool namespace_has_own_proc(int root_fd);
