/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* policy verify: what the daemon would report about these files, in advance. */

#include "base/parse.h"
#include "conf/search.h"
#include "ctl/terminal/style.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

typedef struct Verify {
    const Topology *topology; /* to check nodes; NULL: not checked */
    ConfReport report;
    size_t n_files;
    bool live; /* the files are for this machine */
} Verify;

static int add_message(json_object *list, const char *severity, const char *file, unsigned line,
                       const char *text)
{
    json_object *object = json_add_object(list, NULL);

    if (json_set_text(object, "severity", severity) < 0 || json_set_text(object, "file", file) < 0 ||
        json_set_number(object, "line", line) < 0 || json_set_text(object, "text", text) < 0)
        return -ENOMEM;
    return 0;
}

/* Warns about names that are not users of this machine; patterns and numbers may match anybody. */
static void check_users(Verify *verify, const Policy *policy)
{
    for (size_t i = 0; i < policy->n_matches && verify->live; i++) {
        const PolicyMatch *match = &policy->matches[i];

        for (size_t k = 0; k < match->user.n_values; k++) {
            const char *name = match->user.values[k].glob;

            if (name[strcspn(name, "*?[\\")] == '\0' && name[strspn(name, "0123456789")] != '\0' &&
                !getpwnam(name))
                conf_report_add(&verify->report, CONF_SEVERITY_WARNING, policy->files[match->file],
                                match->user.values[k].line, "User=%s: this machine has no user of that name",
                                name);
        }
    }
}

/* Warns about policies that match nothing. The daemon does not, because they do no harm. A drop-in without a
 * policy has a warning already. */
static void check_use(Verify *verify, const Policy *policy)
{
    const char *dot = strrchr(policy->path, '.');
    const char *text =
        policy->n_settings > 0
            ? "no [Match] section that matches anything: only numaplacectl run puts processes under it"
            : "neither a [Match] section that matches anything nor a setting: it does nothing";

    if (policy->n_matches == 0 && !(dot && !strcmp(dot, ".conf")))
        conf_report_add(&verify->report, CONF_SEVERITY_WARNING, policy->path, 0, "%s", text);
}

/* Verifies one policy. An error in it hides nothing about the others. */
static int verify_policy(Verify *verify, const ConfFile *file)
{
    CLEANUP(policy_free_p) Policy *policy = NULL;
    int r = policy_load(file, verify->topology, &policy, &verify->report);

    if (r == 0) {
        check_use(verify, policy);
        check_users(verify, policy);
    }
    return r == -EBADMSG ? 0 : r;
}

static int verify_dirs(Verify *verify, const char *const *dirs)
{
    CLEANUP(conf_files_done) ConfFiles files = {0};
    int r = policy_search(dirs, &files, &verify->report);

    for (size_t i = 0; r != -ENOMEM && i < files.n_files; i++) {
        verify->n_files += 1 + files.files[i].n_dropins;
        r = verify_policy(verify, &files.files[i]);
    }
    return r == -ENOMEM ? r : 0;
}

/* "/DIR/NAME.policy.d" of a drop-in in it, malloc'd; NULL: the file is none. */
static char *dropin_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    CLEANUP_FREE char *real = dir && has_suffix(path, strlen(path), ".conf") ? realpath(dir, NULL) : NULL;

    return real && has_suffix(real, strlen(real), ".policy.d") ? TAKE_PTR(real) : NULL;
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Verifies a drop-in together with its policy: that beside the directory, or else that of the daemon. */
static int verify_dropin(Verify *verify, const CtlOptions *options, const char *path, const char *dir)
{
    CLEANUP(policy_dirs_done) PolicyDirs dirs = {0};
    const char *name = strrchr(dir, '/') + 1;
    int len = (int)(strlen(name) - strlen(".d")), r = policy_dirs_init(options, &dirs);
    CLEANUP_FREE char *policy = format_text("%.*s%.*s", (int)(name - dir), dir, len, name);

    for (size_t i = 0; r == 0 && policy && !is_file(policy) && dirs.dirs[i]; i++) {
        free(policy);
        policy = format_text("%s/%.*s", dirs.dirs[i], len, name);
    }
    if (r < 0 || !policy)
        return -ENOMEM;
    if (is_file(policy))
        return verify_policy(
            verify, &(ConfFile){.path = policy, .dropins = (char *[]){(char *)path}, .n_dropins = 1});
    conf_report_add(&verify->report, CONF_SEVERITY_WARNING, path, 0,
                    "a drop-in of a policy that does not exist: %.*s", len, name);
    return verify_policy(verify, &(ConfFile){.path = (char *)path});
}

