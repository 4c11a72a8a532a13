/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* diagnose: whether NUMA costs a process anything, and what would help, without a policy and without a
 * daemon. Findings become JSON first; the sentences, the table and the policy are printed from that. */

#include "base/human.h"
#include "base/parse.h"
#include "base/root.h"
#include "ctl/client.h"
#include "ctl/diagnose/pins.h"
#include "ctl/diagnose/survey.h"
#include "ctl/terminal/style.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"
#include "plan/scan/stall.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define SECONDS_DEFAULT 5U
/* An assumed order of magnitude: half a GiB per second. A rate limit makes it slower, huge pages faster. */
#define MOVE_BYTES_PER_USEC 512.0
/* A smaller part of its memory is not worth mentioning: stacks, and memory used only once. */
#define SAID_PART 20
/* Processes in a list. */
#define LISTED_MAX 20U

/* Null when not known. */
static int set_share(json_object *object, const char *key, uint32_t permille)
{
    return permille == DIAGNOSE_UNKNOWN ? json_set_null(object, key) : json_set_number(object, key, permille);
}

static int set_places(json_object *object, const Topology *topology, const SurveyFinding *finding)
{
    json_object *runs = json_add_array(object, "runs"), *memory = json_add_array(object, "memory");

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        json_object *run = json_add_object(runs, NULL), *bytes = json_add_object(memory, NULL);

        if (json_set_number(run, "node", topology->nodes[i].os_index) < 0 ||
            json_set_number(run, "run_permille", finding->run_node[i]) < 0 ||
            json_set_number(bytes, "node", topology->nodes[i].os_index) < 0 ||
            json_set_number(bytes, "bytes", finding->node_bytes ? finding->node_bytes[i] : 0) < 0)
            return -ENOMEM;
    }
    return 0;
}

static char *cpuset_text(const SurveyFinding *finding)
{
    CLEANUP_CLOSE int root_fd = root_open("/");
    CLEANUP_FREE char *cgroup = pins_cpuset_origin(root_fd, finding->cgroup ? finding->cgroup : "/");
    bool whole = cgroup && !strcmp(cgroup, "/");

    return cgroup ? format_text("the cpuset of %s%s", whole ? "the host or container" : "control group ",
                                whole ? "" : cgroup)
                  : NULL;
}

/* What keeps it where it is, in words; "" if nothing does. */
static int set_pin(json_object *object, const SurveyFinding *finding)
{
    const Diagnosis *d = &finding->diagnosis;
    CLEANUP_FREE char *comm = NULL, *text = NULL;
    pid_t origin = 0;

    if (finding->facts.placed)
        text = strdup("numaplaced");
    else if (finding->facts.pinned && !d->by_cpuset) {
        origin = pins_origin(finding->pid, finding->pinned_tid, &comm);
        if (origin < 0)
            text = strdup("a CPU mask");
        else if (origin == 0)
            text = strdup("CPU masks that it has set for its threads");
        else if (origin != finding->pid)
            text = format_text("a CPU mask inherited from %s[%d]", comm, (int)origin);
        else
            text = strdup("a CPU mask that it, taskset, numactl or CPUAffinity= of its unit has set");
    } else if (finding->facts.confined)
        text = cpuset_text(finding);
    else
        text = strdup("");
    return text ? json_set_foreign(object, "pinned_by", text) : -ENOMEM;
}

/* Whether a unit or program name has no character with a meaning in a policy. */
static bool is_plain(const char *s)
{
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("-_.@:/+", *s))
            return false;
    return true;
}

/* [Match] lines that identify it: its service, or its program and cgroup. NULL when out of memory. *ret_sure:
 * no other process matches, as far as can be seen. */
static char *match_lines(const SurveyFinding *finding, bool *ret_sure)
{
    bool service = finding->unit && is_plain(finding->unit) && strstr(finding->unit, ".service"),
         has_cgroup = finding->cgroup && is_plain(finding->cgroup) && strcmp(finding->cgroup, "/") != 0,
         has_comm = finding->comm && *finding->comm && is_plain(finding->comm);
    char path[32], exe[4096];
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)finding->pid);
    n = readlink(path, exe, sizeof(exe) - 1);
    exe[MAX(n, 0)] = '\0';
    *ret_sure = service || has_cgroup;
    if (service)
        return format_text("Unit=%s\n", finding->unit);
    if ((n <= 0 || !is_plain(exe)) && !has_comm)
        return strdup("# Identify the process by Unit=, Exe=, Comm= or User=: this matches nothing.\n");
    return format_text("%s%s%s%s%s%s%s%s%s", n > 0 && is_plain(exe) ? "Exe=" : "",
                       n > 0 && is_plain(exe) ? exe : "", n > 0 && is_plain(exe) ? "\n" : "",
                       has_comm ? "Comm=" : "", has_comm ? finding->comm : "", has_comm ? "\n" : "",
                       has_cgroup ? "Cgroup=" : "", has_cgroup ? finding->cgroup : "",
                       has_cgroup ? "\n" : "");
}

