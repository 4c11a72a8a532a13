/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* explain: everything known about why one process or workload is placed as it is, in sentences with the numbers that
 * decided. The daemon decides what is known; this file orders it from the subject to its history. */

#include "base/human.h"
#include "ctl/client.h"
#include "ctl/sentence.h"
#include "ctl/terminal/style.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <inttypes.h>
#include <string.h>

static void print_head(const CtlOptions *options, json_object *explanation)
{
    bool process = !strcmp(view_string(explanation, "kind"), "process");
    bool managed = view_bool(explanation, "managed");

    if (process)
        view_say(options->colour ? STYLE_BOLD : NULL, "%s[%" PRId64 "]", view_string(explanation, "comm"),
                 view_number(explanation, "pid", 0));
    else
        view_say(options->colour ? STYLE_BOLD : NULL, "%s", view_string(explanation, "name"));
    view_say(NULL, ": ");
    view_say(options->colour ? (managed ? STYLE_GOOD : STYLE_WARN) : NULL, "%s\n",
             view_string(explanation, "verdict"));
    view_line("", "%s", view_string(explanation, "text"));
}

/* A line for a string member, unless it is absent or empty. */
static void print_string(json_object *object, const char *title, const char *key)
{
    const char *value = view_string(object, key);

    if (*value)
        view_line(title, "%s", value);
}

static void print_policy(json_object *explanation)
{
    int64_t section = view_number(explanation, "policy_section", 0);

    if (!*view_string(explanation, "policy"))
        return;
    if (view_bool(explanation, "assigned"))
        view_line("Policy", "%s, assigned by name (%s)", view_string(explanation, "policy"),
                  view_string(explanation, "policy_path"));
    else if (section > 0)
        view_line("Policy", "%s, by [Match] section %" PRId64 ", %s:%" PRId64,
                  view_string(explanation, "policy"), section, view_string(explanation, "policy_file"),
                  view_number(explanation, "policy_line", 0));
    else
        view_line("Policy", "%s (%s)", view_string(explanation, "policy"),
                  view_string(explanation, "policy_path"));
}

/* What confines the group besides its masks, or why nothing does. */
static void print_means(json_object *explanation)
{
    const char *means = view_string(explanation, "means"), *error = view_string(explanation, "means_error");

    if (*means && *view_string(explanation, "home"))
        view_line("Means", "%s: %s%s%s%s", means, view_string(explanation, "means_text"), *error ? " " : "",
                  error, view_bool(explanation, "means_memory") ? " Its memory is confined, too." : "");
}

static void print_place(json_object *explanation)
{
    const char *key = view_string(explanation, "group_key");

    if (view_number(explanation, "group", 0) > 0)
        view_line("Group", "%" PRId64 "%s%s", view_number(explanation, "group", 0), *key ? ", " : "", key);
    if (*view_string(explanation, "home"))
        view_line("Home", "CPUs %s on nodes %s; memory %s", view_string(explanation, "home"),
                  view_string(explanation, "home_nodes"),
                  view_bool(explanation, "memory_follows") ? "follows" : "stays where it is");
    else if (view_bool(explanation, "managed"))
        view_line("Home", "none: the kernel may use every CPU of its cpuset");
    view_would_lines(explanation);
    view_gain_line(explanation);
    view_memory_line(explanation);
    view_use_lines(explanation);
    print_means(explanation);
    if (*view_string(explanation, "stripe"))
        view_line("Interleaved", "new memory, since its start, over nodes %s (P17, interleaving)",
                  view_string(explanation, "stripe"));
    print_string(explanation, "Cpuset", "cpuset");
    print_string(explanation, "Evidence", "evidence");
}

static void print_process(json_object *explanation)
{
    print_policy(explanation);
    print_string(explanation, "Workload", "workload");
    print_string(explanation, "Unit", "unit");
    print_string(explanation, "Cgroup", "cgroup");
    print_place(explanation);
}

static void print_workload(json_object *explanation)
{
    int64_t processes = view_number(explanation, "processes", 0),
            tasks = view_number(explanation, "tasks", 0);

    print_string(explanation, "Description", "description");
    print_string(explanation, "Policy", "path");
    print_place(explanation);
    view_line("Members", "%" PRId64 " %s, %" PRId64 " %s; runs %.2f CPUs, waits for %.2f", processes,
              human_noun(processes, "process", "processes"), tasks, human_noun(tasks, "thread", "threads"),
              (double)view_number(explanation, "run_permille", 0) / 1000,
              (double)view_number(explanation, "wait_permille", 0) / 1000);
}

static CtlExit print_tasks(json_object *explanation)
{
    json_object *tasks = view_list(explanation, "tasks");
    CtlExit code = sentence_print("Threads", tasks, sentence_task);

    view_rest(view_length(tasks), view_number(explanation, "n_tasks", 0), "; numaplacectl tasks lists them");
    return code;
}

static CtlExit verb_explain(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *explanation = NULL;
    CtlExit code = client_query(options, "Explain", argv[0], &explanation);

    if (code != CTL_EXIT_OK)
        return code;
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, explanation);

    print_head(options, explanation);
    if (!strcmp(view_string(explanation, "kind"), "process"))
        print_process(explanation);
    else
        print_workload(explanation);
    code = print_tasks(explanation);
    if (code == CTL_EXIT_OK)
        code = sentence_print("Lent CPUs", view_list(explanation, "lent"), sentence_lease);
    if (code == CTL_EXIT_OK)
        code = sentence_print("Would be done", view_list(explanation, "would"), sentence_move);
    if (code == CTL_EXIT_OK)
        code = sentence_print("Done", view_list(explanation, "actions"), sentence_move);
    if (code == CTL_EXIT_OK)
        code = sentence_print("Not done", view_list(explanation, "refusals"), sentence_refusal);
    return code;
}

const CtlVerbRow ctl_verb_explain = {
    .name = "explain",
    .arguments = "PID|WORKLOAD",
    .min = 1,
    .max = 1,
    .help = "why it is placed as it is",
    .run = verb_explain,
    .pages = true,
};
