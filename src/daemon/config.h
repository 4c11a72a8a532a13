/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* numaplaced.conf: settings of the daemon itself. numaplaced.conf(5) is its manual. */

#include "base/util.h"
#include "conf/table.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_NAME "numaplaced.conf"

/* The directories of numaplaced.conf and numaplaced.conf.d/, first wins. */
#define CONFIG_DIRECTORIES \
    "/etc/numaplace", "/run/numaplace", "/usr/local/lib/numaplace", "/usr/lib/numaplace"

typedef struct Config {
    char *path; /* of the file read, NULL: none, all defaults */

    /* [Daemon] */
    uint64_t fast_tick_usec;
    uint64_t slow_tick_usec;
    uint32_t max_cpu_permille;    /* of one CPU */
    uint32_t idle_permille;       /* below this a CPU is idle */
    hwloc_bitmap_t reserved_cpus; /* NULL: none */
    bool dry_run;
    bool keep_on_stop;
    uint32_t max_tasks;
    uint32_t max_workloads; /* POLICY_MAX; what files say is not taken */

    /* [Limits]: of the whole host */
    uint32_t cross_node_moves_per_sec;
    uint32_t cross_node_burst;
} Config;

/* The table of all keys, in the order of the manual. */
extern const ConfKey config_keys[];
extern const size_t config_n_keys;

/* Reads the configuration: `path` alone, or (NULL) the files found in `directories` (NULL-terminated, first
 * wins) with their drop-ins. No file at all is fine, a `path` that cannot be read is not. On success *ret
 * holds a Config of its own. Returns 0, -EBADMSG (see `report`; nothing is returned), or -ENOMEM. */
int config_load(const char *path, const char *const *directories, Config **ret, ConfReport *report);

/* Parses one text over `config`, for the tests and the fuzzer. Returns as conf_parse() does. */
int config_parse(Config *config, const char *text, size_t len, const char *file, ConfReport *report);

/* All defaults. Returns 0 or -ENOMEM. */
int config_new(Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free)