/* A policy that would help, or if nothing is wrong, one that keeps observing. It does not override pins if
 * others that run the same program would match. */
static char *policy_text(const SurveyFinding *finding)
{
    DiagnoseVerdict verdict = finding->diagnosis.verdict;
    bool alarm = diagnose_is_alarm(verdict), sure = false,
         pin =
             (verdict == DIAGNOSE_PIN_WAITS || verdict == DIAGNOSE_PIN_FAR) && !finding->diagnosis.by_cpuset;
    CLEANUP_FREE char *match = match_lines(finding, &sure);

    if (!match)
        return NULL;
    return format_text("# By numaplacectl diagnose: %s\n\n[Match]\n%s\n%s%s%s%s[Placement]\nMode=%s\n",
                       diagnose_verdict_text(verdict), match, pin || !alarm ? "[Workload]\n" : "",
                       pin ? (sure ? "ForeignAffinity=override\n"
                                   : "# It is pinned; this would override it:\n"
                                     "# ForeignAffinity=override\n")
                           : "",
                       !alarm ? "Act=observe\n" : "", pin || !alarm ? "\n" : "",
                       verdict == DIAGNOSE_BANDWIDTH ? "interleave" : "auto");
}

static int set_huge(json_object *object, const SurveyFinding *finding)
{
    char path[64], line[256];
    uint64_t bytes = 0, kib;
    FILE *in;

    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)finding->pid);
    in = finding->node_bytes ? fopen(path, "re") : NULL; /* what could be read once can be read again */
    while (in && fgets(line, sizeof(line), in))
        if (sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)
            bytes = kib << 10;
    if (in)
        (void)fclose(in);
    return json_set_number(object, "huge_bytes", bytes);
}

/* Null if its memory was not read: then this was not either. */
static int set_kernel(json_object *object, const Survey *survey, const SurveyFinding *finding)
{
    if (!finding->node_bytes)
        return json_set_null(object, "kernel_balances");
    return json_set_bool(object, "kernel_balances", survey->kernel_balances);
}

/* For the whole machine. */
static int set_bandwidth(json_object *object, const Survey *survey)
{
    json_object *list = json_add_array(object, "bandwidth");

    for (size_t i = 0; i < survey->bandwidth.n; i++) {
        const BandwidthDomain *domain = &survey->bandwidth.domains[i];
        json_object *entry = json_add_object(list, NULL);

        if (json_set_nodes(entry, "nodes", survey->topology, survey->topology->llcs[domain->llc].nodes) < 0 ||
            json_set_number(entry, "total_bytes_per_sec", domain->total_bytes) < 0 ||
            (bandwidth_local_known(domain) &&
             json_set_number(entry, "local_bytes_per_sec", domain->local_bytes) < 0))
            return -ENOMEM;
    }
    return list ? 0 : -ENOMEM;
}

static int set_counts(json_object *object, const ProgressCounts *counts)
{
    int stall = counts->misses_known ? stall_estimate(&(StallCounts){.instructions = counts->instructions,
                                                                     .cycles = counts->cycles,
                                                                     .misses = counts->misses})
                                     : -ENODATA;

    if (json_set_number(object, "ipc_permille",
                        (uint64_t)((double)counts->instructions * 1000.0 / (double)counts->cycles)) < 0 ||
        json_set_number(object, "ipc_threads", counts->n_threads) < 0)
        return -ENOMEM;
    return stall < 0 ? 0 : json_set_number(object, "stall_permille", (uint64_t)stall);
}

/* Only if one process was asked for; many would need many counters. */
static int set_progress(json_object *object, const Survey *survey)
{
    const ProgressCounts *counts = &survey->progress;

    if (counts->cycles > 0)
        return set_counts(object, counts);
    if (survey->progress_error != 0)
        return json_set_text(object, "ipc_why", progress_explain(survey->progress_error));
    return counts->n_threads > 0 ? json_set_text(object, "ipc_why", "no counter was free") : 0;
}

