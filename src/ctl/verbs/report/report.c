/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/report/report.h"

#include "base/human.h"
#include "base/time.h"
#include "ctl/client.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static const ViewColumn columns[] = {
    {"WORKLOAD", "workload", VIEW_TEXT},
    {"RUN", "run_permille", VIEW_CPUS},
    {"WAITS", "waits_permille", VIEW_PERMILLE},
    {"LOCAL", "local_permille", VIEW_PERMILLE},
    {"NODES", "nodes", VIEW_TEXT},
};

void report_done(Report *report)
{
    for (size_t i = 0; i < report->n_workloads; i++)
        free(report->workloads[i].rows);
    free(report->workloads);
    free(report->times);
    (void)json_object_put(report->steps);
    (void)json_object_put(report->moves);
}

static json_object *step_at(const Report *report, size_t step)
{
    return json_object_array_get_idx(report->steps, step);
}

double report_run(const Report *report, const ReportWorkload *workload, size_t step, uint32_t node)
{
    json_object *runs = view_list(workload->rows[step], "runs");

    for (size_t i = 0; i < view_length(runs); i++) {
        json_object *run = json_object_array_get_idx(runs, i);

        if (view_number(run, "node", -1) == (int64_t)node)
            return (double)view_number(run, "run_permille", 0) / 1000.0;
    }
    return 0.0;
}

uint64_t report_realtime_usec(const Report *report, double seconds)
{
    uint64_t end, before;
    size_t i = 0;

    if (report->n_steps == 0)
        return 0;
    while (i + 1 < report->n_steps && report->times[i + 1] < seconds)
        i++;
    end = (uint64_t)view_number(step_at(report, i), "realtime_usec", 0);
    before = (uint64_t)(MAX(report->times[i + 1] - seconds, 0.0) * (double)USEC_PER_SEC);
    return end - MIN(end, before);
}

/* Fetching */

/* Drops the steps that ended before the last `usec`, but not the one in progress then. 0: drops none. */
static void keep_last(json_object *steps, uint64_t usec)
{
    uint64_t sum = 0;
    size_t n = view_length(steps);

    while (usec > 0 && n > 0 && sum < usec)
        sum += (uint64_t)view_number(json_object_array_get_idx(steps, --n), "span_usec", 0) + 1;
    if (usec > 0)
        (void)json_object_array_del_idx(steps, 0, n);
}

static CtlExit ask(const CtlOptions *options, Report *report)
{
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit code;

    report->steps = json_object_new_array();
    report->moves = json_object_new_array();
    if (!report->steps || !report->moves)
        return ctl_fail_oom();
    code = client_connect(options, &bus);
    if (code == CTL_EXIT_OK)
        code = client_list(bus, "ListHistory", 0, report->steps);
    if (code == CTL_EXIT_OK && options->html)
        code = client_list(bus, "ListMoves", 0, report->moves);
    keep_last(report->steps, options->since_usec);
    return code;
}

/* Summing up */

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void note_node(Report *report, uint32_t node)
{
    for (size_t i = 0; i < report->n_nodes; i++)
        if (report->nodes[i] == node)
            return;
    if (report->n_nodes < REPORT_NODES_MAX)
        report->nodes[report->n_nodes++] = node;
}

static ReportWorkload *find(Report *report, const char *name)
{
    ReportWorkload *workload;

    for (size_t i = 0; i < report->n_workloads; i++)
        if (strcmp(report->workloads[i].name, name) == 0)
            return &report->workloads[i];
    if (!GROW(report->workloads, report->workloads_capacity, report->n_workloads + 1))
        return NULL;
    workload = &report->workloads[report->n_workloads];
    *workload = (ReportWorkload){.name = name, .rows = calloc(report->n_steps, sizeof(json_object *))};
    report->n_workloads += workload->rows != NULL;
    return workload->rows ? workload : NULL;
}

static CtlExit index_step(Report *report, size_t step)
{
    json_object *rows = view_list(step_at(report, step), "workloads");

    for (size_t i = 0; i < view_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i), *runs = view_list(row, "runs");
        ReportWorkload *workload = find(report, view_string(row, "workload"));

        if (!workload)
            return ctl_fail_oom();
        workload->rows[step] = row;
        for (size_t k = 0; k < view_length(runs); k++)
            note_node(report, (uint32_t)view_number(json_object_array_get_idx(runs, k), "node", 0));
    }
    return CTL_EXIT_OK;
}

