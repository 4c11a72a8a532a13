/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policy room decides about sections. To find the keys that fail, it is asked again about a section with
 * one key only, so that no second matcher can disagree with the first. */

#include "ctl/verbs/policy/match-report.h"

#include "base/human.h"
#include "base/parse.h"
#include "ctl/terminal/style.h"
#include "ctl/view.h"
#include "policy/pattern.h"

#include <inttypes.h>
#include <string.h>

static const char *const verdict_names[] = {
    [POLICY_VERDICT_NO] = "no",
    [POLICY_VERDICT_LATER] = "later",
    [POLICY_VERDICT_YES] = "yes",
};

typedef enum KeyKind {
    KEY_PATTERNS,
    KEY_BYTES,
    KEY_PERMILLE,
    KEY_NUMBER
} KeyKind;

static KeyKind key_kind(const ConfKey *key)
{
    if (key->offset == offsetof(PolicyMatch, min_memory_bytes))
        return KEY_BYTES;
    if (key->offset == offsetof(PolicyMatch, min_cpu_permille))
        return KEY_PERMILLE;
    if (key->offset == offsetof(PolicyMatch, min_threads))
        return KEY_NUMBER;
    return KEY_PATTERNS;
}

/* The subject's value for a key of patterns; NULL: not known. The environment is not shown: it may hold secrets. */
static const char *found_text(const PolicySubject *subject, size_t offset)
{
    const struct {
        size_t offset;
        const char *found;
    } texts[] = {
        {offsetof(PolicyMatch, unit), subject->unit},
        {offsetof(PolicyMatch, slice), subject->slice},
        {offsetof(PolicyMatch, cgroup), subject->cgroup},
        {offsetof(PolicyMatch, comm), subject->comm},
        {offsetof(PolicyMatch, exe), subject->exe},
        {offsetof(PolicyMatch, command_line), subject->command_line},
        {offsetof(PolicyMatch, user), subject->user},
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i].offset == offset)
            return texts[i].found;
    return NULL;
}

/* Gets the text of a key. Returns 1, 0 when the section does not have the key, or -ENOMEM. */
static int wanted_text(const PolicyMatch *match, const ConfKey *key, char **ret)
{
    const void *field = (const char *)match + key->offset;
    KeyKind kind = key_kind(key);
    char buf[64];

    if (kind == KEY_PATTERNS ? ((const PolicyPatterns *)field)->n_values == 0
        : kind == KEY_BYTES  ? *(const uint64_t *)field == 0
                             : *(const uint32_t *)field == 0)
        return 0;
    if (kind == KEY_PATTERNS)
        *ret = policy_patterns_format(field);
    else if (kind == KEY_BYTES)
        *ret = strdup(human_bytes(*(const uint64_t *)field, buf, sizeof(buf)));
    else if (kind == KEY_PERMILLE)
        *ret = format_text("%.1f %%", (double)*(const uint32_t *)field / 10);
    else
        *ret = format_text("%" PRIu32, *(const uint32_t *)field);
    return *ret ? 1 : -ENOMEM;
}

/* For a known environment. Names a glob that excludes the process, but not the variable. */
static int found_environment(const PolicyPatterns *patterns, const PolicySubject *subject, char **ret)
{
    for (size_t i = 0; i < patterns->n_values; i++) {
        PolicyMatch alone = {.environment = {.values = &patterns->values[i], .n_values = 1}};
        const Policy policy = {.matches = &alone, .n_matches = 1};
        size_t section;

        if (patterns->values[i].negate && policy_match_one(&policy, subject, &section) == POLICY_VERDICT_NO) {
            CLEANUP_FREE char *glob = policy_patterns_format(&alone.environment);

            *ret = glob ? format_text("set, against %s", glob) : NULL;
            return *ret ? 0 : -ENOMEM;
        }
    }
    *ret = strdup("no such variable");
    return *ret ? 0 : -ENOMEM;
}

static int found_for(const PolicyMatch *match, const PolicySubject *subject, const ConfKey *key, char **ret)
{
    const char *text;
    char buf[64];

    switch (key_kind(key)) {
    case KEY_BYTES:
        *ret = strdup(human_bytes(subject->memory_bytes, buf, sizeof(buf)));
        break;
    case KEY_PERMILLE:
        *ret = strdup("not measured by this command");
        break;
    case KEY_NUMBER:
        *ret = format_text("%" PRIu32, subject->n_threads);
        break;
    default:
        text = found_text(subject, key->offset);
        if (subject->environment && key->offset == offsetof(PolicyMatch, environment))
            return found_environment(&match->environment, subject, ret);
        if (!text && key->offset == offsetof(PolicyMatch, user))
            *ret = format_text("%u, whose name is not known", (unsigned)subject->uid);
        else
            *ret = strdup(text ? text : "not known");
        break;
    }
    return *ret ? 0 : -ENOMEM;
}

