/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rules between keys. Each error is at the line of the key that is most likely wrong. Faults that only a later change
 * of the machine can cause (a node going offline) are not checked here: plan/ refuses the action when they occur. */

#include "policy/validate.h"

#include "base/parse.h"
#include "policy/pattern.h"

#include <ctype.h>
#include <string.h>

/* TASK_COMM_LEN without its NUL. */
#define COMM_MAX 15

bool policy_name_valid(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > POLICY_NAME_MAX || !isalnum((unsigned char)name[0]) || !isascii(name[0]))
        return false;
    for (; *name; name++)
        if (!isascii(*name) || (!isalnum((unsigned char)*name) && !strchr(".-_@:+", *name)))
            return false;
    return true;
}

/* The file and line that set a key; for a default the file as a whole. */
static void find_place(const Policy *policy, const char *section, const char *name, const char **ret_file,
                       unsigned *ret_line)
{
    const PolicySetting *setting = policy_setting_find(policy, section, name);

    *ret_file = setting ? policy->files[setting->file] : policy->path;
    *ret_line = setting ? setting->line : 0;
}

#define FAIL(policy, report, section, name, ...)                                 \
    do {                                                                         \
        const char *_file;                                                       \
        unsigned _line;                                                          \
        find_place(policy, section, name, &_file, &_line);                       \
        conf_report_add(report, CONF_SEVERITY_ERROR, _file, _line, __VA_ARGS__); \
    } while (0)

/* Reports the nodes in `bad`, if any. */
static int fail_nodes(const Policy *policy, hwloc_const_bitmap_t bad, const char *what, ConfReport *report)
{
    CLEANUP_FREE char *list = NULL;

    if (hwloc_bitmap_iszero(bad))
        return 0;
    list = format_list(bad, POLICY_NODES_MAX);
    if (!list)
        return -ENOMEM;
    FAIL(policy, report, "Placement", "Nodes", "Nodes= names nodes %s: %s", what, list);
    return 0;
}

static int check_nodes_exist(const Policy *policy, const Topology *topology, ConfReport *report)
{
    CLEANUP_BITMAP hwloc_bitmap_t missing = hwloc_bitmap_alloc(), without_cpus = hwloc_bitmap_alloc();
    int r = missing && without_cpus ? 0 : -ENOMEM;

    for (int os = hwloc_bitmap_first(policy->nodes); r == 0 && os >= 0;
         os = hwloc_bitmap_next(policy->nodes, os)) {
        NodeIx node = topology_node_by_os(topology, (uint32_t)os);

        if (node.i < 0)
            r = hwloc_bitmap_set(missing, (unsigned)os);
        else if (topology->nodes[node.i].n_cpus == 0)
            r = hwloc_bitmap_set(without_cpus, (unsigned)os);
        r = r < 0 ? -ENOMEM : 0;
    }
    if (r == 0)
        r = fail_nodes(policy, missing, "this machine does not have", report);
    /* Tasks run in a home. A strict rule can be relaxed later; a later restriction would break files. */
    if (r == 0 && policy->mode == POLICY_MODE_FIXED)
        r = fail_nodes(policy, without_cpus, "without CPUs, which Mode=fixed cannot use", report);
    return r;
}

static void check_placement(const Policy *policy, ConfReport *report)
{
    int n_nodes = policy->nodes ? hwloc_bitmap_weight(policy->nodes) : 0;

    if (policy->mode != POLICY_MODE_FIXED)
        return;
    if (n_nodes == 0)
        FAIL(policy, report, "Placement", "Mode", "Mode=fixed needs Nodes=");
    else if (policy->max_nodes > 0 && (uint32_t)n_nodes > policy->max_nodes)
        FAIL(policy, report, "Placement", "MaxNodes",
             "MaxNodes=%u is less than the %d nodes of Nodes=", policy->max_nodes, n_nodes);
}

static void check_numbers(const Policy *policy, ConfReport *report)
{
    if (policy->scan_min_usec > policy->scan_max_usec)
        FAIL(policy, report, "Memory",
             policy_setting_find(policy, "Memory", "ScanMinSec") ? "ScanMinSec" : "ScanMaxSec",
             "ScanMinSec= must not be longer than ScanMaxSec=");
}