/* Means over the whole period; an absent workload counts as not running. */
static void sum_workload(const Report *report, ReportWorkload *workload)
{
    double run = 0.0, wait = 0.0, all = 0.0, local = 0.0, local_of = 0.0, on_nodes = 0.0;
    double most_run = 0.0, most_wanted = 0.0;

    for (size_t i = 0; i < report->n_steps; i++) {
        double weight = report->times[i + 1] - report->times[i] + 1e-6, ran, waited;
        json_object *row = workload->rows[i];

        all += weight;
        if (!row)
            continue;
        ran = (double)view_number(row, "run_permille", 0);
        waited = (double)view_number(row, "wait_permille", 0);
        most_run = MAX(most_run, ran);
        most_wanted = MAX(most_wanted, ran + waited);
        ran *= weight;
        run += ran;
        wait += waited * weight;
        for (size_t k = 0; k < report->n_nodes; k++)
            workload->nodes[k] += report_run(report, workload, i, report->nodes[k]) * weight;
        if (view_number(row, "local_permille", -1) < 0)
            continue;
        local += (double)view_number(row, "local_permille", 0) * (ran + weight);
        local_of += ran + weight;
    }
    workload->run = run / all / 1000.0;
    workload->waits = most_wanted >= REPORT_WANTED_MIN_PERMILLE ? wait / (run + wait) : -1.0;
    workload->local = local_of > 0.0 ? local / local_of / 1000.0 : -1.0;
    for (size_t k = 0; k < report->n_nodes; k++) {
        on_nodes += workload->nodes[k];
        workload->nodes[k] /= all;
    }
    workload->on_nodes = most_run >= REPORT_WANTED_MIN_PERMILLE ? on_nodes / all : 0.0;
}

static int compare_workloads(const void *a, const void *b)
{
    const ReportWorkload *x = a, *y = b;

    return x->run != y->run ? (x->run < y->run) - (x->run > y->run) : strcmp(x->name, y->name);
}

CtlExit report_sum_up(Report *report)
{
    report->n_steps = view_length(report->steps);
    report->times = calloc(report->n_steps + 1, sizeof(*report->times));
    if (!report->times)
        return ctl_fail_oom();
    for (size_t i = 0; i < report->n_steps; i++) {
        json_object *step = step_at(report, i);
        CtlExit code = index_step(report, i);

        if (code != CTL_EXIT_OK)
            return code;
        report->seconds += (double)view_number(step, "span_usec", 0) / (double)USEC_PER_SEC;
        report->times[i + 1] = report->seconds;
        report->n_homes += (uint64_t)view_number(step, "homes", 0);
        report->n_lends += (uint64_t)view_number(step, "lends", 0);
        report->moved_bytes += (uint64_t)view_number(step, "memory_moved_bytes", 0);
        report->cpu_usec += (uint64_t)view_number(step, "cpu_usec", 0);
    }
    if (report->n_steps > 0)
        report->end_usec = (uint64_t)view_number(step_at(report, report->n_steps - 1), "realtime_usec", 0);
    /* The earlier of two, if the clock was set back meanwhile. */
    report->begin_usec =
        MIN(report_realtime_usec(report, 0.0),
            report->end_usec - MIN(report->end_usec, (uint64_t)(report->seconds * (double)USEC_PER_SEC)));
    qsort(report->nodes, report->n_nodes, sizeof(*report->nodes), compare_nodes);
    for (size_t i = 0; i < report->n_workloads; i++)
        sum_workload(report, &report->workloads[i]);
    if (report->n_workloads > 1)
        qsort(report->workloads, report->n_workloads, sizeof(*report->workloads), compare_workloads);
    return CTL_EXIT_OK;
}

/* Printing */

static uint64_t permille(double share)
{
    return (uint64_t)(share * 1000.0 + 0.5);
}

