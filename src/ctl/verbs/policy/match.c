/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* policy match: which policy a process falls under, or a command that does not run yet would. The daemon's
 * code reads the process, so that both see the same unit, program and environment. */

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/policy/match-report.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"
#include "probe/probe.h"

#include <pwd.h>
#include <string.h>

typedef struct Look {
    const CtlOptions *options;
    const PolicySet *set;
    json_object *report;
} Look;

/* Login name of a uid of this machine, malloc'd; NULL when there is none, or the root is another machine's. */
static char *login_name(const CtlOptions *options, uid_t uid)
{
    struct passwd *entry = strcmp(options->root, "/") != 0 ? NULL : getpwuid(uid);

    return entry ? strdup(entry->pw_name) : NULL;
}

static int on_subject(void *userdata, const ProbeSubject *from)
{
    Look *look = userdata;
    CLEANUP_FREE char *user = login_name(look->options, from->uid);
    const PolicySubject subject = {
        .unit = from->unit,
        .slice = from->slice,
        .cgroup = from->cgroup,
        .comm = from->comm,
        .exe = from->exe,
        .command_line = from->command_line,
        .environment = from->environment,
        .environment_len = from->environment_len,
        .uid = from->uid,
        .user = user,
        .memory_bytes = from->rss_bytes,
        .n_threads = from->n_threads,
    };

    return match_report(look->set, &subject, from->pid, &look->report);
}

/* The probe calls this only in discoveries, and there are none here. */
static ProbeDecision ignore_all(void *userdata, const ProbeSubject *subject, size_t *ret_policy)
{
    return PROBE_DECISION_IGNORE;
}

static int assign_none(void *userdata, World *world, Process *process, size_t policy)
{
    return 0;
}

/* The user has time. A process that is just starting holds its lock until its libraries are loaded, and
 * longer if it has to wait for a CPU meanwhile. */
#define WAIT_USEC (2 * USEC_PER_SEC)

static CtlExit match_pid(const CtlOptions *options, const PolicySet *set, pid_t pid, json_object **ret)
{
    static const ProbeCallbacks callbacks = {.decide = ignore_all, .assign = assign_none};
    CLEANUP_CLOSE int root_fd = root_open(options->root);
    CLEANUP(probe_free_p) Probe *probe = NULL;
    Look look = {.options = options, .set = set};
    bool live = strcmp(options->root, "/") == 0;
    int r = root_fd;

    if (r >= 0)
        r = probe_new(
            &(ProbeOptions){.root_fd = root_fd, .live = live, .aside = live, .aside_wait_usec = WAIT_USEC},
            &callbacks, &probe);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: cannot read processes: %s", options->root, strerror(-r));

    r = probe_look(probe, pid, PROBE_WANTS_EXE | PROBE_WANTS_COMMAND_LINE | PROBE_WANTS_ENVIRONMENT,
                   on_subject, &look);
    if (r == -ESRCH)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "there is no process %d", pid);
    if (r == PROBE_E_OUT_OF_REACH)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "%d is a kernel thread or a zombie: never placed, whatever policies say", pid);
    if (r == -EAGAIN)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "process %d keeps its command line or environment locked: try again", pid);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "process %d cannot be read: %s", pid, strerror(-r));
    *ret = look.report;
    return CTL_EXIT_OK;
}

/* The program that a command would run: its own path if it has a slash, else the first in PATH. Malloc'd or NULL. */
static char *find_program(const char *command)
{
    const char *dir = getenv("PATH");

    if (strchr(command, '/'))
        return realpath(command, NULL);
    while (dir && *dir) {
        size_t len = strcspn(dir, ":");
        CLEANUP_FREE char *path = format_text("%.*s/%s", (int)len, dir, command);

        if (!path)
            return NULL;
        if (len > 0 && access(path, X_OK) == 0)
            return realpath(path, NULL);
        dir += len + (dir[len] == ':');
    }
    return NULL;
}

static char *join(int argc, char **argv)
{
    CLEANUP(view_text_done) ViewText text = {0};

    for (int i = 0; i < argc; i++)
        view_text_add(&text, "%s%s", i > 0 ? " " : "", argv[i]);
    return text.failed ? NULL : TAKE_PTR(text.text);
}

/* What is known of a command before it runs. Its unit and environment are not, so keys about them do not match. */
static CtlExit match_command(const CtlOptions *options, const PolicySet *set, int argc, char **argv,
                             json_object **ret)
{
    CLEANUP_FREE char *exe = find_program(argv[0]), *command_line = join(argc, argv);
    CLEANUP_FREE char *user = login_name(options, getuid());
    const char *slash = strrchr(argv[0], '/');
    char comm[WORLD_COMM_SIZE];
    const PolicySubject subject = {
        .comm = comm,
        .exe = exe,
        .command_line = command_line,
        .uid = getuid(),
        .user = user,
        .n_threads = 1,
    };

    (void)snprintf(comm, sizeof(comm), "%s", slash ? slash + 1 : argv[0]);
    if (!command_line || match_report(set, &subject, 0, ret) < 0)
        return ctl_fail_oom();
    return CTL_EXIT_OK;
}

static CtlExit verb_policy_match(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;
    CLEANUP_JSON json_object *report = NULL;
    int32_t pid = 0;
    int parsed = argc == 1 ? parse_i32(argv[0], &pid) : -EINVAL;
    bool is_pid = parsed == 0;
    CtlExit code;

    if (parsed == -ERANGE || (is_pid && pid <= 0) || !*argv[0])
        return ctl_fail(CTL_EXIT_USAGE, "%s: expected a PID or a command", argv[0]);
    code = policy_files_load(options, &set);
    if (code != CTL_EXIT_OK)
        return code;
    if (is_pid)
        code = match_pid(options, set, pid, &report);
    else
        code = match_command(options, set, argc, argv, &report);
    if (code != CTL_EXIT_OK)
        return code;
    return match_report_print(options, report);
}

const CtlVerbRow ctl_verb_policy_match = {
    .name = "policy match",
    .arguments = "PID|COMMAND...",
    .min = 1,
    .max = -1,
    .accepts = CTL_ACCEPTS_POLICY,
    .help = "which policy a process falls under, and why",
    .run = verb_policy_match,
    .pages = true,
    .alone = true,
};
