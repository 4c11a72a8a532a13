/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* enable and disable: a drop-in of one key decides whether a policy places or only observes. It sets only
 * Act=, so that all else in the policy's files stays in force, and files written by hand are never rewritten.
 *
 * The names of the drop-ins sort after those that people write, and the runtime one last, so that it
 * overrides the persistent one until the next boot. Both (with --runtime only the runtime one) are put aside
 * first. If the policy is then not as wanted, one is written. On failure they are put back. Nothing is done
 * if the wanted state is already in force. */

#include "base/parse.h"
#include "ctl/client.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const dropin_names[] = {"80-numaplacectl.conf", "85-numaplacectl-runtime.conf"};

typedef struct Switch {
    const CtlOptions *options;
    const PolicyDirs *dirs;
    bool act; /* enable */
    bool warned;
    json_object *files; /* [{"policy", "path", "done": "written" or "removed"}] */
} Switch;

static Policy *find_policy(const PolicySet *set, const char *name)
{
    for (size_t i = 0; i < set->n_policies; i++)
        if (policy_files_is_named(set->policies[i]->name, name))
            return set->policies[i];
    return NULL;
}

static bool is_as_wanted(const Switch *s, const Policy *policy)
{
    return (policy->act != POLICY_ACT_OBSERVE && policy->mode != POLICY_MODE_NONE) == s->act;
}

static int note(Switch *s, const Policy *policy, const char *path, const char *done)
{
    json_object *object = json_add_object(s->files, NULL);

    if (json_set_text(object, "policy", policy->name) < 0 || json_set_text(object, "path", path) < 0 ||
        json_set_text(object, "done", done) < 0)
        return -ENOMEM;
    return 0;
}

static char *dropin_path(const Switch *s, const Policy *policy, bool runtime)
{
    const char *dir = s->dirs->dirs[runtime];

    return dir ? format_text("%s/%s.policy.d/%s", dir, policy->name, dropin_names[runtime]) : NULL;
}

/* Whether one of our drop-ins says the opposite: it would apply as soon as its override is gone. */
static bool contradicts(const Switch *s, const Policy *policy, bool runtime)
{
    CLEANUP(conf_report_done) ConfReport report = {0}; /* already reported when all were read */
    CLEANUP(policy_free_p) Policy *alone = NULL;
    CLEANUP_FREE char *path = dropin_path(s, policy, runtime);

    return path && policy_load_file(path, NULL, &alone, &report) == 0 &&
           policy_setting_find(alone, "Workload", "Act") && (alone->act != POLICY_ACT_OBSERVE) != s->act;
}

/* Whether the state in force lasts long enough: without --runtime it must outlast the next boot. With
 * --runtime only the runtime drop-in may be changed. */
static bool lasts(const Switch *s, const Policy *policy)
{
    CLEANUP_FREE char *path = dropin_path(s, policy, true);

    if (s->options->runtime)
        return !contradicts(s, policy, true);
    return (!path || access(path, F_OK) < 0) && !contradicts(s, policy, false);
}

