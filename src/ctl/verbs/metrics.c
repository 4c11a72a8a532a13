/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* metrics: the daemon's counters for Prometheus and the like. Samples are collected as JSON, family by family, and
 * written in one of three forms: OpenMetrics, the older text that node_exporter reads from files, or JSON.
 *
 * Names follow Prometheus: base units, one unit per name, counters end in _total. There are about a hundred samples, a
 * dozen for each workload, and one for each node where a workload has memory. The number of policies bounds them. */

#include "ctl/verbs/metrics.h"

#include "ctl/client.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <inttypes.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <string.h>

#define PREFIX "numaplace_"

typedef enum MetricType {
    METRIC_GAUGE,
    METRIC_COUNTER,
} MetricType;

/* The metric for one key. */
typedef struct MetricRow {
    const char *name; /* without prefix, and without _total */
    MetricType type;
    const char *key;
    double unit; /* of the value of `key`, in the unit of the name */
    const char *help;
} MetricRow;

#define USEC  1e-6
#define MILLI 1e-3

static const MetricRow daemon_rows[] = {
    {"uptime_seconds", METRIC_GAUGE, "uptime_usec", USEC, "Time since the daemon was started."},
    {"cpus", METRIC_GAUGE, "cpus", 1, "CPUs of the machine."},
    {"idle_cpus", METRIC_GAUGE, "idle", 1, "CPUs that were idle in the last tick."},
    {"overloaded_cpus", METRIC_GAUGE, "overloaded", 1, "CPUs that threads waited for in the last tick."},
    {"processes", METRIC_GAUGE, "processes", 1, "Processes under a policy."},
    {"threads", METRIC_GAUGE, "tasks", 1, "Threads of these."},
    {"pinned_threads", METRIC_GAUGE, "pinned", 1, "Threads left alone because something else pinned them."},
    {"leases", METRIC_GAUGE, "leases", 1, "CPUs that are lent to threads now."},
    {"resident_memory_bytes", METRIC_GAUGE, "rss_bytes", 1, "Resident memory of the daemon."},
    {"tick_interval_seconds", METRIC_GAUGE, "tick_lately_usec", USEC,
     "Recent time from one tick to the next."},
    {"tick_late_max_seconds", METRIC_GAUGE, "tick_late_max_usec", USEC, "The longest delay of a tick."},
    {"memory_pressure_ratio", METRIC_GAUGE, "memory_pressure_permille", MILLI,
     "Share of the last ten seconds in which tasks waited for memory."},
    {"ticks", METRIC_COUNTER, "tick", 1, "Ticks."},
    {"cpu_seconds", METRIC_COUNTER, "cpu_usec", USEC,
     "CPU time of the daemon, without reading where memory lies."},
    {"plan_cpu_seconds", METRIC_COUNTER, "plan_cpu_usec", USEC,
     "CPU time of planning, which is part of that of the daemon."},
    {"memory_cpu_seconds", METRIC_COUNTER, "memory_cpu_usec", USEC, "CPU time of reading where memory lies."},
    {"managed_cpu_seconds", METRIC_COUNTER, "managed_cpu_usec", USEC,
     "CPU time of all threads under a policy."},
    {"lends", METRIC_COUNTER, "lends", 1, "CPUs lent."},
    {"recalls", METRIC_COUNTER, "recalls", 1, "CPUs taken back."},
    {"pushes", METRIC_COUNTER, "pushes", 1, "Threads pushed to idle cores."},
    {"homes", METRIC_COUNTER, "homes", 1, "Homes set."},
    {"releases", METRIC_COUNTER, "releases", 1, "Processes put back."},
    {"memory_orders", METRIC_COUNTER, "memory_orders", 1, "Migration requests submitted."},
    {"memory_moved_bytes", METRIC_COUNTER, "memory_moved_bytes", 1, "Memory moved between nodes."},
    {"memory_blocked_seconds", METRIC_COUNTER, "memory_blocked_usec", USEC,
     "Time of the calls that moved memory, in which threads using it may have waited."},
    {"reload_failures", METRIC_COUNTER, "reload_failures", 1,
     "Reloads that kept the old files because of an error."},
};

static const MetricRow workload_rows[] = {
    {"workload_processes", METRIC_GAUGE, "processes", 1, "Processes of the workload."},
    {"workload_threads", METRIC_GAUGE, "tasks", 1, "Threads of these."},
    {"workload_groups", METRIC_GAUGE, "groups", 1, "Groups, each of which is placed as one."},
    {"workload_paused", METRIC_GAUGE, "paused", 1, "1: it is paused."},
    {"workload_observed", METRIC_GAUGE, "observed", 1, "1: it is only observed, and nothing is changed."},
    {"workload_running_cpus", METRIC_GAUGE, "run_permille", MILLI,
     "CPUs that its threads used in the last tick."},
    {"workload_waiting_cpus", METRIC_GAUGE, "wait_permille", MILLI, "CPUs that they waited for."},
    {"workload_leases", METRIC_GAUGE, "leases", 1, "CPUs that are lent to it now."},
    {"workload_lends", METRIC_COUNTER, "lends", 1, "CPUs lent to it."},
    {"workload_recalls", METRIC_COUNTER, "recalls", 1, "CPUs taken back from it."},
    {"workload_memory_moved_bytes", METRIC_COUNTER, "memory_moved_bytes", 1,
     "Its memory moved between nodes."},
};

