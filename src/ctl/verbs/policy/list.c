/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* policy list and policy cat: the policies in the order they are tried, and their contents. */

#include "conf/search.h"
#include "ctl/text.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <string.h>

#define SUFFIX ".policy"

static const ViewColumn policy_columns[] = {
    {"POLICY", "name", VIEW_TEXT},       {"MODE", "mode", VIEW_TEXT},
    {"ACT", "act", VIEW_TEXT},           {"STEAL", "steal", VIEW_BOOL},
    {"MATCHES", "matches", VIEW_NUMBER}, {"DROP-INS", "dropins", VIEW_NUMBER},
    {"PATH", "path", VIEW_LONG},         {"DESCRIPTION", "description", VIEW_LONG},
};

static int add_policy(json_object *list, const Policy *policy)
{
    json_object *object = json_add_object(list, NULL);

    if (json_set_text(object, "name", policy->name) < 0 || json_set_text(object, "path", policy->path) < 0 ||
        json_set_text(object, "description", policy->description ? policy->description : "") < 0 ||
        json_set_text(object, "mode", policy_mode_names[policy->mode]) < 0 ||
        json_set_text(object, "act", policy_act_names[policy->act]) < 0 ||
        json_set_text(object, "group_by", policy_group_by_names[policy->group_by]) < 0 ||
        json_set_bool(object, "steal", policy->steal) < 0 ||
        json_set_number(object, "matches", policy->n_matches) < 0 ||
        json_set_number(object, "dropins", policy->n_files - 1) < 0)
        return -ENOMEM;
    return 0;
}

static CtlExit verb_policy_list(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;
    CLEANUP_JSON json_object *list = json_object_new_array();
    CtlExit code;

    if (!list)
        return ctl_fail_oom();
    code = policy_files_load(options, &set);
    if (code != CTL_EXIT_OK)
        return code;
    for (size_t i = 0; i < set->n_policies; i++)
        if (add_policy(list, set->policies[i]) < 0)
            return ctl_fail_oom();
    return view_print_list(options, list, policy_columns, ARRAY_SIZE(policy_columns));
}

const CtlVerbRow ctl_verb_policy_list = {
    .name = "policy list",
    .arguments = "",
    .accepts = CTL_ACCEPTS_POLICY,
    .help = "policies in the order they are tried",
    .run = verb_policy_list,
    .pages = true,
    .alone = true,
};

/* Whether a policy is asked for by name; without names all are. Marks in `found` the names that matched. */
static bool is_wanted(const char *name, int argc, char **argv, bool *found)
{
    bool wanted = argc == 0;

    for (int i = 0; i < argc; i++)
        if (policy_files_is_named(name, argv[i])) {
            found[i] = true;
            wanted = true;
        }
    return wanted;
}

static CtlExit check_found(int argc, char **argv, const bool *found)
{
    CtlExit code = CTL_EXIT_OK;

    for (int i = 0; i < argc; i++)
        if (!found[i])
            code = ctl_fail(CTL_EXIT_NOT_FOUND, "no policy is named %s", argv[i]);
    return code;
}

/* Prints a file's text unchanged, so that it can be copied; on a terminal each line is made printable. */
static int print_text(const char *text, bool terminal)
{
    while (*text) {
        CLEANUP_FREE char *line = strndup(text, strcspn(text, "\n")), *printable = NULL;

        printable = line ? text_printable(line) : NULL;
        if (!printable)
            return -ENOMEM;
        (void)puts(terminal ? printable : line);
        text += strlen(line);
        text += *text == '\n';
    }
    return 0;
}

/* Adds {path, text} of one file. */
static CtlExit add_file(json_object *files, const char *path)
{
    CLEANUP_FREE char *text = NULL;
    json_object *object;
    size_t len;
    CtlExit code = ctl_read_file(path, CONF_FILE_MAX, &text, &len);

    if (code != CTL_EXIT_OK)
        return code;
    object = json_add_object(files, NULL);
    if (json_set_text(object, "path", path) < 0 || json_set_text(object, "text", text) < 0)
        return ctl_fail_oom();
    return CTL_EXIT_OK;
}

