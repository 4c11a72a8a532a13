/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* workloads, show and tasks: all workloads, one of them, and its threads. */

#include "base/human.h"
#include "ctl/client.h"
#include "ctl/sentence.h"
#include "ctl/terminal/style.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include "numaplace/bus.h"

#include <inttypes.h>

static const ViewColumn workload_columns[] = {
    {"WORKLOAD", "name", VIEW_TEXT},
    {"MODE", "mode", VIEW_TEXT},
    {"PAUSED", "paused", VIEW_BOOL},
    {"NODES", "home_nodes", VIEW_HOME},
    {"CPUS", "home", VIEW_HOME},
    {"GROUPS", "groups", VIEW_NUMBER},
    {"PROCESSES", "processes", VIEW_NUMBER},
    {"THREADS", "tasks", VIEW_NUMBER},
    {"RUN", "run_permille", VIEW_CPUS},
    {"WAIT", "wait_permille", VIEW_CPUS},
    {"LENT", "leases", VIEW_NUMBER},
    {"LENDS", "lends", VIEW_NUMBER},
    {"RECALLS", "recalls", VIEW_NUMBER},
};

static const ViewColumn group_columns[] = {
    {"GROUP", "id", VIEW_NUMBER},
    {"KEY", "key", VIEW_LONG},
    {"NODES", "home_nodes", VIEW_HOME},
    {"CPUS", "home", VIEW_HOME},
    {"MEMORY", "memory", VIEW_MEMORY},
    {"ON ONE NODE", "memory_strength_permille", VIEW_SHARE},
    {"THREADS", "tasks", VIEW_NUMBER},
    {"RUN", "run_permille", VIEW_CPUS},
    {"WAIT", "wait_permille", VIEW_CPUS},
    {"DEMAND", "demand_permille", VIEW_CPUS},
    {"ROAMS", "roams", VIEW_BOOL},
    {"LENT", "leases", VIEW_NUMBER},
    {"AGE", "age_usec", VIEW_SPAN},
    {"HOME SINCE", "home_age_usec", VIEW_SPAN},
    {"BACK-OFF", "backoff_left_ticks", VIEW_NUMBER},
};

static const ViewColumn lease_columns[] = {
    {"CPU", "cpu", VIEW_NUMBER},    {"NODE", "node", VIEW_NUMBER},    {"CROSS-NODE", "cross_node", VIEW_BOOL},
    {"PID", "pid", VIEW_NUMBER},    {"TID", "tid", VIEW_NUMBER},      {"COMMAND", "comm", VIEW_LONG},
    {"AGE", "age_usec", VIEW_SPAN}, {"LEFT", "left_usec", VIEW_SPAN},
};

static const ViewColumn task_columns[] = {
    {"PID", "pid", VIEW_NUMBER},
    {"TID", "tid", VIEW_NUMBER},
    {"COMMAND", "comm", VIEW_LONG},
    {"CLASS", "class", VIEW_TEXT},
    {"ELIGIBILITY", "hands", VIEW_TEXT},
    {"RUN", "run_permille", VIEW_PERMILLE},
    {"WAIT", "wait_permille", VIEW_PERMILLE},
    {"CPU", "last_cpu", VIEW_NUMBER},
    {"NODE", "node", VIEW_NUMBER},
    {"MEMORY", "memory_node", VIEW_NUMBER},
    {"HOME", "home_node", VIEW_NUMBER},
    {"ALLOWED", "allowed", VIEW_SET},
    {"ORIGINAL", "original", VIEW_SET},
    {"LENT", "lent_cpu", VIEW_NUMBER},
};

static CtlExit verb_workloads(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *list = NULL;
    CtlExit code = client_query(options, "ListWorkloads", NULL, &list);

    if (code != CTL_EXIT_OK)
        return code;
    return view_print_list(options, list, workload_columns, ARRAY_SIZE(workload_columns));
}

const CtlVerbRow ctl_verb_workloads = {
    .name = "workloads",
    .arguments = "",
    .accepts = CTL_ACCEPTS(WATCH),
    .help = "workloads, their homes, loads and lent CPUs",
    .run = verb_workloads,
    .pages = true,
};

