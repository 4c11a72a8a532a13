/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/config.h"

#include "base/parse.h"
#include "base/time.h"
#include "conf/search.h"
#include "policy/policy.h"
#include "world/load.h"

#include <string.h>

#define FIELD(name) offsetof(Config, name)

/* Below 10 ms a tick is mostly the kernel's own tick (1-10 ms) and noise; above 10 s nothing could be called
 * a lease. */
static const ConfRange fast_tick_range = {.min = 10 * USEC_PER_MSEC, .max = 10 * USEC_PER_SEC};
/* Discovery reads the whole of /proc: ten times a second would cost more than it could find. After more than 10 s,
 * trials of shared nodes would be judged too late (plan/home/pool.c), and what a program does at its start would be
 * over (plan/choose/outgrown.c). MaxCPU= limits the cost without setting an interval. */
static const ConfRange slow_tick_range = {.min = 100 * USEC_PER_MSEC, .max = 10 * USEC_PER_SEC};
/* Under 0.1 % ticks would be minutes apart; a whole CPU is the most one thread can use. */
static const ConfRange max_cpu_range = {.min = 1, .max = 1000};
static const ConfRange idle_cpu_range = {.min = 1, .max = 500};
static const ConfRange max_tasks_range = {.min = 1, .max = 4194304};  /* PID_MAX_LIMIT */
static const ConfRange max_workloads_range = {.min = 1, .max = 1024}; /* POLICY_MAX */
static const ConfRange moves_range = {.min = 0, .max = 1000000};
static const ConfRange burst_range = {.min = 1, .max = 1000000};

const ConfKey config_keys[] = {
    {"Daemon", "FastTickSec", conf_parse_span, &fast_tick_range, FIELD(fast_tick_usec), "100ms",
     "a time span from 10ms to 10s", NULL},
    {"Daemon", "SlowTickSec", conf_parse_span, &slow_tick_range, FIELD(slow_tick_usec), "1s",
     "a time span from 100ms to 10s", NULL},
    {"Daemon", "MaxCPU", conf_parse_permille, &max_cpu_range, FIELD(max_cpu_permille), "1%",
     "a share of one CPU from 0.1% to 100%", NULL},
    {"Daemon", "IdleCPU", conf_parse_permille, &idle_cpu_range, FIELD(idle_permille), LOAD_IDLE_TEXT,
     "a share of its time from 0.1% to 50%",
     "below this a CPU runs only timers and interrupts (P1, overload map)"},
    {"Daemon", "ReservedCPUs", conf_parse_list, NULL, FIELD(reserved_cpus), "",
     "a list of CPUs up to 65535 such as 0-1,8", NULL},
    {"Daemon", "DryRun", conf_parse_bool, NULL, FIELD(dry_run), "no", "yes or no", NULL},
    {"Daemon", "KeepOnStop", conf_parse_bool, NULL, FIELD(keep_on_stop), "no", "yes or no", NULL},
    {"Daemon", "MaxTasks", conf_parse_u32, &max_tasks_range, FIELD(max_tasks), "250000",
     "a number from 1 to 4194304", NULL},
    {"Daemon", "MaxWorkloads", conf_parse_u32, &max_workloads_range, FIELD(max_workloads), "1024",
     "a number from 1 to 1024", "no more than 1024 policies are supported"},
    {"Limits", "CrossNodeMovesPerSec", conf_parse_u32, &moves_range, FIELD(cross_node_moves_per_sec), "100",
     "a number from 0 to 1000000", NULL},
    {"Limits", "CrossNodeBurst", conf_parse_auto, &burst_range, FIELD(cross_node_burst), "auto",
     "auto or a number from 1 to 1000000", "four seconds of CrossNodeMovesPerSec= (I4)"},
};

const size_t config_n_keys = ARRAY_SIZE(config_keys);

/* The state of parsing one file. */
typedef struct Parsing {
    Config *config;
    const Topology *topology;                /* NULL: CPUs are not checked */
    unsigned lines[ARRAY_SIZE(config_keys)]; /* line that set each key; 0: not yet */
} Parsing;

static int on_section(void *userdata, const char *section, const char *file, unsigned line,
                      ConfReport *report)
{
    if (!conf_table_has_section(config_keys, config_n_keys, section))
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line,
                        "unknown section [%s], ignoring it; expected [Daemon] or [Limits]", section);
    return 0;
}

