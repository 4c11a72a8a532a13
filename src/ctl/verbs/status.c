/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* status: what the daemon sees, what it has done since its start, and what that cost. */

#include "base/human.h"
#include "ctl/client.h"
#include "ctl/terminal/style.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include "numaplace/paths.h"

#include <inttypes.h>
#include <string.h>

static int64_t number(json_object *status, const char *key)
{
    return view_number(status, key, 0);
}

static void print_head(const CtlOptions *options, json_object *status)
{
    const char *state = view_string(status, "state"), *mode = view_string(status, "mode");
    bool good = !strcmp(state, "running") && !strcmp(mode, "active");
    const char *colour = good ? STYLE_GOOD : STYLE_WARN;

    view_say(NULL, "numaplaced %s, pid %" PRId64 ": ", view_string(status, "version"), number(status, "pid"));
    view_say(options->colour ? colour : NULL, "%s, %s\n", state, mode);
    if (number(status, "rehearsal") > 0)
        view_line("", "rehearsal: %" PRId64 " emulated nodes; CPUs are placed for real, memory is not moved",
                  number(status, "rehearsal"));
}

/* Adds a number in the status as "3 groups". */
static void add_count(ViewText *text, json_object *status, const char *key, const char *one, const char *many)
{
    int64_t n = number(status, key);

    view_text_add(text, "%s%" PRId64 " %s", text->len > 0 ? ", " : "", n, human_noun(n, one, many));
}

static void print_machine(json_object *status)
{
    CLEANUP(view_text_done) ViewText members = {0};
    char buf[64];

    view_line("Up", "%s", human_span((uint64_t)number(status, "uptime_usec"), buf, sizeof(buf)));
    view_line("Machine", "%" PRId64 " %s on %" PRId64 " %s (%s); %" PRId64 " overloaded, %" PRId64 " idle%s",
              number(status, "cpus"), human_noun(number(status, "cpus"), "CPU", "CPUs"),
              number(status, "nodes"), human_noun(number(status, "nodes"), "node", "nodes"),
              view_string(status, "origin"), number(status, "overloaded"), number(status, "idle"),
              view_bool(status, "partial") ? "; some input could not be read in this tick" : "");
    add_count(&members, status, "policies", "policy", "policies");
    add_count(&members, status, "workloads", "workload", "workloads");
    add_count(&members, status, "groups", "group", "groups");
    add_count(&members, status, "processes", "process", "processes");
    add_count(&members, status, "tasks", "thread", "threads");
    if (number(status, "pinned") > 0)
        add_count(&members, status, "pinned", "of them left alone because something else pinned it",
                  "of them left alone because something else pinned them");
    view_line("Managed", "%s", members.failed ? "(out of memory)" : members.text);
}

static void print_actions(json_object *status)
{
    CLEANUP(view_text_done) ViewText actions = {0};

    view_line("Lent now", "%" PRId64 " %s", number(status, "leases"),
              human_noun(number(status, "leases"), "CPU", "CPUs"));
    add_count(&actions, status, "lends", "lend", "lends");
    add_count(&actions, status, "recalls", "recall", "recalls");
    add_count(&actions, status, "pushes", "push to an idle core", "pushes to idle cores");
    add_count(&actions, status, "homes", "home", "homes");
    add_count(&actions, status, "releases", "release", "releases");
    add_count(&actions, status, "memory_orders", "migration request", "migration requests");
    add_count(&actions, status, "foreign_restores", "thread left because something else pinned it",
              "threads left because something else pinned them");
    view_line("Since start", "%s", actions.failed ? "(out of memory)" : actions.text);
}

static void print_cost(json_object *status)
{
    char lately[64], fast[64], slow[64], action[64], memory[64], late[64], late_max[64];
    int64_t stretch = view_number(status, "stretch_permille", 1000);

    view_line("Ticks",
              "every %s lately, %s when nothing happens, homes every %s; the last %s late, %s at most%s%s%s",
              human_span((uint64_t)number(status, "tick_lately_usec"), lately, sizeof(lately)),
              human_span((uint64_t)number(status, "fast_tick_usec"), fast, sizeof(fast)),
              human_span((uint64_t)number(status, "slow_tick_usec"), slow, sizeof(slow)),
              human_span((uint64_t)number(status, "tick_late_usec"), late, sizeof(late)),
              human_span((uint64_t)number(status, "tick_late_max_usec"), late_max, sizeof(late_max)),
              view_bool(status, "unfinished") ? "; still scanning very many threads" : "",
              view_bool(status, "watches") && !strcmp(view_string(status, "mode"), "observe")
                  ? "; nothing may be placed"
              : view_bool(status, "watches") ? "; no policy places anything"
              : view_bool(status, "pressed") ? "; pressed"
                                             : "",
              stretch > 1000 ? "; slowed down to stay within MaxCPU=" : "");
    view_line(
        "Cost",
        "%.1f %% of one CPU (limit %.1f %%), %s; search %.4f %% of managed CPU time; %s per mask change",
        (double)number(status, "cpu_permille") / 10, (double)number(status, "max_cpu_permille") / 10,
        human_bytes((uint64_t)number(status, "rss_bytes"), memory, sizeof(memory)),
        (double)number(status, "search_ppm") / 10000,
        human_span((uint64_t)number(status, "action_cost_usec"), action, sizeof(action)));
}

/* Known only while some process's memory is measured. */
static void print_free(json_object *status)
{
    CLEANUP_FREE char *text = view_member(status, "free", VIEW_MEMORY);

    if (view_length(view_list(status, "free")) > 0)
        view_line("Free memory", "%s", text ? text : "?");
}