typedef struct Metrics {
    json_object *families; /* {name, type, help, samples: [{labels, value}]} */
    json_object *samples;  /* of the last family */
    bool failed;           /* out of memory */
} Metrics;

static void begin_family(Metrics *metrics, const char *name, MetricType type, const char *help)
{
    json_object *family = json_add_object(metrics->families, NULL);
    char full[96];

    (void)snprintf(full, sizeof(full), PREFIX "%s%s", name, type == METRIC_COUNTER ? "_total" : "");
    metrics->failed |= json_set_text(family, "name", full) < 0 ||
                       json_set_text(family, "type", type == METRIC_COUNTER ? "counter" : "gauge") < 0 ||
                       json_set_text(family, "help", help) < 0 ||
                       !(metrics->samples = json_add_array(family, "samples"));
}

/* `labels` holds pairs of name and value, and ends with NULL. */
static void add_sample(Metrics *metrics, double value, const char *const *labels)
{
    json_object *sample = json_add_object(metrics->samples, NULL),
                *object = json_add_object(sample, "labels");

    metrics->failed |= !object || json_set(sample, "value", json_object_new_double(value)) < 0;
    for (size_t i = 0; labels[i]; i += 2)
        metrics->failed |= json_set_text(object, labels[i], labels[i + 1]) < 0;
}

static void add_info(Metrics *metrics, json_object *status)
{
    begin_family(metrics, "info", METRIC_GAUGE, "Version, mode and state of the daemon: always 1.");
    add_sample(metrics, 1,
               (const char *const[]){"version", view_string(status, "version"), "mode",
                                     view_string(status, "mode"), "state", view_string(status, "state"),
                                     NULL});
}

static void add_rows(Metrics *metrics, json_object *status)
{
    for (size_t i = 0; i < ARRAY_SIZE(daemon_rows); i++) {
        const MetricRow *row = &daemon_rows[i];

        begin_family(metrics, row->name, row->type, row->help);
        add_sample(metrics, (double)view_number(status, row->key, 0) * row->unit,
                   (const char *const[]){NULL});
    }
}

/* One counter for each name in a dictionary. */
static void add_counts(Metrics *metrics, const char *name, const char *help, json_object *counts,
                       const char *label)
{
    json_object_iter iter;

    begin_family(metrics, name, METRIC_COUNTER, help);
    if (!counts)
        return;
    json_object_object_foreachC(counts, iter) add_sample(metrics, (double)json_object_get_int64(iter.val),
                                                         (const char *const[]){label, iter.key, NULL});
}

static void add_nodes(Metrics *metrics, json_object *nodes, const char *workload)
{
    for (size_t i = 0; i < view_length(nodes); i++) {
        json_object *node = json_object_array_get_idx(nodes, i);
        char number[24];

        (void)snprintf(number, sizeof(number), "%" PRId64, view_number(node, "node", 0));
        add_sample(metrics, (double)view_number(node, "bytes", 0),
                   workload ? (const char *const[]){"workload", workload, "node", number, NULL}
                            : (const char *const[]){"node", number, NULL});
    }
}

static void add_workloads(Metrics *metrics, json_object *workloads)
{
    size_t n = view_length(workloads);

    begin_family(metrics, "workload_info", METRIC_GAUGE, "How a workload is placed: always 1.");
    for (size_t i = 0; i < n; i++) {
        json_object *workload = json_object_array_get_idx(workloads, i);

        add_sample(metrics, 1,
                   (const char *const[]){"workload", view_string(workload, "name"), "mode",
                                         view_string(workload, "mode"), "act", view_string(workload, "act"),
                                         NULL});
    }
    for (size_t k = 0; k < ARRAY_SIZE(workload_rows); k++) {
        const MetricRow *row = &workload_rows[k];

        begin_family(metrics, row->name, row->type, row->help);
        for (size_t i = 0; i < n; i++) {
            json_object *workload = json_object_array_get_idx(workloads, i);

            add_sample(metrics, (double)view_number(workload, row->key, 0) * row->unit,
                       (const char *const[]){"workload", view_string(workload, "name"), NULL});
        }
    }
    begin_family(metrics, "workload_memory_bytes", METRIC_GAUGE, "Memory of the workload on a node.");
    for (size_t i = 0; i < n; i++) {
        json_object *workload = json_object_array_get_idx(workloads, i);

        add_nodes(metrics, view_list(workload, "memory"), view_string(workload, "name"));
    }
}

