/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/report/report.h"

#include "base/human.h"
#include "base/time.h"
#include "ctl/client.h"
#include "ctl/view.h"

#include "numaplace/bus.h"

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

static void report_done(Report *report)
{
    for (size_t i = 0; i < report->n_workloads; i++)
        free(report->workloads[i].rows);
    free(report->workloads);
    (void)json_object_put(report->steps);
    (void)json_object_put(report->moves);
}

static json_object *step_at(const Report *report, size_t step)
{
    return json_object_array_get_idx(report->steps, step);
}

double report_end(const Report *report, size_t step)
{
    int64_t usec = view_number(step_at(report, step), "realtime_usec", 0);

    return ((double)usec - (double)report->begin_usec) / (double)USEC_PER_SEC;
}

static double span(const Report *report, size_t step)
{
    return (double)view_number(step_at(report, step), "span_usec", 0) / (double)USEC_PER_SEC;
}

double report_begin(const Report *report, size_t step)
{
    return MAX(report_end(report, step) - span(report, step), 0.0);
}

double report_run(const Report *report, const ReportWorkload *workload, size_t step, uint32_t node)
{
    json_object *runs = workload->rows[step] ? view_list(workload->rows[step], "runs") : NULL;

    for (size_t i = 0; i < view_length(runs); i++) {
        json_object *run = json_object_array_get_idx(runs, i);

        if (view_number(run, "node", -1) == (int64_t)node)
            return (double)view_number(run, "run_permille", 0) / 1000.0;
    }
    return 0.0;
}

/* Fetching */

/* Appends all entries of a method that hands them out page by page, but for those before `since_usec`. */
static CtlExit fetch(sd_bus *bus, const char *method, uint64_t since_usec, json_object *list)
{
    for (int64_t after = 0, last;; after = last) {
        CLEANUP_JSON json_object *page = NULL;
        CtlExit code = client_call(bus, method, &page, "tu", (uint64_t)after, NUMAPLACE_BUS_PAGE_MAX);

        if (code != CTL_EXIT_OK || view_length(page) == 0)
            return code;
        last = view_number(json_object_array_get_idx(page, view_length(page) - 1), "sequence", 0);
        if (last <= after)
            return ctl_fail(CTL_EXIT_FAILURE, "numaplaced's answer to %s does not advance", method);
        for (size_t i = 0; i < view_length(page); i++) {
            json_object *entry = json_object_array_get_idx(page, i);

            if ((uint64_t)view_number(entry, "realtime_usec", 0) >= since_usec &&
                json_append(list, json_object_get(entry)) < 0)
                return ctl_fail_oom();
        }
    }
}