static int add_finding(json_object *list, const Survey *survey, const SurveyFinding *finding)
{
    json_object *object = json_add_object(list, NULL);
    const Diagnosis *d = &finding->diagnosis;
    CLEANUP_FREE char *policy = policy_text(finding);

    if (!policy || json_set_number(object, "pid", (uint64_t)finding->pid) < 0 ||
        json_set_foreign(object, "comm", finding->comm) < 0 ||
        json_set_foreign(object, "unit", finding->unit) < 0 ||
        json_set_foreign(object, "cgroup", finding->cgroup) < 0 ||
        json_set_number(object, "threads", finding->n_threads) < 0 ||
        json_set_number(object, "usec", survey->usec) < 0 ||
        json_set_text(object, "verdict", diagnose_verdict_name(d->verdict)) < 0 ||
        json_set_text(object, "text", diagnose_verdict_text(d->verdict)) < 0 ||
        json_set_bool(object, "alarm", diagnose_is_alarm(d->verdict)) < 0 ||
        json_set_number(object, "run_permille", finding->facts.run) < 0 ||
        json_set_number(object, "wait_permille", finding->facts.wait) < 0 ||
        json_set_number(object, "waits_permille", d->waits) < 0 ||
        json_set_number(object, "idle_permille", survey->idle_permille) < 0 ||
        json_set_number(object, "bytes", finding->bytes) < 0 ||
        set_places(object, survey->topology, finding) < 0 ||
        json_set_bool(object, "memory_known", finding->node_bytes != NULL) < 0 ||
        set_share(object, "local_permille", d->local) < 0 ||
        set_share(object, "local_least_permille", d->local_least) < 0 ||
        set_share(object, "local_most_permille", d->local_most) < 0 ||
        json_set_set(object, "cpus_allowed", finding->allowed) < 0 ||
        json_set_bool(object, "pinned", finding->facts.pinned) < 0 || set_pin(object, finding) < 0 ||
        json_set_number(object, "bound_bytes", finding->facts.bound_bytes) < 0 ||
        json_set_nodes(object, "would_home_nodes", survey->topology, finding->home_nodes) < 0 ||
        json_set_text(object, "refusal", finding->refusal) < 0 ||
        json_set_number(object, "move_bytes", d->move_bytes) < 0 ||
        json_set_number(object, "move_usec", (uint64_t)((double)d->move_bytes / MOVE_BYTES_PER_USEC)) < 0 ||
        json_set_number(object, "gain_most_permille", d->gain_most) < 0 || set_huge(object, finding) < 0 ||
        set_kernel(object, survey, finding) < 0 || set_bandwidth(object, survey) < 0 ||
        set_progress(object, survey) < 0 || json_set_text(object, "policy", policy) < 0)
        return -ENOMEM;
    return 0;
}

/* One process */

static double percent(json_object *object, const char *key)
{
    return (double)view_number(object, key, 0) / 10.0;
}

static void print_runs(json_object *object)
{
    CLEANUP(view_text_done) ViewText nodes = {0};
    json_object *runs = view_list(object, "runs");

    for (size_t i = 0; i < view_length(runs); i++) {
        json_object *run = json_object_array_get_idx(runs, i);

        if (view_number(run, "run_permille", 0) > 0)
            view_text_add(&nodes, "%s%.2f on node %" PRId64, nodes.len > 0 ? ", " : ": ",
                          (double)view_number(run, "run_permille", 0) / 1000.0, view_number(run, "node", 0));
    }
    view_line("Runs", "%.2f CPUs' worth%s; waits %.1f %% of the CPU time it wants, while %.2f CPUs are idle",
              (double)view_number(object, "run_permille", 0) / 1000.0,
              nodes.failed ? " (out of memory)"
              : nodes.text ? nodes.text
                           : "",
              percent(object, "waits_permille"), (double)view_number(object, "idle_permille", 0) / 1000.0);
}

