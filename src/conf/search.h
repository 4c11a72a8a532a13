/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Search order of configuration files, as in systemd: /etc, /run, /usr/local/lib, /usr/lib. */

#include "conf/ini.h"

#include <stddef.h>

#define CONF_FILES_MAX 4096U /* files in one directory, a limit against accidents */

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

/* Finds all `*suffix` files (suffix such as ".policy") in a NULL-terminated list of directories. Of files with the
 * same name, that in the first directory wins. A link to /dev/null there (not an empty file) masks the name in all.
 * `NAME.d/x.conf` drop-ins follow the same rule. Hidden files (.x) are skipped. Drop-ins without a file are warnings,
 * and so are missing directories if all are missing. Unreadable directories, dangling or circular links and more than
 * CONF_FILES_MAX files in a directory are errors in `report`. conf_parse_file() checks that a file is regular. Returns
 * 0, -EBADMSG (see `report`; *ret has the other files) or -ENOMEM. */
int conf_search(const char *const *directories, const char *suffix, ConfFiles *ret, ConfReport *report);

/* The same for a single main file such as "numaplaced.conf" and its ".d" directories. `ret->path` is NULL
 * when there is no such file or it is masked; its drop-ins still count. */
int conf_search_one(const char *const *directories, const char *name, ConfFile *ret, ConfReport *report);

void conf_file_done(ConfFile *file);
