/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loading policies. All files are parsed into a fresh Policy: the main file, then its drop-ins, whose keys
 * replace earlier ones and whose [Match] sections add to them. Keys are checked against each other only if
 * there was no error before, so that one mistake gives one message.
 *
 * Ignoring an unknown key in [Match] would widen the match: with a mistyped `Usr=postgres` ignored, the rest
 * may match every process. So a section with an unknown key, or with no key at all, is dropped and matches
 * nothing. `Comm=*` matches everything. */

#include "conf/search.h"
#include "policy/pattern.h"
#include "policy/policy.h"
#include "policy/validate.h"

#include <string.h>

#define SUFFIX ".policy"

#define MATCH_KEYS_MAX 16U

typedef struct Loader {
    Policy *policy;
    bool constants;    /* also sets constants, which files may not set */
    bool skip_section; /* in an unknown section */
    bool in_match;
    bool match_many;                      /* more sections than a policy may have; reported */
    bool match_unknown;                   /* the section has an unknown key */
    bool match_bad;                       /* ... or a bad value; reported */
    PolicyMatch match;                    /* being read */
    unsigned match_lines[MATCH_KEYS_MAX]; /* lines of its keys that are not globs; 0: not set yet */
} Loader;

/* Ends the [Match] section being read, if there is one. */
static int loader_close_match(Loader *l, ConfReport *report)
{
    Policy *p = l->policy;
    const char *file = p->files[l->match.file];

    if (!l->in_match)
        return 0;
    l->in_match = false;
    if (l->match_bad) {
        /* The file is invalid: no more to report about the section. */
    } else if (l->match_unknown) {
        conf_report_add(report, CONF_SEVERITY_WARNING, file, l->match.line,
                        "[Match] section with an unknown key matches nothing");
    } else if (policy_match_empty(&l->match)) {
        conf_report_add(report, CONF_SEVERITY_WARNING, file, l->match.line,
                        "[Match] section without a condition matches nothing; Comm=* matches everything");
    } else if (p->n_matches >= POLICY_MATCHES_MAX) {
        if (!l->match_many)
            conf_report_add(report, CONF_SEVERITY_ERROR, file, l->match.line, "more than %u [Match] sections",
                            POLICY_MATCHES_MAX);
        l->match_many = true;
    } else {
        if (APPEND(p->matches, p->matches_capacity, p->n_matches, l->match) < 0)
            return -ENOMEM;
        l->match = (PolicyMatch){0};
    }
    policy_match_done(&l->match);
    return 0;
}

static void warn_section(const char *section, const char *file, unsigned line, ConfReport *report)
{
    const char *near = conf_table_near_section(policy_keys, policy_n_keys, section);

    if (near)
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line,
                        "ignoring unknown section (is [%s] meant?): [%s]", near, section);
    else
        conf_report_add(report, CONF_SEVERITY_WARNING, file, line, "ignoring unknown section: [%s]", section);
}

static int on_section(void *userdata, const char *section, const char *file, unsigned line,
                      ConfReport *report)
{
    Loader *l = userdata;
    int r = loader_close_match(l, report);

    assert(policy_n_match_keys <= MATCH_KEYS_MAX);
    if (r < 0)
        return r;
    l->skip_section = !conf_table_has_section(policy_keys, policy_n_keys, section);
    if (l->skip_section)
        warn_section(section, file, line, report);
    l->in_match = strcmp(section, "Match") == 0;
    l->match_unknown = false;
    l->match_bad = false;
    memset(l->match_lines, 0, sizeof(l->match_lines));
    l->match.file = (uint32_t)(l->policy->n_files - 1);
    l->match.line = line;
    return 0;
}

