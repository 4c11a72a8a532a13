/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* numaplaced.conf: settings of the daemon itself. numaplaced.conf(5) is its manual. */

#include "base/util.h"
#include "conf/table.h"
#include "topo/topology.h"

#include <hwloc/bitmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_NAME "numaplaced.conf"

/* Directories of numaplaced.conf and numaplaced.conf.d/; the first one wins. */
#define CONFIG_DIRECTORIES \
    "/etc/numaplace", "/run/numaplace", "/usr/local/lib/numaplace", "/usr/lib/numaplace"

typedef struct Config {
    char *path; /* of numaplaced.conf; NULL: there is none */

    /* [Daemon] */
    uint64_t fast_tick_usec;
    uint64_t slow_tick_usec;
    uint32_t max_cpu_permille;    /* of one CPU */
    uint32_t idle_permille;       /* below this a CPU is idle */
    hwloc_bitmap_t reserved_cpus; /* NULL: none */
    bool dry_run;
    bool keep_on_stop;
    uint32_t max_tasks;
    uint32_t max_workloads; /* always POLICY_MAX; values in files are ignored */

    /* [Limits]: of the whole host */
    uint32_t cross_node_moves_per_sec;
    uint32_t cross_node_burst;
} Config;

/* The table of all keys, in the order of the manual. */
extern const ConfKey config_keys[];
extern const size_t config_n_keys;

/* Reads `path` alone, or if that is NULL, the files found in `directories` (NULL-terminated, the first wins)
 * and their drop-ins. There may be no file, but `path` must be readable. With a topology, reserved CPUs that
 * it does not have are warnings. On success *ret is a new Config.
 * Returns 0, -EBADMSG (see `report`), or -ENOMEM. */
int config_load(const char *path, const char *const *directories, const Topology *topology, Config **ret,
                ConfReport *report);

/* Parses one text on top of `config`, for the tests and the fuzzer. Returns what conf_parse() returns. */
int config_parse(Config *config, const char *text, size_t len, const char *file, ConfReport *report);

/* Makes a Config with all defaults. Returns 0 or -ENOMEM. */
int config_new(Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config *, config_free)