static void print_memory(json_object *object)
{
    CLEANUP_FREE char *memory = view_member(object, "memory", VIEW_MEMORY);
    char huge[64], bound[64];

    if (!view_bool(object, "memory_known"))
        return;
    view_line("Memory", "%s; %s in huge pages%s%s", memory ? memory : "?",
              human_bytes((uint64_t)view_number(object, "huge_bytes", 0), huge, sizeof(huge)),
              view_number(object, "bound_bytes", 0) > 0 ? "; bound to nodes: " : "",
              view_number(object, "bound_bytes", 0) > 0
                  ? human_bytes((uint64_t)view_number(object, "bound_bytes", 0), bound, sizeof(bound))
                  : "");
    if (json_object_object_get(object, "local_permille"))
        view_line(
            "Local",
            "%.1f %% if all of it is used evenly; between %.1f %% and %.1f %% whichever thread uses which "
            "part",
            percent(object, "local_permille"), percent(object, "local_least_permille"),
            percent(object, "local_most_permille"));
}

/* A node may have several domains. */
static void print_bandwidth(json_object *object)
{
    CLEANUP(view_text_done) ViewText text = {0};
    json_object *list = view_list(object, "bandwidth");

    for (size_t i = 0; i < view_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        int64_t total = view_number(entry, "total_bytes_per_sec", 0);
        char bytes[64];

        view_text_add(&text, "%snode %s %s/s", i > 0 ? "; " : "", view_string(entry, "nodes"),
                      human_bytes((uint64_t)total, bytes, sizeof(bytes)));
        if (json_object_object_get(entry, "local_bytes_per_sec"))
            view_text_add(&text, ", %.0f %% local",
                          100.0 * (double)view_number(entry, "local_bytes_per_sec", 0) /
                              (double)MAX(total, 1));
    }
    if (view_length(list) > 0 && !text.failed)
        view_line("Bandwidth", "of all: %s", text.text);
}

static void print_would(json_object *object)
{
    const char *nodes = view_string(object, "would_home_nodes"), *refusal = view_string(object, "refusal");
    char bytes[64], span[64];

    if (*nodes && view_number(object, "move_bytes", 0) * SAID_PART >= view_number(object, "bytes", 0) &&
        view_number(object, "move_bytes", 0) > 0)
        view_line("Would be", "on nodes %s; %s would move there, in about %s", nodes,
                  human_bytes((uint64_t)view_number(object, "move_bytes", 0), bytes, sizeof(bytes)),
                  human_span((uint64_t)view_number(object, "move_usec", 0), span, sizeof(span)));
    else if (*nodes)
        view_line("Would be", "on nodes %s", nodes);
    else if (*refusal && view_length(view_list(object, "runs")) > 1)
        view_line("Would be", "where it is: %s", refusal);
    if (view_number(object, "gain_most_permille", 0) > 0)
        view_line("Gain", "at most %.0f %% of its time", percent(object, "gain_most_permille"));
}

static void print_progress(json_object *object)
{
    int64_t n = view_number(object, "ipc_threads", 0), stall = view_number(object, "stall_permille", -1);
    char waits[64] = "";

    if (n == 0)
        return;
    if (stall >= 0)
        (void)snprintf(waits, sizeof(waits), "; waits for memory at most %" PRId64 " %% of its time",
                       (stall + 9) / 10);
    view_line("Progress", "%.2f instructions per cycle, over %" PRId64 " %s%s",
              (double)view_number(object, "ipc_permille", 0) / 1000.0, n, human_noun(n, "thread", "threads"),
              waits);
}

static void print_one(const CtlOptions *options, json_object *object)
{
    bool alarm = view_bool(object, "alarm");

    view_say(options->colour ? (alarm ? STYLE_WARN : STYLE_GOOD) : NULL, "%s[%" PRId64 "]: %s\n",
             view_string(object, "comm"), view_number(object, "pid", 0), view_string(object, "verdict"));
    view_line("", "%s", view_string(object, "text"));
    if (*view_string(object, "unit"))
        view_line("Unit", "%s", view_string(object, "unit"));
    print_runs(object);
    print_memory(object);
    if (*view_string(object, "pinned_by"))
        view_line("May use", "CPUs %s, by %s", view_string(object, "cpus_allowed"),
                  view_string(object, "pinned_by"));
    if (view_bool(object, "memory_known"))
        view_line("Kernel", "NUMA balancing %s", view_bool(object, "kernel_balances") ? "on" : "off");
    print_progress(object);
    print_bandwidth(object);
    print_would(object);
    if (alarm)
        view_line("Try", "numaplacectl diagnose --print-policy %" PRId64, view_number(object, "pid", 0));
}