/* Renames a drop-in to a name that is not read, so that it can be put back. */
static CtlExit put_aside(const Switch *s, const Policy *policy, bool runtime, char **ret)
{
    CLEANUP_FREE char *path = dropin_path(s, policy, runtime), *aside = NULL;

    if (!path)
        return s->dirs->dirs[runtime] ? ctl_fail_oom() : CTL_EXIT_OK;
    aside = format_text("%s~", path);
    if (!aside)
        return ctl_fail_oom();
    if (rename(path, aside) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? CTL_EXIT_OK
                   : ctl_fail(CTL_EXIT_FAILURE, "%s: cannot be removed: %s", path, strerror(errno));
    *ret = TAKE_PTR(aside);
    return CTL_EXIT_OK;
}

/* Puts a drop-in back, or deletes it. `aside` is its name with a "~" appended; NULL: there was none. Also
 * removes a directory that is then empty: it was ours, or is of use to nobody. */
static int settle(Switch *s, const Policy *policy, char *aside, bool back)
{
    CLEANUP_FREE char *path = aside ? strndup(aside, strlen(aside) - 1) : NULL;
    int r = 0;

    if (!aside)
        return 0;
    if (!path)
        return -ENOMEM;
    if (back)
        return rename(aside, path) < 0 ? -errno : 0;
    (void)unlink(aside);
    /* Unless a new one has replaced it. */
    if (access(path, F_OK) < 0)
        r = note(s, policy, path, "removed");
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
    return r;
}

static void write_dropin(FILE *out, void *userdata)
{
    const Switch *s = userdata;

    (void)fprintf(out, "# By numaplacectl %s.\n\n[Workload]\nAct=%s\n", s->act ? "enable" : "disable",
                  policy_act_names[s->act ? POLICY_ACT_AUTO : POLICY_ACT_OBSERVE]);
}

/* Makes all directories above the file `path`. */
static int make_directories(char *path)
{
    char *end = strrchr(path, '/');

    for (char *slash = strchr(path + 1, '/'); slash; slash = slash == end ? NULL : strchr(slash + 1, '/')) {
        int r;

        *slash = '\0';
        r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

static CtlExit add_dropin(Switch *s, const Policy *policy)
{
    bool runtime = s->options->runtime;
    CLEANUP_FREE char *path = dropin_path(s, policy, runtime);
    CtlExit code;
    int r;

    if (!path)
        return ctl_fail_oom();
    r = make_directories(path);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: cannot be written: %s", path, strerror(-r));
    code = ctl_replace_file(path, write_dropin, s);
    if (code == CTL_EXIT_OK && note(s, policy, path, "written") < 0)
        return ctl_fail_oom();
    return code;
}

/* Reads the files and finds the policy. Prints warnings only once. */
static CtlExit look(Switch *s, const char *name, PolicySet **set, Policy **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    int r;

    *set = policy_set_free(*set);
    r = policy_set_load((const char *const *)s->dirs->dirs, NULL, set, &report);
    if (r < 0 || !s->warned)
        policy_files_complain(&report);
    s->warned = true;
    if (r < 0)
        return r == -ENOMEM
                   ? ctl_fail_oom()
                   : ctl_fail(CTL_EXIT_FAILURE, "the policies have errors. See numaplacectl policy verify.");
    *ret = find_policy(*set, name);
    return *ret ? CTL_EXIT_OK : ctl_fail(CTL_EXIT_NOT_FOUND, "no policy is named %s", name);
}

static CtlExit fail_overridden(const Policy *policy)
{
    const PolicySetting *setting = policy_setting_find(policy, "Workload", "Act");

    return ctl_fail(CTL_EXIT_FAILURE, "%s: Act=%s is in force, by %s:%u, which is read later", policy->name,
                    policy_act_names[policy->act], setting ? policy->files[setting->file] : "default",
                    setting ? setting->line : 0);
}

/* Runs with the drop-ins put aside. */
static CtlExit switch_without(Switch *s, const char *name, PolicySet **set)
{
    Policy *policy;
    CtlExit code = look(s, name, set, &policy);

    if (code != CTL_EXIT_OK || is_as_wanted(s, policy))
        return code;
    code = add_dropin(s, policy);
    if (code == CTL_EXIT_OK)
        code = look(s, name, set, &policy);
    if (code != CTL_EXIT_OK || is_as_wanted(s, policy))
        return code;
    return fail_overridden(policy);
}

/* After a failure: removes what was written and puts back what was there. */
static void undo(Switch *s, const Policy *policy, char *const *aside, size_t n_done)
{
    CLEANUP_FREE char *written = dropin_path(s, policy, s->options->runtime);

    if (written && json_object_array_length(s->files) > n_done) {
        (void)unlink(written);
        *strrchr(written, '/') = '\0';
        (void)rmdir(written);
        (void)json_object_array_del_idx(s->files, n_done, json_object_array_length(s->files) - n_done);
    }
    for (size_t i = 0; i < ARRAY_SIZE(dropin_names); i++)
        (void)settle(s, policy, aside[i], true);
}

static CtlExit switch_policy(Switch *s, const char *name, PolicySet **set)
{
    CLEANUP(policy_set_free_p) PolicySet *before = NULL;
    CLEANUP_FREE char *runtime = NULL, *lasting = NULL;
    size_t n_done = json_object_array_length(s->files);
    Policy *policy;
    CtlExit code = look(s, name, &before, &policy);

    if (code != CTL_EXIT_OK)
        return code;
    if (s->act && policy->mode == POLICY_MODE_NONE)
        return ctl_fail(CTL_EXIT_FAILURE, "%s has Mode=none: it places nothing, enabled or not",
                        policy->name);
    if (is_as_wanted(s, policy) && lasts(s, policy))
        return CTL_EXIT_OK;
    code = put_aside(s, policy, true, &runtime);
    if (code == CTL_EXIT_OK && !s->options->runtime)
        code = put_aside(s, policy, false, &lasting);
    if (code == CTL_EXIT_OK)
        code = switch_without(s, name, set);
    if (code != CTL_EXIT_OK)
        undo(s, policy, (char *const[]){lasting, runtime}, n_done);
    else if (settle(s, policy, runtime, false) < 0 || settle(s, policy, lasting, false) < 0)
        return ctl_fail_oom();
    return code;
}

static CtlExit say_done(const CtlOptions *options, json_object *files)
{
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, files);
    for (size_t i = 0; i < json_object_array_length(files); i++) {
        json_object *file = json_object_array_get_idx(files, i);

        view_say(NULL, "%s %s.\n", !strcmp(view_string(file, "done"), "written") ? "Wrote" : "Removed",
                 view_string(file, "path"));
    }
    return CTL_EXIT_OK;
}

/* A daemon that does not run will read the files at its start. */
static CtlExit tell_daemon(const CtlOptions *options)
{
    CtlExit code;

    if (strcmp(options->root, "/") != 0 || (access(options->socket, F_OK) < 0 && errno == ENOENT))
        return CTL_EXIT_OK;
    code = client_query(options, "Reload", NULL, NULL);
    return code == CTL_EXIT_NOT_RUNNING ? CTL_EXIT_OK : code;
}

static CtlExit switch_all(const CtlOptions *options, int argc, char **argv, bool act)
{
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;
    CLEANUP_JSON json_object *files = json_object_new_array();
    CLEANUP(policy_dirs_done) PolicyDirs dirs = {0};
    Switch s = {.options = options, .dirs = &dirs, .act = act, .files = files};
    CtlExit result = CTL_EXIT_OK, code;
    bool any = false;

    if (!files || policy_dirs_init(options, &dirs) < 0)
        return ctl_fail_oom();
    if (options->runtime && !dirs.dirs[1])
        return ctl_fail(CTL_EXIT_USAGE,
                        "--runtime with --policy-dir= needs a second --policy-dir= to write into");
    for (int i = 0; i < argc; i++) {
        code = switch_policy(&s, argv[i], &set);
        any |= code == CTL_EXIT_OK;
        result = result == CTL_EXIT_OK ? code : result;
    }
    code = say_done(options, files);
    result = result == CTL_EXIT_OK ? code : result;
    /* Also when nothing was written: the daemon may not have read the last change. */
    code = any ? tell_daemon(options) : CTL_EXIT_OK;
    return result == CTL_EXIT_OK ? code : result;
}

static CtlExit verb_enable(const CtlOptions *options, int argc, char **argv)
{
    return switch_all(options, argc, argv, true);
}

const CtlVerbRow ctl_verb_enable = {
    .name = "enable",
    .arguments = "POLICY...",
    .min = 1,
    .max = -1,
    .accepts = CTL_ACCEPTS_POLICY | CTL_ACCEPTS(RUNTIME),
    .help = "place what a policy only observes",
    .run = verb_enable,
};

static CtlExit verb_disable(const CtlOptions *options, int argc, char **argv)
{
    return switch_all(options, argc, argv, false);
}

const CtlVerbRow ctl_verb_disable = {
    .name = "disable",
    .arguments = "POLICY...",
    .min = 1,
    .max = -1,
    .accepts = CTL_ACCEPTS_POLICY | CTL_ACCEPTS(RUNTIME),
    .help = "put it back, and only observe it",
    .run = verb_disable,
};