static void print_workload(const CtlOptions *options, json_object *workload)
{
    int64_t processes = view_number(workload, "processes", 0), tasks = view_number(workload, "tasks", 0);
    int64_t lends = view_number(workload, "lends", 0), recalls = view_number(workload, "recalls", 0);
    size_t lent = view_length(view_list(workload, "lent"));
    const char *home = view_string(workload, "home");

    view_say(options->colour ? STYLE_BOLD : NULL, "%s", view_string(workload, "name"));
    view_say(NULL, "%s%s\n", *view_string(workload, "description") ? " - " : "",
             view_string(workload, "description"));
    view_line("Policy", "%s", view_string(workload, "path"));
    view_line("Placement", "Mode=%s, Act=%s, GroupBy=%s, Steal=%s within %s%s", view_string(workload, "mode"),
              view_string(workload, "act"), view_string(workload, "group_by"),
              view_bool(workload, "steal") ? "yes" : "no", view_string(workload, "scope"),
              view_bool(workload, "paused") ? "; paused" : "");
    if (*home)
        view_line("Home", "CPUs %s on nodes %s", home, view_string(workload, "home_nodes"));
    else
        view_line("Home", "none: not confined");
    view_would_lines(workload);
    view_memory_line(workload);
    view_use_lines(workload);
    view_line("Load", "runs %.2f CPUs, waits for %.2f; %" PRId64 " %s, %" PRId64 " %s",
              (double)view_number(workload, "run_permille", 0) / 1000,
              (double)view_number(workload, "wait_permille", 0) / 1000, processes,
              human_noun(processes, "process", "processes"), tasks, human_noun(tasks, "thread", "threads"));
    view_line("Lent", "%zu %s now; %" PRId64 " %s, %" PRId64 " %s since start", lent,
              human_noun(lent, "CPU", "CPUs"), lends, human_noun(lends, "lend", "lends"), recalls,
              human_noun(recalls, "recall", "recalls"));
}

static CtlExit print_section(const CtlOptions *options, const char *title, json_object *list,
                             const ViewColumn *columns, size_t n_columns)
{
    if (view_length(list) == 0)
        return CTL_EXIT_OK;
    (void)printf("\n%s:\n", title);
    return view_print_table(options, list, columns, n_columns);
}

static CtlExit verb_show(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *workload = NULL;
    CtlExit code = client_query(options, "GetWorkload", argv[0], &workload);
    json_object *groups;

    if (code != CTL_EXIT_OK)
        return code;
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, workload);

    print_workload(options, workload);
    code = view_counters(workload, "Blocks", "use_blocks");
    if (code == CTL_EXIT_OK)
        code = view_counters(workload, "Scan skips", "scan_skipped");
    if (code != CTL_EXIT_OK)
        return code;
    groups = view_list(workload, "groups");
    code = print_section(options, "Groups", groups, group_columns, ARRAY_SIZE(group_columns));
    if (options->legend)
        view_rest(view_length(groups), view_number(workload, "n_groups", 0), "");
    if (code == CTL_EXIT_OK)
        code = print_section(options, "Lent CPUs", view_list(workload, "lent"), lease_columns,
                             ARRAY_SIZE(lease_columns));
    if (code == CTL_EXIT_OK)
        code = sentence_print("Not done", view_list(workload, "refusals"), sentence_refusal);
    return code;
}

const CtlVerbRow ctl_verb_show = {
    .name = "show",
    .arguments = "WORKLOAD",
    .min = 1,
    .max = 1,
    .accepts = CTL_ACCEPTS(WATCH),
    .help = "one workload: groups, lent CPUs, refusals",
    .run = verb_show,
    .pages = true,
};

/* Appends the entries of `page` to `list`. */
static int append_page(json_object *list, json_object *page)
{
    for (size_t i = 0; i < view_length(page); i++)
        if (json_append(list, json_object_get(json_object_array_get_idx(page, i))) < 0)
            return -ENOMEM;
    return 0;
}

/* The daemon answers in pages, so that ten thousand threads do not make one giant message. */
static CtlExit list_tasks(const CtlOptions *options, const char *name, json_object *list)
{
    CLEANUP_BUS sd_bus *bus = NULL;
    int32_t pid = 0, tid = 0;
    CtlExit code = client_connect(options, &bus);

    while (code == CTL_EXIT_OK) {
        CLEANUP_JSON json_object *page = NULL;
        json_object *last;

        code = client_call(bus, "ListTasks", &page, "siiu", name, pid, tid, NUMAPLACE_BUS_PAGE_MAX);
        if (code != CTL_EXIT_OK || view_length(page) == 0)
            break;
        if (append_page(list, page) < 0)
            return ctl_fail_oom();
        last = json_object_array_get_idx(page, view_length(page) - 1);
        if (view_number(last, "pid", 0) < pid ||
            (view_number(last, "pid", 0) == pid && view_number(last, "tid", 0) <= tid))
            return ctl_fail(CTL_EXIT_FAILURE, "numaplaced's list of threads repeats earlier entries");
        pid = (int32_t)view_number(last, "pid", 0);
        tid = (int32_t)view_number(last, "tid", 0);
    }
    return code;
}

static CtlExit verb_tasks(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *list = json_object_new_array();
    CtlExit code;

    if (!list)
        return ctl_fail_oom();
    code = list_tasks(options, argv[0], list);
    if (code != CTL_EXIT_OK)
        return code;
    return view_print_list(options, list, task_columns, ARRAY_SIZE(task_columns));
}

const CtlVerbRow ctl_verb_tasks = {
    .name = "tasks",
    .arguments = "WORKLOAD",
    .min = 1,
    .max = 1,
    .help = "its threads, their masks and loads",
    .run = verb_tasks,
    .pages = true,
};