static uint64_t realtime_usec(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static CtlExit ask(const CtlOptions *options, Report *report)
{
    uint64_t now = realtime_usec();
    uint64_t since = options->since_usec > 0 ? now - MIN(now, options->since_usec) : 0;
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit code;

    report->steps = json_object_new_array();
    report->moves = json_object_new_array();
    if (!report->steps || !report->moves)
        return ctl_fail_oom();
    code = client_connect(options, &bus);
    if (code == CTL_EXIT_OK)
        code = fetch(bus, "ListHistory", since, report->steps);
    if (code == CTL_EXIT_OK && options->html)
        code = fetch(bus, "ListMoves", since, report->moves);
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
    ReportWorkload *workloads;

    for (size_t i = 0; i < report->n_workloads; i++)
        if (strcmp(report->workloads[i].name, name) == 0)
            return &report->workloads[i];
    workloads = realloc(report->workloads, (report->n_workloads + 1) * sizeof(*workloads));
    if (!workloads)
        return NULL;
    report->workloads = workloads;
    workloads[report->n_workloads] =
        (ReportWorkload){.name = name, .rows = calloc(report->n_steps, sizeof(json_object *))};
    return workloads[report->n_workloads].rows ? &workloads[report->n_workloads++] : NULL;
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

/* Means over the whole time; what was not there did not run. */
static void sum_workload(const Report *report, ReportWorkload *workload)
{
    double run = 0.0, wait = 0.0, all = 0.0, local = 0.0, local_of = 0.0;

    for (size_t i = 0; i < report->n_steps; i++) {
        double weight = span(report, i) + 1e-6, ran;
        json_object *row = workload->rows[i];

        all += weight;
        if (!row)
            continue;
        ran = (double)view_number(row, "run_permille", 0) * weight;
        run += ran;
        wait += (double)view_number(row, "wait_permille", 0) * weight;
        for (size_t k = 0; k < report->n_nodes; k++)
            workload->nodes[k] += report_run(report, workload, i, report->nodes[k]) * weight;
        if (view_number(row, "local_permille", -1) < 0)
            continue;
        local += (double)view_number(row, "local_permille", 0) * (ran + weight);
        local_of += ran + weight;
    }
    workload->run = run / all / 1000.0;
    workload->waits = run + wait > 0.0 ? wait / (run + wait) : 0.0;
    workload->local = local_of > 0.0 ? local / local_of / 1000.0 : -1.0;
    for (size_t k = 0; k < report->n_nodes; k++)
        workload->nodes[k] /= all;
}

static int compare_workloads(const void *a, const void *b)
{
    const ReportWorkload *x = a, *y = b;

    return x->run != y->run ? (x->run < y->run) - (x->run > y->run) : strcmp(x->name, y->name);
}

static CtlExit sum_up(Report *report)
{
    report->n_steps = view_length(report->steps);
    for (size_t i = 0; i < report->n_steps; i++) {
        json_object *step = step_at(report, i);
        CtlExit code = index_step(report, i);

        if (code != CTL_EXIT_OK)
            return code;
        report->n_homes += (uint64_t)view_number(step, "homes", 0);
        report->n_lends += (uint64_t)view_number(step, "lends", 0);
        report->moved_bytes += (uint64_t)view_number(step, "memory_moved_bytes", 0);
        report->cpu_usec += (uint64_t)view_number(step, "cpu_usec", 0);
    }
    if (report->n_steps > 0) {
        json_object *first = step_at(report, 0), *last = step_at(report, report->n_steps - 1);

        report->begin_usec =
            (uint64_t)(view_number(first, "realtime_usec", 0) - view_number(first, "span_usec", 0));
        report->end_usec = (uint64_t)view_number(last, "realtime_usec", 0);
    }
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

static json_object *workload_json(const Report *report, const ReportWorkload *workload)
{
    json_object *object = json_object_new_object();
    CLEANUP(view_text_done) ViewText nodes = {0};

    for (size_t k = 0; k < report->n_nodes; k++)
        if (workload->run > 0.0 && workload->nodes[k] / workload->run >= 0.0005)
            view_text_add(&nodes, "%s%" PRIu32 ": %.1f %%", nodes.len > 0 ? ", " : "", report->nodes[k],
                          MIN(workload->nodes[k] / workload->run, 1.0) * 100.0);
    if (!object || nodes.failed || json_set_text(object, "workload", workload->name) < 0 ||
        json_set_number(object, "run_permille", permille(workload->run)) < 0 ||
        json_set_number(object, "waits_permille", permille(workload->waits)) < 0 ||
        (workload->local >= 0.0 &&
         json_set_number(object, "local_permille", permille(workload->local)) < 0) ||
        json_set_text(object, "nodes", nodes.text ? nodes.text : "") < 0) {
        (void)json_object_put(object);
        return NULL;
    }
    return object;
}

static json_object *workloads_json(const Report *report)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; list && i < report->n_workloads; i++)
        if (json_append(list, workload_json(report, &report->workloads[i])) < 0) {
            (void)json_object_put(list);
            return NULL;
        }
    return list;
}

static CtlExit print_json(const CtlOptions *options, const Report *report, json_object *workloads)
{
    CLEANUP_JSON json_object *object = json_object_new_object();

    if (!object || json_set_number(object, "begin_usec", report->begin_usec) < 0 ||
        json_set_number(object, "end_usec", report->end_usec) < 0 ||
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
    double seconds = (double)(report->end_usec - report->begin_usec) / (double)USEC_PER_SEC;

    view_line("Time", "%s to %s", format_time(report->begin_usec, begin, sizeof(begin)),
              format_time(report->end_usec, end, sizeof(end)));
    view_line("Done", "%" PRIu64 " %s set, %" PRIu64 " %s lent, %s moved", report->n_homes,
              view_noun((int64_t)report->n_homes, "home", "homes"), report->n_lends,
              view_noun((int64_t)report->n_lends, "CPU", "CPUs"),
              human_bytes(report->moved_bytes, bytes, sizeof(bytes)));
    view_line("Cost", "%.2f %% of a CPU", seconds > 0.0 ? (double)report->cpu_usec / 1e4 / seconds : 0.0);
    (void)putchar('\n');
    return view_print_table(options, workloads, columns, ARRAY_SIZE(columns));
}

CtlExit verb_report(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(report_done) Report report = {0};
    CLEANUP_JSON json_object *workloads = NULL;
    CtlExit code = ask(options, &report);

    if (code == CTL_EXIT_OK)
        code = sum_up(&report);
    if (code != CTL_EXIT_OK)
        return code;
    if (report.n_steps == 0)
        return ctl_fail(CTL_EXIT_FAILURE, "there is nothing to report of that time");
    workloads = workloads_json(&report);
    if (!workloads)
        return ctl_fail_oom();
    if (options->html)
        return ctl_replace_file(options->html, report_write_page, &report);
    return options->json != CTL_JSON_OFF ? print_json(options, &report, workloads)
                                         : print_text(options, &report, workloads);
}