static CtlExit gather(const CtlOptions *options, Metrics *metrics)
{
    CLEANUP_JSON json_object *status = NULL;
    CLEANUP_JSON json_object *workloads = NULL;
    CtlExit code = client_query(options, "GetStatus", NULL, &status);

    if (code == CTL_EXIT_OK)
        code = client_query(options, "ListWorkloads", NULL, &workloads);
    if (code != CTL_EXIT_OK)
        return code;
    add_info(metrics, status);
    add_rows(metrics, status);
    add_counts(metrics, "actions", "Actions, by outcome.", json_object_object_get(status, "outcomes"),
               "outcome");
    add_counts(metrics, "refusals", "Refusals, by reason.", json_object_object_get(status, "refused"),
               "reason");
    begin_family(metrics, "node_free_bytes", METRIC_GAUGE, "Memory of a node that is free or reclaimable.");
    add_nodes(metrics, view_list(status, "free"), NULL);
    add_workloads(metrics, workloads);
    return metrics->failed ? ctl_fail_oom() : CTL_EXIT_OK;
}

/* Writing */

static void write_labels(FILE *out, json_object *labels)
{
    json_object_iter iter;
    char before = '{';

    json_object_object_foreachC(labels, iter)
    {
        (void)fprintf(out, "%c%s=\"", before, iter.key);
        for (const char *c = json_object_get_string(iter.val); *c; c++)
            if (*c == '\n')
                (void)fputs("\\n", out);
            else
                (void)fprintf(out, "%s%c", *c == '\\' || *c == '"' ? "\\" : "", *c);
        (void)fputc('"', out);
        before = ',';
    }
    if (before == ',')
        (void)fputc('}', out);
}

/* Prints whole numbers as such; all are exact up to 2^53. */
static void write_value(FILE *out, double value)
{
    (void)fprintf(out, floor(value) == value ? " %.0f\n" : " %.6f\n", value);
}

/* In lines that describe a counter, OpenMetrics leaves out _total. */
static void write_family(FILE *out, json_object *family, bool open_metrics)
{
    const char *name = view_string(family, "name"), *type = view_string(family, "type");
    json_object *samples = view_list(family, "samples");
    int len = (int)strlen(name) - (open_metrics && !strcmp(type, "counter") ? (int)strlen("_total") : 0);

    (void)fprintf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", len, name, view_string(family, "help"), len, name,
                  type);
    for (size_t i = 0; i < view_length(samples); i++) {
        json_object *sample = json_object_array_get_idx(samples, i);

        (void)fputs(name, out);
        write_labels(out, json_object_object_get(sample, "labels"));
        write_value(out, json_object_get_double(json_object_object_get(sample, "value")));
    }
}

static void write_all(FILE *out, json_object *families, bool open_metrics)
{
    for (size_t i = 0; i < view_length(families); i++)
        write_family(out, json_object_array_get_idx(families, i), open_metrics);
    if (open_metrics)
        (void)fputs("# EOF\n", out);
}

static void write_textfile(FILE *out, void *families)
{
    write_all(out, families, false);
}

CtlExit metrics_get(const CtlOptions *options, json_object **ret)
{
    CLEANUP_JSON json_object *families = json_object_new_array();
    Metrics metrics = {.families = families};
    CtlExit code;

    if (!families)
        return ctl_fail_oom();
    code = gather(options, &metrics);
    if (code == CTL_EXIT_OK)
        *ret = TAKE_PTR(families);
    return code;
}

CtlExit metrics_write(const CtlOptions *options, FILE *out)
{
    CLEANUP_JSON json_object *families = NULL;
    CtlExit code = metrics_get(options, &families);

    if (code == CTL_EXIT_OK)
        write_all(out, families, true);
    return code;
}

static CtlExit verb_metrics(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *families = NULL;
    CtlExit code;

    if (options->output && options->json != CTL_JSON_OFF)
        return ctl_fail(CTL_EXIT_USAGE,
                        "--output= and --json= are two forms of the same: expected one of them");
    code = metrics_get(options, &families);
    if (code != CTL_EXIT_OK)
        return code;
    if (options->output)
        return ctl_replace_file(options->output, write_textfile, families);
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, families);
    write_all(stdout, families, true);
    return CTL_EXIT_OK;
}

const CtlVerbRow ctl_verb_metrics = {
    .name = "metrics",
    .arguments = "",
    .accepts = CTL_ACCEPTS(OUTPUT),
    .help = "what the daemon counts, as OpenMetrics text",
    .run = verb_metrics,
    .pages = true,
};