/* Adds {name, files} of one policy. */
static CtlExit add_files(json_object *list, const ConfFile *file)
{
    CLEANUP_FREE char *name = strndup(file->name, strlen(file->name) - strlen(SUFFIX));
    json_object *object = json_add_object(list, NULL), *files;
    CtlExit code;

    if (!name || json_set_text(object, "name", name) < 0 || !(files = json_add_array(object, "files")))
        return ctl_fail_oom();
    code = add_file(files, file->path);
    for (size_t i = 0; code == CTL_EXIT_OK && i < file->n_dropins; i++)
        code = add_file(files, file->dropins[i]);
    return code;
}

/* Like `systemctl cat`: each file below a comment that names it. */
static CtlExit print_files(const CtlOptions *options, json_object *list)
{
    bool first = true;

    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, list);
    for (size_t i = 0; i < view_length(list); i++) {
        json_object *files = view_list(json_object_array_get_idx(list, i), "files");

        for (size_t k = 0; k < view_length(files); k++) {
            json_object *file = json_object_array_get_idx(files, k);

            (void)printf("%s", first ? "" : "\n");
            first = false;
            view_say(NULL, "# %s\n", view_string(file, "path"));
            if (print_text(view_string(file, "text"), options->terminal) < 0)
                return ctl_fail_oom();
        }
    }
    return CTL_EXIT_OK;
}

/* The files in the search path as they are, also those with errors: these are the ones to look at. */
static CtlExit collect_files(const CtlOptions *options, int argc, char **argv, bool *found, json_object *list)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    CLEANUP(policy_dirs_done) PolicyDirs dirs = {0};
    CLEANUP(conf_files_done) ConfFiles files = {0};
    CtlExit code = CTL_EXIT_OK;
    int r;

    if (policy_dirs_init(options, &dirs) < 0)
        return ctl_fail_oom();
    r = conf_search((const char *const *)dirs.dirs, SUFFIX, &files, &report);
    policy_files_complain(&report);
    if (r == -ENOMEM)
        return ctl_fail_oom();
    for (size_t i = 0; i < files.n_files; i++)
        if (is_wanted(files.files[i].name, argc, argv, found) &&
            add_files(list, &files.files[i]) != CTL_EXIT_OK)
            code = CTL_EXIT_FAILURE;
    return code == CTL_EXIT_OK && r < 0 ? CTL_EXIT_FAILURE : code;
}

/* The same list with the values in force instead of the contents of the files. */
static CtlExit collect_effective(const CtlOptions *options, int argc, char **argv, bool *found,
                                 json_object *list)
{
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;
    CtlExit code = policy_files_load(options, &set);

    for (size_t i = 0; code == CTL_EXIT_OK && i < set->n_policies; i++) {
        const Policy *policy = set->policies[i];
        CLEANUP_FREE char *text = NULL;
        json_object *object, *file;

        if (!is_wanted(policy->name, argc, argv, found))
            continue;
        text = policy_format(policy);
        object = json_add_object(list, NULL);
        file = json_add_object(json_add_array(object, "files"), NULL);
        if (!text || json_set_text(object, "name", policy->name) < 0 ||
            json_set_text(file, "path", policy->path) < 0 || json_set_text(file, "text", text) < 0)
            return ctl_fail_oom();
    }
    return code;
}

static CtlExit verb_policy_cat(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *list = json_object_new_array();
    CLEANUP_FREE bool *found = calloc((size_t)argc + 1, sizeof(*found));
    CtlExit code, printed = CTL_EXIT_OK, missing;

    if (!list || !found)
        return ctl_fail_oom();
    code = options->effective ? collect_effective(options, argc, argv, found, list)
                              : collect_files(options, argc, argv, found, list);
    /* Show what could be read even if something could not. */
    if (code == CTL_EXIT_OK || json_object_array_length(list) > 0)
        printed = print_files(options, list);
    if (code != CTL_EXIT_OK && options->effective)
        return code; /* then it is not known which policies exist */
    missing = check_found(argc, argv, found);
    if (code != CTL_EXIT_OK)
        return code;
    return printed != CTL_EXIT_OK ? printed : missing;
}

const CtlVerbRow ctl_verb_policy_cat = {
    .name = "policy cat",
    .arguments = "[POLICY...]",
    .max = -1,
    .accepts = CTL_ACCEPTS_POLICY | CTL_ACCEPTS(EFFECTIVE),
    .help = "their files, drop-ins included",
    .run = verb_policy_cat,
    .pages = true,
    .alone = true,
};