static int add_workload(json_object *list, const Report *report, const ReportWorkload *workload)
{
    json_object *object = json_add_object(list, NULL);
    CLEANUP(view_text_done) ViewText nodes = {0};

    for (size_t k = 0; k < report->n_nodes; k++)
        if (workload->on_nodes > 0.0 && workload->nodes[k] / workload->on_nodes >= 0.0005)
            view_text_add(&nodes, "%s%" PRIu32 ": %.1f %%", nodes.len > 0 ? ", " : "", report->nodes[k],
                          workload->nodes[k] / workload->on_nodes * 100.0);
    if (nodes.failed || json_set_text(object, "workload", workload->name) < 0 ||
        json_set_number(object, "run_permille", permille(workload->run)) < 0 ||
        (workload->waits >= 0.0 &&
         json_set_number(object, "waits_permille", permille(workload->waits)) < 0) ||
        (workload->local >= 0.0 &&
         json_set_number(object, "local_permille", permille(workload->local)) < 0) ||
        json_set_text(object, "nodes", nodes.text ? nodes.text : "") < 0)
        return -ENOMEM;
    return 0;
}

static int add_workloads(json_object *list, const Report *report)
{
    for (size_t i = 0; i < report->n_workloads; i++)
        if (add_workload(list, report, &report->workloads[i]) < 0)
            return -ENOMEM;
    return list ? 0 : -ENOMEM;
}

static CtlExit print_json(const CtlOptions *options, const Report *report, json_object *workloads)
{
    CLEANUP_JSON json_object *object = json_object_new_object();

    if (json_set_number(object, "begin_realtime_usec", report->begin_usec) < 0 ||
        json_set_number(object, "end_realtime_usec", report->end_usec) < 0 ||
        json_set_number(object, "homes", report->n_homes) < 0 ||
        json_set_number(object, "lends", report->n_lends) < 0 ||
        json_set_number(object, "memory_moved_bytes", report->moved_bytes) < 0 ||
        json_set_number(object, "cpu_usec", report->cpu_usec) < 0 ||
        json_set(object, "workloads", json_object_get(workloads)) < 0 ||
        json_set(object, "steps", json_object_get(report->steps)) < 0)
        return ctl_fail_oom();
    return ctl_print_json(options, object);
}

static const char *format_time(uint64_t usec, char *buf, size_t size)
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    struct tm local;

    if (!localtime_r(&seconds, &local) || strftime(buf, size, "%F %T", &local) == 0)
        (void)snprintf(buf, size, "?");
    return buf;
}

static CtlExit print_text(const CtlOptions *options, const Report *report, json_object *workloads)
{
    char begin[32], end[32], bytes[32];

    view_line("Time", "%s to %s", format_time(report->begin_usec, begin, sizeof(begin)),
              format_time(report->end_usec, end, sizeof(end)));
    view_line("Done", "%" PRIu64 " %s set, %" PRIu64 " %s lent, %s moved", report->n_homes,
              human_noun(report->n_homes, "home", "homes"), report->n_lends,
              human_noun(report->n_lends, "CPU", "CPUs"),
              human_bytes(report->moved_bytes, bytes, sizeof(bytes)));
    view_line("Cost", "%.2f %% of a CPU", (double)report->cpu_usec / 1e4 / MAX(report->seconds, 1.0));
    (void)putchar('\n');
    return view_print_table(options, workloads, columns, ARRAY_SIZE(columns));
}

static CtlExit verb_report(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(report_done) Report report = {0};
    CLEANUP_JSON json_object *workloads = json_object_new_array();
    CtlExit code;

    if (options->html && options->json != CTL_JSON_OFF)
        return ctl_fail(CTL_EXIT_USAGE, "--html= and --json= exclude each other");
    code = ask(options, &report);
    if (code == CTL_EXIT_OK)
        code = report_sum_up(&report);
    if (code != CTL_EXIT_OK)
        return code;
    if (report.n_steps == 0)
        return ctl_fail(CTL_EXIT_FAILURE, "no history for that period");
    if (add_workloads(workloads, &report) < 0)
        return ctl_fail_oom();
    if (options->html)
        return ctl_replace_file(options->html, report_write_page, &report);
    return options->json != CTL_JSON_OFF ? print_json(options, &report, workloads)
                                         : print_text(options, &report, workloads);
}

const CtlVerbRow ctl_verb_report = {
    .name = "report",
    .arguments = "",
    .accepts = CTL_ACCEPTS(SINCE) | CTL_ACCEPTS(HTML),
    .help = "the last day: where workloads ran, and what was done",
    .run = verb_report,
    .pages = true,
};