static int check_reserved(const Parsing *parsing, const char *file, unsigned line, ConfReport *report)
{
    CLEANUP_BITMAP hwloc_bitmap_t missing = hwloc_bitmap_alloc();
    CLEANUP_FREE char *list = NULL;

    if (!parsing->topology || !parsing->config->reserved_cpus)
        return 0;
    if (!missing ||
        hwloc_bitmap_andnot(missing, parsing->config->reserved_cpus, parsing->topology->all_cpus) < 0)
        return -ENOMEM;
    if (hwloc_bitmap_iszero(missing))
        return 0;
    list = format_list(missing, PARSE_CPU_MAX);
    if (!list)
        return -ENOMEM;
    conf_report_add(
        report, CONF_SEVERITY_WARNING, file, line,
        "ReservedCPUs= names CPUs that do not exist or are offline, and are reserved once they come "
        "online: %s",
        list);
    return 0;
}

static int on_entry(void *userdata, const char *section, const char *name, const char *value,
                    const char *file, unsigned line, ConfReport *report)
{
    Parsing *parsing = userdata;
    const ConfKey *key;
    int r;

    if (!conf_table_has_section(config_keys, config_n_keys, section))
        return 0; /* reported once, at the section's line */
    r = conf_table_apply(config_keys, config_n_keys, parsing->config, section, name, value, file, line,
                         report);
    key = r == 0 ? conf_table_find(config_keys, config_n_keys, section, name) : NULL;
    if (key && !key->fixed) {
        conf_table_warn_again(key, parsing->lines[key - config_keys], file, line, report);
        parsing->lines[key - config_keys] = line;
        if (key->offset == FIELD(reserved_cpus))
            r = check_reserved(parsing, file, line, report);
    }
    return r == -EBADMSG ? 0 : r; /* the report has it */
}

static const ConfHandler handler = {.example = "Daemon", .section = on_section, .entry = on_entry};

int config_new(Config **ret)
{
    CLEANUP(config_free_p) Config *config = calloc(1, sizeof(*config));
    int r;

    if (!config)
        return -ENOMEM;
    r = conf_table_defaults(config_keys, config_n_keys, config);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(config);
    return 0;
}

Config *config_free(Config *config)
{
    if (!config)
        return NULL;
    hwloc_bitmap_free(config->reserved_cpus);
    free(config->path);
    free(config);
    return NULL;
}

int config_parse(Config *config, const char *text, size_t len, const char *file, ConfReport *report)
{
    Parsing parsing = {.config = config};

    return conf_parse(text, len, file, &handler, &parsing, report);
}

/* Continues after errors (*bad), so that one reading shows all of them. */
static int parse_file(Config *config, const char *path, const Topology *topology, ConfReport *report,
                      bool *bad)
{
    Parsing parsing = {.config = config, .topology = topology};
    int r = conf_parse_file(path, &handler, &parsing, report);

    *bad = *bad || r == -EBADMSG;
    return r == -EBADMSG ? 0 : r;
}

static int parse_found(Config *config, const char *const *directories, const Topology *topology,
                       ConfReport *report, bool *bad)
{
    ConfFile found = {0};
    int r = conf_search_one(directories, CONFIG_NAME, &found, report);

    if (r < 0)
        return r;
    if (found.path)
        r = parse_file(config, found.path, topology, report, bad);
    for (size_t i = 0; r == 0 && i < found.n_dropins; i++)
        r = parse_file(config, found.dropins[i], topology, report, bad);
    config->path = TAKE_PTR(found.path);
    conf_file_done(&found);
    return r;
}

int config_load(const char *path, const char *const *directories, const Topology *topology, Config **ret,
                ConfReport *report)
{
    CLEANUP(config_free_p) Config *config = NULL;
    bool bad = false;
    int r = config_new(&config);

    if (r < 0)
        return r;
    if (path) {
        config->path = strdup(path);
        if (!config->path)
            return -ENOMEM;
        r = parse_file(config, path, topology, report, &bad);
    } else {
        r = parse_found(config, directories, topology, report, &bad);
    }
    if (r < 0)
        return r;
    if (bad)
        return -EBADMSG;
    config->cross_node_burst = POLICY_BURST_SEC * config->cross_node_moves_per_sec;
    *ret = TAKE_PTR(config);
    return 0;
}