static int verify_argument(Verify *verify, const CtlOptions *options, const char *path)
{
    CLEANUP_FREE char *dir = dropin_dir(path);
    size_t n_files = verify->n_files, n_errors = verify->report.n_errors;
    struct stat st;
    int r;

    if (stat(path, &st) < 0)
        st = (struct stat){0}; /* its reader reports why */
    if (S_ISDIR(st.st_mode)) {
        r = verify_dirs(verify, (const char *const[]){path, NULL});
        if (r == 0 && verify->n_files == n_files && verify->report.n_errors == n_errors)
            conf_report_add(&verify->report, CONF_SEVERITY_WARNING, path, 0,
                            "there are no policies in it, which are files named *.policy");
        return r;
    }
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
        conf_report_add(&verify->report, CONF_SEVERITY_WARNING, path, 0,
                        "leads to /dev/null, which disables files of its name");
        return 0;
    }
    verify->n_files++;
    return dir ? verify_dropin(verify, options, path, dir)
               : verify_policy(verify, &(ConfFile){.path = (char *)path});
}

static int verify_all(Verify *verify, const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(policy_dirs_done) PolicyDirs dirs = {0};
    int r = 0;

    if (argc == 0) {
        r = policy_dirs_init(options, &dirs);
        return r < 0 ? r : verify_dirs(verify, (const char *const *)dirs.dirs);
    }
    for (int i = 0; r == 0 && i < argc; i++)
        r = verify_argument(verify, options, argv[i]);
    return r;
}

/* {files, errors, warnings, messages}: messages in the order found. */
static int make_result(const Verify *verify, json_object **ret)
{
    CLEANUP_JSON json_object *object = json_object_new_object();
    json_object *messages = json_add_array(object, "messages");

    for (size_t i = 0; i < verify->report.n_messages; i++) {
        const ConfMessage *m = &verify->report.messages[i];

        if (add_message(messages, m->severity == CONF_SEVERITY_ERROR ? "error" : "warning", m->file, m->line,
                        m->text) < 0)
            return -ENOMEM;
    }
    if (!messages || json_set_number(object, "files", verify->n_files) < 0 ||
        json_set_number(object, "errors", verify->report.n_errors) < 0 ||
        json_set_number(object, "warnings", verify->report.n_warnings) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(object);
    return 0;
}

static void print_message(const CtlOptions *options, json_object *message)
{
    const char *colour = strcmp(view_string(message, "severity"), "error") != 0 ? STYLE_WARN : STYLE_BAD;
    int64_t line = view_number(message, "line", 0);

    if (line > 0)
        view_say(NULL, "%s:%lld: ", view_string(message, "file"), (long long)line);
    else
        view_say(NULL, "%s: ", view_string(message, "file"));
    view_say(options->colour ? colour : NULL, "%s\n", view_string(message, "text"));
}

static void print_result(const CtlOptions *options, json_object *result)
{
    json_object *messages = view_list(result, "messages");
    int64_t errors = view_number(result, "errors", 0), warnings = view_number(result, "warnings", 0);
    int64_t files = view_number(result, "files", 0);

    for (size_t i = 0; i < view_length(messages); i++)
        print_message(options, json_object_array_get_idx(messages, i));
    (void)printf("%lld file%s, %lld error%s, %lld warning%s\n", (long long)files, files == 1 ? "" : "s",
                 (long long)errors, errors == 1 ? "" : "s", (long long)warnings, warnings == 1 ? "" : "s");
}

/* The machine whose nodes the policies may name. A captured root is another machine: its nodes are known only
 * if its XML or a synthetic description is given too. */
static CtlExit load_topology(const CtlOptions *options, Topology **ret)
{
    CLEANUP_FREE char *error = NULL;
    int r;

    if (strcmp(options->root, "/") != 0 && !options->topology.xml && !options->topology.synthetic)
        return CTL_EXIT_OK;
    r = topology_load(&options->topology, ret, &error);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "topology: %s", error ? error : strerror(-r));
    return CTL_EXIT_OK;
}

static CtlExit verb_policy_verify(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_JSON json_object *result = NULL;
    Verify verify = {.live = strcmp(options->root, "/") == 0 && !options->topology.xml &&
                             !options->topology.synthetic};
    CtlExit code;
    int r;

    if (argc > 0 && options->n_policy_dirs > 0)
        return ctl_fail(CTL_EXIT_USAGE,
                        "policy verify takes either files or --policy-dir=. See numaplacectl --help.");
    code = load_topology(options, &topology);
    if (code != CTL_EXIT_OK)
        return code;
    verify.topology = topology;

    r = verify_all(&verify, options, argc, argv);
    if (r == 0)
        r = make_result(&verify, &result);
    code = verify.report.n_errors > 0 ? CTL_EXIT_FAILURE : CTL_EXIT_OK;
    conf_report_done(&verify.report);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot read the policies: %s", strerror(-r));
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, result) == CTL_EXIT_OK ? code : CTL_EXIT_FAILURE;
    print_result(options, result);
    return code;
}

const CtlVerbRow ctl_verb_policy_verify = {
    .name = "policy verify",
    .arguments = "[FILE|DIR...]",
    .max = -1,
    .accepts = CTL_ACCEPTS_POLICY | CTL_ACCEPTS_TOPOLOGY,
    .help = "check policies",
    .run = verb_policy_verify,
    .pages = true,
    .alone = true,
};
