/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Search order of configuration files: /etc, /run, /usr/local/lib, /usr/lib, as systemd does it. */

#include "conf/ini.h"

#include <stddef.h>

#define CONF_FILES_MAX 4096U /* files in one directory; a limit against accidents */

/* One file to read, with its drop-ins after it. */
typedef struct ConfFile {
    char *name;     /* base name: "50-jvm.policy" */
    char *path;     /* the winning file; never NULL from conf_search() */
    char **dropins; /* paths, in order of base name */
    size_t n_dropins;
} ConfFile;

typedef struct ConfFiles {
    ConfFile *files; /* ascending name */
    size_t n_files, capacity;
} ConfFiles;

void conf_files_done(ConfFiles *files);

/* Finds all `*suffix` files (suffix such as ".policy") in the NULL-terminated list of directories, the
 * first directory winning: the same name in a later one is hidden; a link to /dev/null (an empty regular
 * file does not) masks the name in all; `NAME.d/x.conf` drop-ins are gathered from all directories by the
 * same rule. Hidden files (.x) are skipped, missing directories are fine unless all are, and that and
 * drop-ins without a file are warnings. Unreadable directories, dangling and circular links and over-long
 * lists are errors in `report`.
 * Whether a file is a regular one is left to conf_parse_file(). Returns 0, -EBADMSG (see report; *ret has the others),
 * -ENOMEM. */
int conf_search(const char *const *directories, const char *suffix, ConfFiles *ret, ConfReport *report);

/* The same for a single main file "numaplaced.conf" and its ".d" directories. `ret->path` is NULL when
 * there is no such file or it is masked; its drop-ins count all the same. */
int conf_search_one(const char *const *directories, const char *name, ConfFile *ret, ConfReport *report);

void conf_file_done(ConfFile *file);