/* Records that `key` was set here, or with `reset` that its default applies again. Keeps the list in key order. */
static int note_setting(Policy *p, uint32_t key, bool reset, unsigned line, ConfReport *report)
{
    uint32_t file = (uint32_t)(p->n_files - 1);
    size_t i = LOWER_BOUND(k, p->n_settings, p->settings[k].key < key);

    if (i < p->n_settings && p->settings[i].key == key) {
        PolicySetting *s = &p->settings[i];

        if (s->file == file)
            conf_table_warn_again(&policy_keys[key], s->line, p->files[file], line, report);
        p->n_settings--;
        memmove(s, s + 1, (p->n_settings - i) * sizeof(*s));
    }
    if (reset)
        return 0;

    if (!INSERT(p->settings, p->settings_capacity, p->n_settings, i))
        return -ENOMEM;
    p->settings[i] = (PolicySetting){.key = key, .file = file, .line = line};
    return 0;
}

static void note_number(Loader *l, const ConfKey *key, const char *file, unsigned line, ConfReport *report)
{
    unsigned *before = &l->match_lines[key - policy_keys];

    conf_table_warn_again(key, *before, file, line, report);
    *before = line;
}

/* The values that the key has just added come last and have no line yet. */
static void note_globs(PolicyMatch *match, const ConfKey *key, unsigned line)
{
    PolicyPatterns *patterns = (void *)((char *)match + key->offset);

    for (size_t i = patterns->n_values; i > 0 && patterns->values[i - 1].line == 0; i--)
        patterns->values[i - 1].line = line;
}

static int on_entry(void *userdata, const char *section, const char *name, const char *value,
                    const char *file, unsigned line, ConfReport *report)
{
    Loader *l = userdata;
    const ConfKey *key;
    int r;

    if (l->skip_section)
        return 0;
    key = conf_table_find(policy_keys, policy_n_keys, section, name);
    if (key && key->fixed && l->constants)
        r = conf_key_apply(key, l->policy, value, file, line, report);
    else
        r = conf_table_apply(policy_keys, policy_n_keys, l->in_match ? (void *)&l->match : (void *)l->policy,
                             section, name, value, file, line, report);
    if (r == -EBADMSG) {
        l->match_bad = true;
        return 0; /* counted in the report */
    }
    if (r < 0)
        return r;
    if (l->in_match) {
        l->match_unknown = l->match_unknown || !key;
        if (key && key->parse == policy_patterns_parse)
            note_globs(&l->match, key, line);
        else if (key)
            note_number(l, key, file, line, report);
        return 0;
    }
    return key && (!key->fixed || l->constants)
               ? note_setting(l->policy, (uint32_t)(key - policy_keys), !*value, line, report)
               : 0;
}

static const ConfHandler handler = {.example = "Match", .section = on_section, .entry = on_entry};

static Policy *policy_new(const char *name)
{
    CLEANUP(policy_free_p) Policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->name = strdup(name);
    if (!policy->name || conf_table_defaults(policy_keys + policy_n_match_keys,
                                             policy_n_keys - policy_n_match_keys, policy) < 0)
        return NULL;
    return TAKE_PTR(policy);
}

static int policy_add_file(Policy *policy, const char *file)
{
    char *copy;

    if (!GROW(policy->files, policy->files_capacity, policy->n_files + 1))
        return -ENOMEM;
    copy = strdup(file);
    if (!copy)
        return -ENOMEM;
    policy->files[policy->n_files++] = copy;
    policy->path = policy->files[0];
    return 0;
}

/* Reads one file on top of the policy: from `text`, or from `file` when `text` is NULL. */
static int read_one(Policy *policy, const char *file, const char *text, size_t len, ConfReport *report)
{
    Loader l = {.policy = policy, .constants = text};
    int r, k;

    r = policy_add_file(policy, file);
    if (r < 0)
        return r;
    r = text ? conf_parse(text, len, file, &handler, &l, report)
             : conf_parse_file(file, &handler, &l, report);
    k = loader_close_match(&l, report);
    policy_match_done(&l.match);
    return k < 0 ? k : r;
}