static size_t field_size(const ConfKey *key)
{
    switch (key_kind(key)) {
    case KEY_PATTERNS:
        return sizeof(PolicyPatterns);
    case KEY_BYTES:
        return sizeof(uint64_t);
    default:
        return sizeof(uint32_t);
    }
}

/* The verdict on one key of a section alone. */
static PolicyVerdict key_verdict(const PolicyMatch *match, const ConfKey *key, const PolicySubject *subject)
{
    PolicyMatch alone = {0};
    const Policy policy = {.matches = &alone, .n_matches = 1};
    size_t section;

    memcpy((char *)&alone + key->offset, (const char *)match + key->offset, field_size(key));
    return policy_match_one(&policy, subject, &section);
}

/* Adds every key of a section whose verdict is not yes. */
static int add_failed(json_object *list, const PolicyMatch *match, const PolicySubject *subject)
{
    for (size_t i = 0; i < policy_n_match_keys; i++) {
        CLEANUP_FREE char *wanted = NULL, *found = NULL;
        const ConfKey *key = &policy_keys[i];
        json_object *object;
        int r = wanted_text(match, key, &wanted);

        if (r < 0)
            return r;
        if (r == 0 || key_verdict(match, key, subject) == POLICY_VERDICT_YES)
            continue;
        if (found_for(match, subject, key, &found) < 0)
            return -ENOMEM;
        object = json_add_object(list, NULL);
        if (json_set_text(object, "key", key->name) < 0 || json_set_text(object, "wanted", wanted) < 0 ||
            json_set_foreign(object, "found", found) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int add_section(json_object *list, const Policy *policy, const PolicyMatch *match,
                       const PolicySubject *subject)
{
    const Policy one = {.matches = (PolicyMatch *)match, .n_matches = 1};
    json_object *object = json_add_object(list, NULL), *failed;
    size_t section;

    if (json_set_text(object, "file", policy->files[match->file]) < 0 ||
        json_set_number(object, "line", match->line) < 0 ||
        json_set_text(object, "verdict", verdict_names[policy_match_one(&one, subject, &section)]) < 0 ||
        !(failed = json_add_array(object, "failed")))
        return -ENOMEM;
    return add_failed(failed, match, subject);
}

static int add_policy(json_object *list, const Policy *policy, const PolicySubject *subject)
{
    json_object *object = json_add_object(list, NULL), *sections;
    size_t section;
    PolicyVerdict verdict = policy_match_one(policy, subject, &section);

    if (json_set_text(object, "name", policy->name) < 0 ||
        json_set_text(object, "verdict", verdict_names[verdict]) < 0 ||
        json_set_number(object, "section", section == SIZE_MAX ? 0 : section + 1) < 0 ||
        !(sections = json_add_array(object, "sections")))
        return -ENOMEM;
    for (size_t i = 0; i < policy->n_matches; i++)
        if (add_section(sections, policy, &policy->matches[i], subject) < 0)
            return -ENOMEM;
    return 0;
}

static int set_subject(json_object *object, const PolicySubject *subject, pid_t pid)
{
    if (json_set_number(object, "pid", (uint64_t)pid) < 0 ||
        json_set_foreign(object, "comm", subject->comm) < 0 ||
        json_set_foreign(object, "exe", subject->exe) < 0 ||
        json_set_foreign(object, "command_line", subject->command_line) < 0 ||
        json_set_foreign(object, "unit", subject->unit) < 0 ||
        json_set_foreign(object, "slice", subject->slice) < 0 ||
        json_set_foreign(object, "cgroup", subject->cgroup) < 0 ||
        json_set_number(object, "uid", subject->uid) < 0 ||
        json_set_foreign(object, "user", subject->user) < 0 ||
        json_set_number(object, "memory_bytes", subject->memory_bytes) < 0 ||
        json_set_number(object, "threads", subject->n_threads) < 0)
        return -ENOMEM;
    return 0;
}

int match_report(const PolicySet *set, const PolicySubject *subject, pid_t pid, json_object **ret)
{
    CLEANUP_JSON json_object *object = json_object_new_object();
    json_object *policies;
    size_t index;

    (void)policy_match(set, subject, &index);
    if (set_subject(object, subject, pid) < 0 ||
        json_set_text(object, "policy", index == SIZE_MAX ? NULL : set->policies[index]->name) < 0 ||
        json_set_text(object, "mode",
                      index == SIZE_MAX ? NULL : policy_mode_names[set->policies[index]->mode]) < 0 ||
        !(policies = json_add_array(object, "policies")))
        return -ENOMEM;
    for (size_t i = 0; i < set->n_policies; i++)
        if (add_policy(policies, set->policies[i], subject) < 0)
            return -ENOMEM;
    *ret = TAKE_PTR(object);
    return 0;
}

/* "    10-db.policy:3: Comm=postgres, but it is java" */
static void print_section(json_object *section)
{
    json_object *failed = view_list(section, "failed");
    const char *file = view_string(section, "file"), *slash = strrchr(file, '/');

    view_say(NULL, "    %s:%" PRId64 ": ", slash ? slash + 1 : file, view_number(section, "line", 0));
    for (size_t i = 0; i < view_length(failed); i++) {
        json_object *key = json_object_array_get_idx(failed, i);

        view_say(NULL, "%s%s=%s, but it is %s", i > 0 ? "; " : "", view_string(key, "key"),
                 view_string(key, "wanted"), view_string(key, "found"));
    }
    (void)putchar('\n');
}

/* `hidden_by` is an earlier policy that decided, or NULL. */
static void print_match(json_object *policy, const char *hidden_by)
{
    json_object *sections = view_list(policy, "sections");
    json_object *by = json_object_array_get_idx(sections, (size_t)view_number(policy, "section", 1) - 1);

    view_say(NULL, "matches by [Match] in line %" PRId64 " of %s", view_number(by, "line", 0),
             view_string(by, "file"));
    if (hidden_by)
        view_say(NULL, ", but %s comes first", hidden_by);
    (void)putchar('\n');
}

static void print_policy(const CtlOptions *options, json_object *policy, const char *hidden_by)
{
    json_object *sections = view_list(policy, "sections");
    const char *verdict = view_string(policy, "verdict");
    bool yes = !strcmp(verdict, verdict_names[POLICY_VERDICT_YES]);
    bool later = !strcmp(verdict, verdict_names[POLICY_VERDICT_LATER]);

    view_say(options->colour ? (yes && !hidden_by ? STYLE_GOOD : STYLE_DIM) : NULL, "  %s",
             view_string(policy, "name"));
    (void)fputs(": ", stdout);
    if (yes) {
        print_match(policy, hidden_by);
        return;
    }
    (void)puts(later                        ? "not now, but it may when it has grown"
               : view_length(sections) == 0 ? "no: it has no [Match] section that matches anything"
                                            : "no");
    for (size_t i = 0; i < view_length(sections); i++)
        print_section(json_object_array_get_idx(sections, i));
}

/* Prints the policies before `winner` that may match once the process has grown. */
static void print_later(json_object *policies, const char *winner)
{
    const char *before = " now, and perhaps under ";

    for (size_t i = 0; i < view_length(policies); i++) {
        json_object *policy = json_object_array_get_idx(policies, i);

        if (!strcmp(view_string(policy, "name"), winner))
            break;
        if (strcmp(view_string(policy, "verdict"), verdict_names[POLICY_VERDICT_LATER]) != 0)
            continue;
        view_say(NULL, "%s%s", before, view_string(policy, "name"));
        before = ", ";
    }
    if (!strcmp(before, ", "))
        (void)fputs(" when it has grown", stdout);
}

static void print_verdict(const CtlOptions *options, json_object *report)
{
    const char *policy = view_string(report, "policy");
    int64_t pid = view_number(report, "pid", 0);

    view_say(options->colour ? STYLE_BOLD : NULL, "%s", view_string(report, "comm"));
    if (pid > 0)
        (void)printf("[%" PRId64 "]", pid);
    if (*policy)
        view_say(NULL, " falls under %s (Mode=%s)", policy, view_string(report, "mode"));
    else
        (void)fputs(" falls under no policy", stdout);
    print_later(view_list(report, "policies"), policy);
    (void)putchar('\n');
}

CtlExit match_report_print(const CtlOptions *options, json_object *report)
{
    json_object *policies = view_list(report, "policies");
    const char *winner = view_string(report, "policy");
    bool decided = false;

    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, report);
    print_verdict(options, report);
    for (size_t i = 0; i < view_length(policies); i++) {
        json_object *policy = json_object_array_get_idx(policies, i);

        print_policy(options, policy, decided ? winner : NULL);
        decided = decided || !strcmp(view_string(policy, "name"), winner);
    }
    return CTL_EXIT_OK;
}