static void print_memory(json_object *status)
{
    char moved[64], longest[64];

    if (number(status, "memory_moved_bytes") == 0 && number(status, "memory_moving") == 0)
        return;
    view_line("Moved", "%s; %" PRId64 " %s under way; the longest call took %s",
              human_bytes((uint64_t)number(status, "memory_moved_bytes"), moved, sizeof(moved)),
              number(status, "memory_moving"),
              human_noun(number(status, "memory_moving"), "request", "requests"),
              human_span((uint64_t)number(status, "memory_longest_usec"), longest, sizeof(longest)));
}

/* The processor's counters, which show what waits for memory. */
static void print_counters(json_object *status)
{
    const char *counters = view_string(status, "counters");
    int64_t n = number(status, "counters_processes");
    char cost[64];

    if (!*counters)
        return; /* an older daemon */
    if (strcmp(counters, "used") != 0)
        view_line("Counters", "not used: %s", counters);
    else
        view_line("Counters", "used: %" PRId64 " %s, in %s of CPU time", n, human_noun(n, "count", "counts"),
                  human_span((uint64_t)number(status, "counters_cpu_usec"), cost, sizeof(cost)));
}

static void print_kernel(json_object *status)
{
    bool psi = view_bool(status, "psi");
    char schedstat[32] = "no schedstat";

    if (view_bool(status, "schedstat"))
        (void)snprintf(schedstat, sizeof(schedstat), "schedstat %" PRId64,
                       number(status, "schedstat_version"));
    view_line("Kernel", "%s, %s, %s, cgroup %s%s, %s", schedstat,
              view_bool(status, "task_schedstat") ? "task schedstat" : "no task schedstat",
              !psi                               ? "no PSI"
              : view_bool(status, "psi_trigger") ? "PSI with triggers"
                                                 : "PSI without triggers",
              view_string(status, "cgroup"), view_bool(status, "cpuset_v1") ? ", cpuset v1" : "",
              view_bool(status, "numa") ? "NUMA" : "one node");
    print_counters(status);
    /* Before Linux 6.2, threads get all CPUs of a cpuset when it changes, whatever their mask was. */
    view_line("Means", "affinity%s%s%s; %" PRId64 " of %" PRId64 " cpusets confined",
              view_bool(status, "forgets_masks") ? " (lost when a cpuset changes)" : "",
              view_bool(status, "fence_units") ? ", units" : "",
              !strcmp(view_string(status, "libcpuset"), "used")       ? ", cpusets through libcpuset"
              : !strcmp(view_string(status, "fence_cpusets"), "none") ? ""
                                                                      : ", cpusets",
              number(status, "fences_up"), number(status, "fences"));
    view_line("Clients", "%" PRId64 " of at most %" PRId64 " at the socket, %s", number(status, "clients"),
              number(status, "clients_max"),
              view_bool(status, "system_bus") ? "others on the system bus" : "not on the system bus");
    view_line("Config", "%s",
              *view_string(status, "config") ? view_string(status, "config") : "built-in defaults");
}

/* Other programs that decide about CPUs and memory, and what is done about it. */
static void print_neighbours(json_object *status)
{
    json_object *neighbours = view_list(status, "neighbours");

    for (size_t i = 0; i < view_length(neighbours); i++) {
        json_object *neighbour = json_object_array_get_idx(neighbours, i);
        const char *detail = view_string(neighbour, "detail");

        view_line(i == 0 ? "Beside" : "", "%s%s%s%s: %s", view_string(neighbour, "name"), *detail ? " (" : "",
                  detail, *detail ? ")" : "", view_string(neighbour, "text"));
    }
}

/* What an earlier daemon left in place. numaplaced --restore puts it back, but needs the lock that this
 * daemon holds. */
static void print_left(json_object *status)
{
    CLEANUP(view_text_done) ViewText left = {0};
    const char *directory = view_string(status, "runtime_directory");
    bool standard = !strcmp(directory, NUMAPLACE_RUNTIME_DIRECTORY);

    if (number(status, "left_threads") == 0 && number(status, "left_cgroups") == 0)
        return;
    add_count(&left, status, "left_threads", "thread", "threads");
    add_count(&left, status, "left_cgroups", "cgroup", "cgroups");
    view_line("Left", "%s had CPUs of an earlier daemon at the start%s",
              left.failed ? "(out of memory)" : left.text,
              view_bool(status, "left_kept") ? " (KeepOnStop=yes)" : "");
    view_line("", "to put them back, stop this daemon and run numaplaced --restore%s%s",
              standard ? "" : " --runtime-dir=", standard ? "" : directory);
}

static CtlExit verb_status(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *status = NULL;
    CtlExit code = client_query(options, "GetStatus", NULL, &status);

    if (code != CTL_EXIT_OK)
        return code;
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, status);

    print_head(options, status);
    print_left(status);
    print_machine(status);
    print_actions(status);
    code = view_counters(status, "Outcomes", "outcomes");
    if (code == CTL_EXIT_OK)
        code = view_counters(status, "Refused", "refused");
    print_cost(status);
    if (code == CTL_EXIT_OK)
        code = view_counters(status, "Not moved", "memory_refused");
    print_free(status);
    print_memory(status);
    view_use_lines(status);
    print_kernel(status);
    print_neighbours(status);
    return code;
}

const CtlVerbRow ctl_verb_status = {
    .name = "status",
    .arguments = "",
    .accepts = CTL_ACCEPTS(WATCH),
    .help = "what the daemon sees, does and costs",
    .run = verb_status,
    .pages = true,
};