static const ViewColumn columns[] = {
    {"PID", "pid", VIEW_NUMBER},
    {"COMM", "comm", VIEW_LONG},
    {"CPUS", "run_permille", VIEW_CPUS},
    {"WAITS", "waits_permille", VIEW_PERMILLE},
    {"MEMORY", "bytes", VIEW_SIZE},
    {"LOCAL", "local_permille", VIEW_PERMILLE},
    {"WOULD BE", "would_home_nodes", VIEW_TEXT},
    {"GAIN AT MOST", "gain_most_permille", VIEW_SHARE},
    {"VERDICT", "verdict", VIEW_TEXT},
    {"UNIT", "unit", VIEW_LONG},
};

/* Asks a running daemon whether it has given pinned or confined processes a home: then the masks are its own.
 * No answer is no error. */
static void ask_daemon(const CtlOptions *options, Survey *survey)
{
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit code = CTL_EXIT_OK;

    if (access(options->socket, F_OK) < 0)
        return;
    ctl_fail_later(true);
    code = client_connect(options, &bus);
    for (size_t i = 0;
         code != CTL_EXIT_NOT_RUNNING && code != CTL_EXIT_NO_ANSWER && bus && i < survey->n_findings; i++) {
        SurveyFinding *finding = &survey->findings[i];
        CLEANUP_JSON json_object *explained = NULL;
        char pid[16];

        if (!finding->facts.pinned && !finding->facts.confined)
            continue;
        (void)snprintf(pid, sizeof(pid), "%d", (int)finding->pid);
        code = client_call(bus, "Explain", &explained, "s", pid);
        finding->facts.placed = code == CTL_EXIT_OK && *view_string(explained, "home");
    }
    ctl_forget_failure();
    ctl_fail_later(false);
}

static CtlExit print(const CtlOptions *options, json_object *list, bool several)
{
    CtlExit code;

    if (options->print_policy) {
        for (size_t i = 0; i < view_length(list); i++)
            (void)fputs(view_string(json_object_array_get_idx(list, i), "policy"), stdout);
        return CTL_EXIT_OK;
    }
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, list);
    if (!several) {
        print_one(options, json_object_array_get_idx(list, 0));
        return CTL_EXIT_OK;
    }
    code = view_print_list(options, list, columns, ARRAY_SIZE(columns));
    if (code == CTL_EXIT_OK && options->legend && view_length(list) > 0)
        (void)puts("\nWorst first. For details run numaplacectl diagnose PID.");
    return code;
}

static CtlExit report(const CtlOptions *options, Survey *survey, bool several)
{
    CLEANUP_JSON json_object *list = json_object_new_array();
    size_t n = MIN(survey->n_findings, LISTED_MAX);

    if (!list)
        return ctl_fail_oom();
    ask_daemon(options, survey);
    survey_judge(survey);
    for (size_t i = 0; i < n; i++)
        if (add_finding(list, survey, &survey->findings[i]) < 0)
            return ctl_fail_oom();
    return print(options, list, several);
}

static CtlExit verb_diagnose(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(survey_done) Survey survey = {0};
    SurveyTarget target = {0};
    uint32_t pid = 0;
    CtlExit code;

    if (argc > 0 && parse_u32(argv[0], &pid) == 0)
        target.pid = (pid_t)pid;
    else if (argc > 0)
        target.unit = argv[0];
    if (argc > 0 && !target.unit && (pid == 0 || pid > INT32_MAX))
        return ctl_fail(CTL_EXIT_USAGE, "%s: expected a PID, a unit or a cgroup", argv[0]);
    if (options->print_policy && target.pid == 0)
        return ctl_fail(CTL_EXIT_USAGE, "--print-policy: expected a PID");
    if (options->print_policy && options->json != CTL_JSON_OFF)
        return ctl_fail(CTL_EXIT_USAGE, "--print-policy and --json= exclude each other");
    code = survey_make(&target, options->seconds > 0 ? options->seconds : SECONDS_DEFAULT, &survey);
    return code == CTL_EXIT_OK ? report(options, &survey, target.pid == 0) : code;
}

const CtlVerbRow ctl_verb_diagnose = {
    .name = "diagnose",
    .arguments = "[PID|UNIT]",
    .max = 1,
    .accepts = CTL_ACCEPTS(SECONDS) | CTL_ACCEPTS(PRINT_POLICY),
    .help = "whether NUMA costs it anything, and what would help",
    .run = verb_diagnose,
    .alone = true,
};