static const char *sign_of(const PolicyPattern *value)
{
    return value->negate ? "!" : "";
}

/* A name longer than the kernel keeps is the usual reason why a policy never matches. */
static bool is_cut(const char *glob)
{
    return strlen(glob) > COMM_MAX && !strpbrk(glob, "*?[\\");
}

/* Paths begin with a slash, so a glob that begins with another plain character matches none. */
static bool is_no_path(const char *glob)
{
    return *glob == '\\' ? glob[1] != '/' : *glob != '/' && !strchr("*?[", *glob);
}

/* The whole name must match, whereas systemctl(1) completes "shop" to shop.service. A name in .slice is not a
 * unit that contains processes but a slice above it. */
static bool is_no_unit(const char *glob)
{
    return has_suffix(glob, strlen(glob), ".slice") || !strpbrk(glob, ".*?[\\");
}

static bool is_no_slice(const char *glob)
{
    return !has_suffix(glob, strlen(glob), ".slice") && !strpbrk(glob, "*?[\\");
}

/* Warns about globs that match nothing, and says why. */
static void check_use(const Policy *policy, const PolicyMatch *match, const char *name,
                      bool (*is_useless)(const char *glob), const char *why, ConfReport *report)
{
    const ConfKey *key = conf_table_find(policy_keys, policy_n_match_keys, "Match", name);
    const PolicyPatterns *patterns = (const void *)((const char *)match + key->offset);

    for (size_t i = 0; i < patterns->n_values; i++) {
        const PolicyPattern *value = &patterns->values[i];

        if (is_useless(value->glob))
            conf_report_add(report, CONF_SEVERITY_WARNING, policy->files[match->file], value->line,
                            "%s, so this %s= %s: %s%s", why, name,
                            value->negate ? "rules nothing out" : "matches nothing", sign_of(value),
                            value->glob);
    }
}

/* Whether a [ has no ]: fnmatch() then takes it literally. */
static bool has_open_bracket(const char *glob)
{
    for (bool set = false;; glob++) {
        if (!*glob)
            return set;
        if (*glob == '\\' && glob[1])
            glob++;
        else if (set && *glob == ']')
            set = false;
        else if (!set && *glob == '[') {
            set = true;
            glob += glob[1] == '!' || glob[1] == '^';
            glob += glob[1] == ']'; /* a ] directly after it belongs to the set */
        }
    }
}

static void check_brackets(const Policy *policy, const PolicyMatch *match, const ConfKey *key,
                           ConfReport *report)
{
    const PolicyPatterns *patterns = (const void *)((const char *)match + key->offset);

    for (size_t i = 0; key->parse == policy_patterns_parse && i < patterns->n_values; i++)
        if (has_open_bracket(patterns->values[i].glob))
            conf_report_add(report, CONF_SEVERITY_WARNING, policy->files[match->file],
                            patterns->values[i].line,
                            "a [ without ] matches itself only (if that is meant, write \\[) in %s=: %s%s",
                            key->name, sign_of(&patterns->values[i]), patterns->values[i].glob);
}

int policy_validate(const Policy *policy, const Topology *topology, ConfReport *report)
{
    for (size_t i = 0; i < policy->n_matches; i++) {
        const PolicyMatch *match = &policy->matches[i];

        check_use(policy, match, "Comm", is_cut, "the kernel keeps 15 bytes of a name", report);
        check_use(policy, match, "Cgroup", is_no_path, "paths begin with a slash", report);
        check_use(policy, match, "Exe", is_no_path, "paths begin with a slash", report);
        check_use(policy, match, "Unit", is_no_unit,
                  "units end in .service or .scope, and slices are for Slice=", report);
        check_use(policy, match, "Slice", is_no_slice, "slices end in .slice", report);
        for (size_t k = 0; k < policy_n_match_keys; k++)
            check_brackets(policy, match, &policy_keys[k], report);
    }
    check_numbers(policy, report);
    check_placement(policy, report);
    if (topology && policy->nodes)
        return check_nodes_exist(policy, topology, report);
    return 0;
}