/* Reads `file` (from `text` if given) and its drop-ins into a new policy, and validates it. */
static int read_policy(const char *name, const ConfFile *file, const char *text, size_t len,
                       const Topology *topology, Policy **ret, ConfReport *report)
{
    CLEANUP(policy_free_p) Policy *policy = NULL;
    size_t n_errors = report->n_errors;
    int r;

    if (!policy_name_valid(name)) {
        conf_report_add(
            report, CONF_SEVERITY_ERROR, file->path, 0,
            "a policy's name is 1 to %u letters, digits and .-_@:+, starting with a letter or digit",
            POLICY_NAME_MAX);
        return -EBADMSG;
    }
    policy = policy_new(name);
    if (!policy)
        return -ENOMEM;

    r = read_one(policy, file->path, text, len, report);
    for (size_t i = 0; r != -ENOMEM && i < file->n_dropins; i++) {
        int k = read_one(policy, file->dropins[i], NULL, 0, report);

        r = k == -ENOMEM ? k : r;
    }
    if (r == 0 && report->n_errors == n_errors)
        r = policy_validate(policy, topology, report);
    if (r == -ENOMEM)
        return r;
    if (report->n_errors > n_errors)
        return -EBADMSG;
    if (policy->cross_node_burst == CONF_AUTO)
        policy->cross_node_burst = POLICY_BURST_SEC * policy->cross_node_moves_per_sec;

    *ret = TAKE_PTR(policy);
    return 0;
}

int policy_parse(const char *name, const char *text, size_t len, const char *file, const Topology *topology,
                 Policy **ret, ConfReport *report)
{
    ConfFile one = {.path = (char *)file};

    return read_policy(name, &one, text ? text : "", len, topology, ret, report);
}

/* The name in "DIRECTORY/NAME.policy". */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);

    if (has_suffix(base, n, SUFFIX))
        n -= strlen(SUFFIX);
    return strndup(base, n);
}

int policy_load(const ConfFile *file, const Topology *topology, Policy **ret, ConfReport *report)
{
    CLEANUP_FREE char *name = name_of(file->path);

    if (!name)
        return -ENOMEM;
    return read_policy(name, file, NULL, 0, topology, ret, report);
}

int policy_load_file(const char *path, const Topology *topology, Policy **ret, ConfReport *report)
{
    ConfFile one = {.path = (char *)path};

    return policy_load(&one, topology, ret, report);
}

int policy_search(const char *const *directories, ConfFiles *ret, ConfReport *report)
{
    int r = conf_search(directories, SUFFIX, ret, report);

    if (r == -ENOMEM || ret->n_files <= POLICY_MAX)
        return r;
    conf_report_add(report, CONF_SEVERITY_ERROR, ret->files[POLICY_MAX].path, 0, "more than %u policies",
                    POLICY_MAX);
    return -E2BIG;
}

static void policies_free(Policy **policies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        policies[i] = policy_free(policies[i]);
    free(policies);
}

int policy_set_load(const char *const *directories, const Topology *topology, PolicySet **ret,
                    ConfReport *report)
{
    CLEANUP(conf_files_done) ConfFiles files = {0};
    size_t n_errors = report->n_errors, n = 0;
    Policy **policies;
    int r = policy_search(directories, &files, report);

    if (r == -ENOMEM || r == -E2BIG)
        return r == -E2BIG ? -EBADMSG : r;
    policies = calloc(files.n_files + 1, sizeof(Policy *));
    if (!policies)
        return -ENOMEM;
    for (size_t i = 0; r != -ENOMEM && i < files.n_files; i++) {
        r = policy_load(&files.files[i], topology, &policies[n], report);
        n += r == 0;
    }
    if (r != -ENOMEM)
        r = report->n_errors > n_errors ? -EBADMSG : policy_set_new(policies, n, ret);
    policies_free(policies, n);
    return r;
}
