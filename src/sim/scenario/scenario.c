/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads scenarios. The file is read into a draft, section by section. Only if all of it is well formed is the draft
 * resolved against the machine (resolve.c). So one mistake gives one message, and sections may come in any order,
 * except that [Kernel] must come before the variants, which start from it.
 *
 * A policy may contain unknown keys, because an older version should load the file of a newer one. In a scenario they
 * are errors: a scenario is a test, and one that passes because half of it was not read is worse than none. */

#include "sim/scenario/draft.h"

#include "policy/validate.h"

#include <stdio.h>
#include <string.h>

typedef enum SectionKind {
    SECTION_SCENARIO,
    SECTION_MACHINE,
    SECTION_KERNEL,
    SECTION_WORKLOAD,
    SECTION_POLICY,
    SECTION_VARIANT,
    SECTION_EXPECT,
    SECTION_MAX,
} SectionKind;

static const struct {
    const char *name;
    bool argument; /* "[Workload NAME]" */
    bool once;
} section_rows[] = {
    [SECTION_SCENARIO] = {"Scenario", false, true}, [SECTION_MACHINE] = {"Machine", false, true},
    [SECTION_KERNEL] = {"Kernel", false, true},     [SECTION_WORKLOAD] = {"Workload", true, false},
    [SECTION_POLICY] = {"Policy", true, false},     [SECTION_VARIANT] = {"Variant", true, false},
    [SECTION_EXPECT] = {"Expect", false, false},
};

#define SECTIONS_EXPECTED \
    "[Scenario], [Machine], [Kernel], [Workload NAME], [Policy NAME SECTION], [Variant NAME] or [Expect]"

typedef struct Reader {
    ScenarioDraft draft;
    SectionKind kind; /* SECTION_MAX: skipped, after an error */
    unsigned once[SECTION_MAX];
    uint64_t set; /* keys given in this section: a bit per row of the table */
    size_t policy;
    const char *policy_section; /* of [Policy NAME SECTION] */
    SimOver over;
} Reader;

static const ConfKey *section_keys(const char *section, size_t *ret_n)
{
    const ConfKey *first = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < sim_scenario_n_keys; i++)
        if (!strcmp(sim_scenario_keys[i].section, section)) {
            first = first ? first : &sim_scenario_keys[i];
            (*ret_n)++;
        }
    return first;
}

static int section_defaults(const char *section, void *object)
{
    size_t n;
    const ConfKey *keys = section_keys(section, &n);

    return conf_table_defaults(keys, n, object);
}

static int bad_name(ScenarioDraft *d, unsigned line, const char *what, const char *name)
{
    return DRAFT_REFUSE(
        d, line,
        "expected a name of 1 to %u letters, digits and .-_@:+, starting with a letter or digit, for a %s, "
        "not: %s",
        SIM_NAME_MAX, what, name);
}

static int limit_passed(ScenarioDraft *d, unsigned line, const char *what, unsigned limit)
{
    return DRAFT_REFUSE(d, line, "expected at most %u %s", limit, what);
}

static int named_already(ScenarioDraft *d, unsigned line, const char *what, unsigned before, const char *name)
{
    return DRAFT_REFUSE(d, line, "expected a new name: the %s in line %u already has this one: %s", what,
                        before, name);
}

static int begin_workload(Reader *r, const char *name, unsigned line)
{
    ScenarioDraft *d = &r->draft;
    WorkloadDraft *w;

    if (!policy_name_valid(name))
        return bad_name(d, line, "workload", name);
    for (size_t i = 0; i < d->n_workloads; i++)
        if (!strcmp(d->workloads[i].value.name, name))
            return named_already(d, line, "workload", d->workloads[i].line, name);
    if (d->n_workloads == SIM_WORKLOADS_MAX)
        return limit_passed(d, line, "workloads", SIM_WORKLOADS_MAX);
    if (!GROW(d->workloads, d->workloads_capacity, d->n_workloads + 1))
        return -ENOMEM;
    w = &d->workloads[d->n_workloads++];
    *w = (WorkloadDraft){.line = line};
    r->kind = SECTION_WORKLOAD;
    w->value.name = strdup(name);
    return w->value.name ? section_defaults("Workload", w) : -ENOMEM;
}

static int begin_variant(Reader *r, const char *name, unsigned line)
{
    ScenarioDraft *d = &r->draft;
    VariantDraft *v;

    if (!policy_name_valid(name))
        return bad_name(d, line, "variant", name);
    for (size_t i = 0; i < d->n_variants; i++)
        if (!strcmp(d->variants[i].name, name))
            return named_already(d, line, "variant", d->variants[i].line, name);
    if (d->n_variants == SIM_VARIANTS_MAX)
        return limit_passed(d, line, "variants", SIM_VARIANTS_MAX);
    if (!GROW(d->variants, d->variants_capacity, d->n_variants + 1))
        return -ENOMEM;
    v = &d->variants[d->n_variants++];
    *v = (VariantDraft){.kernel = d->kernel, .line = line};
    r->kind = SECTION_VARIANT;
    v->name = strdup(name);
    return v->name ? section_defaults("Variant", v) : -ENOMEM;
}

static int add_policy(ScenarioDraft *d, const char *name, unsigned line)
{
    PolicyDraft *p;

    if (!GROW(d->policies, d->policies_capacity, d->n_policies + 1))
        return -ENOMEM;
    p = &d->policies[d->n_policies++];
    *p = (PolicyDraft){.line = line};
    p->name = strdup(name);
    return p->name ? 0 : -ENOMEM;
}

static int add_policy_line(Reader *r, char *text, unsigned line)
{
    PolicyDraft *p = &r->draft.policies[r->policy];

    if (!text)
        return -ENOMEM;
    if (!GROW(p->lines, p->capacity, p->n_lines + 1)) {
        free(text);
        return -ENOMEM;
    }
    p->lines[p->n_lines++] = (PolicyLine){.text = text, .line = line};
    return 0;
}

/* The section of policy files with this name, or NULL. */
static const char *find_policy_section(const char *name)
{
    for (size_t i = 0; i < policy_n_keys; i++)
        if (!strcmp(policy_keys[i].section, name))
            return policy_keys[i].section;
    return NULL;
}

/* "[Policy NAME SECTION]": SECTION is one of policy files. */
static int begin_policy(Reader *r, const char *argument, unsigned line)
{
    size_t n = strcspn(argument, " \t");
    const char *section = argument + n + strspn(argument + n, " \t");
    CLEANUP_FREE char *name = strndup(argument, n);
    ScenarioDraft *d = &r->draft;
    char *text = NULL;
    int k;

    if (!name)
        return -ENOMEM;
    if (!policy_name_valid(name) || !strcmp(name, "none"))
        return bad_name(d, line, "policy (other than none)", name);
    r->policy_section = find_policy_section(section);
    if (!r->policy_section)
        return DRAFT_REFUSE(
            d, line, "expected the name of a policy and one of its sections, such as [Policy %s Match]",
            name);
    for (r->policy = 0; r->policy < d->n_policies; r->policy++)
        if (!strcmp(d->policies[r->policy].name, name))
            break;
    if (r->policy == SIM_POLICIES_MAX)
        return limit_passed(d, line, "policies", SIM_POLICIES_MAX);
    k = r->policy == d->n_policies ? add_policy(d, name, line) : 0;
    if (k < 0)
        return k;
    r->kind = SECTION_POLICY;
    return asprintf(&text, "[%s]\n", section) < 0 ? -ENOMEM : add_policy_line(r, text, line);
}

/* "[Expect]", "[Expect every]" or "[Expect median]". */
static int begin_expect(Reader *r, const char *argument, unsigned line)
{
    if (*argument && strcmp(argument, "every") != 0 && strcmp(argument, "median") != 0)
        return DRAFT_REFUSE(&r->draft, line, "expected [Expect], [Expect every] or [Expect median], not: %s",
                            argument);
    r->over = !strcmp(argument, "median") ? SIM_OVER_MEDIAN : SIM_OVER_EVERY;
    r->kind = SECTION_EXPECT;
    return 0;
}

static int begin_single(Reader *r, SectionKind kind, unsigned line)
{
    ScenarioDraft *d = &r->draft;

    if (kind == SECTION_MACHINE)
        d->machine.line = line;
    if (kind == SECTION_KERNEL && d->n_variants > 0)
        return DRAFT_REFUSE(d, line, "expected [Kernel] before the first variant, which starts from it");
    r->kind = kind;
    return 0;
}

static SectionKind section_kind(const char *section, const char **ret_argument)
{
    for (SectionKind k = 0; k < SECTION_MAX; k++) {
        size_t n = strlen(section_rows[k].name);

        if (strncmp(section, section_rows[k].name, n) != 0 || (section[n] && !strchr(" \t", section[n])))
            continue;
        *ret_argument = section + n + strspn(section + n, " \t");
        return k;
    }
    return SECTION_MAX;
}

static int on_section(void *userdata, const char *section, const char *file, unsigned line,
                      ConfReport *report)
{
    Reader *r = userdata;
    const char *argument = "";
    SectionKind kind = section_kind(section, &argument);

    r->kind = SECTION_MAX;
    r->set = 0;
    if (kind == SECTION_MAX || (section_rows[kind].once && *argument))
        return DRAFT_REFUSE(&r->draft, line, "expected " SECTIONS_EXPECTED ", not: [%s]", section);
    if (section_rows[kind].once && r->once[kind])
        return DRAFT_REFUSE(&r->draft, line, "expected [%s] only once; line %u already has it", section,
                            r->once[kind]);
    r->once[kind] = line;
    switch (kind) {
    case SECTION_WORKLOAD:
        return begin_workload(r, argument, line);
    case SECTION_POLICY:
        return begin_policy(r, argument, line);
    case SECTION_VARIANT:
        return begin_variant(r, argument, line);
    case SECTION_EXPECT:
        return begin_expect(r, argument, line);
    default:
        return begin_single(r, kind, line);
    }
}

/* The row of a key and the object it sets; NULL if there is none. */
static const ConfKey *find_key(Reader *r, const char *name, void **ret_object)
{
    ScenarioDraft *d = &r->draft;
    const char *section = section_rows[r->kind].name;
    const ConfKey *key = conf_table_find(sim_scenario_keys, sim_scenario_n_keys, section, name);

    switch (r->kind) {
    case SECTION_SCENARIO:
        *ret_object = d->spec;
        break;
    case SECTION_MACHINE:
        *ret_object = &d->machine;
        break;
    case SECTION_KERNEL:
        *ret_object = &d->kernel;
        break;
    case SECTION_WORKLOAD:
        *ret_object = &d->workloads[d->n_workloads - 1];
        break;
    default:
        *ret_object = &d->variants[d->n_variants - 1];
        if (!key) {
            key = conf_table_find(sim_scenario_keys, sim_scenario_n_keys, "Kernel", name);
            *ret_object = &d->variants[d->n_variants - 1].kernel;
        }
        break;
    }
    return key;
}

static int read_key(Reader *r, const char *name, const char *value, unsigned line)
{
    ScenarioDraft *d = &r->draft;
    void *object;
    const ConfKey *key = find_key(r, name, &object);
    uint64_t bit;
    int k;

    if (!key)
        return DRAFT_REFUSE(d, line, "expected a key of [%s], see numaplace.scenario(5), not: %s=",
                            section_rows[r->kind].name, name);
    bit = 1ULL << (key - sim_scenario_keys);
    if (r->set & bit)
        return DRAFT_REFUSE(d, line, "expected %s= only once in this section", name);
    r->set |= bit;
    if (r->kind == SECTION_WORKLOAD)
        d->workloads[d->n_workloads - 1].set = r->set;
    k = conf_table_apply(key, 1, object, key->section, name, value, d->file, line, d->report);
    return k == -ENOMEM ? k : 0;
}

static int add_expect(Reader *r, const char *name, const char *value, unsigned line)
{
    ScenarioDraft *d = &r->draft;
    ExpectDraft *e;

    if (d->n_expects == SIM_EXPECTS_MAX)
        return limit_passed(d, line, "expectations", SIM_EXPECTS_MAX);
    if (!GROW(d->expects, d->expects_capacity, d->n_expects + 1))
        return -ENOMEM;
    e = &d->expects[d->n_expects++];
    *e = (ExpectDraft){.key = strdup(name), .value = strdup(value), .over = r->over, .line = line};
    return e->key && e->value ? 0 : -ENOMEM;
}

/* A key of the last section. Keys of [Match] may repeat; unknown ones are found when the policy is parsed. */
static int read_policy_key(Reader *r, const char *name, const char *value, unsigned line)
{
    PolicyDraft *p = &r->draft.policies[r->policy];
    const ConfKey *key = conf_table_find(policy_keys, policy_n_keys, r->policy_section, name);
    char *text = NULL;

    if (key && key >= policy_keys + policy_n_match_keys) {
        uint64_t bit = 1ULL << (key - policy_keys - policy_n_match_keys);

        if (p->set & bit)
            return DRAFT_REFUSE(&r->draft, line, "expected %s= only once in policy %s", name, p->name);
        p->set |= bit;
    }
    return asprintf(&text, "%s=%s\n", name, value) < 0 ? -ENOMEM : add_policy_line(r, text, line);
}

static int on_entry(void *userdata, const char *section, const char *name, const char *value,
                    const char *file, unsigned line, ConfReport *report)
{
    Reader *r = userdata;

    if (r->kind == SECTION_MAX)
        return 0;
    if (r->kind == SECTION_EXPECT)
        return add_expect(r, name, value, line);
    if (r->kind == SECTION_POLICY)
        return read_policy_key(r, name, value, line);
    return read_key(r, name, value, line);
}

static const ConfHandler handler = {.example = "Machine", .section = on_section, .entry = on_entry};

void scenario_draft_done(ScenarioDraft *d)
{
    for (size_t i = 0; i < d->n_workloads; i++) {
        sim_workload_done(&d->workloads[i].value);
        hwloc_bitmap_free(d->workloads[i].nodes);
        hwloc_bitmap_free(d->workloads[i].start_nodes);
    }
    for (size_t i = 0; i < d->n_policies; i++) {
        for (size_t k = 0; k < d->policies[i].n_lines; k++)
            free(d->policies[i].lines[k].text);
        free(d->policies[i].lines);
        free(d->policies[i].name);
    }
    for (size_t i = 0; i < d->n_variants; i++) {
        free(d->variants[i].name);
        free(d->variants[i].policies);
        free(d->variants[i].off);
        free(d->variants[i].workloads);
    }
    for (size_t i = 0; i < d->n_expects; i++) {
        free(d->expects[i].key);
        free(d->expects[i].value);
    }
    free(d->workloads);
    free(d->policies);
    free(d->variants);
    free(d->expects);
    free(d->machine.preset);
    free(d->machine.xml);
    free(d->machine.synthetic);
    (void)sim_spec_free(d->spec);
    *d = (ScenarioDraft){0};
}

static int reader_init(Reader *r, const char *name, const char *file, const char *directory,
                       ConfReport *report)
{
    ScenarioDraft *d = &r->draft;
    int k;

    *r = (Reader){
        .draft = {.file = file, .directory = directory, .report = report},
        .kind = SECTION_MAX,
    };
    d->spec = calloc(1, sizeof(*d->spec));
    if (!d->spec)
        return -ENOMEM;
    d->spec->name = strdup(name);
    d->machine.model = sim_model_default;
    k = d->spec->name ? section_defaults("Scenario", d->spec) : -ENOMEM;
    if (k == 0)
        k = section_defaults("Machine", &d->machine);
    return k == 0 ? section_defaults("Kernel", &d->kernel) : k;
}

/* Ends reading: `r` is the result of parsing, `n_errors` the number of errors before it. Frees the draft. */
static int finish(Reader *reader, int r, size_t n_errors, const char *const *policy_dirs, SimSpec **ret)
{
    ScenarioDraft *d = &reader->draft;

    if (r == 0)
        r = scenario_resolve(d, policy_dirs);
    if (r == 0 && d->report->n_errors > n_errors)
        r = -EBADMSG;
    if (r == 0)
        *ret = TAKE_PTR(d->spec);
    scenario_draft_done(d);
    return r;
}

int sim_scenario_parse(const char *name, const char *text, size_t len, const char *file,
                       const char *directory, SimSpec **ret, ConfReport *report)
{
    size_t n_errors = report->n_errors;
    Reader reader;
    int r = reader_init(&reader, name, file, directory, report);

    if (r == 0)
        r = conf_parse(text ? text : "", len, file, &handler, &reader, report);
    return finish(&reader, r, n_errors, NULL, ret);
}

/* Splits "DIRECTORY/NAME.scenario". */
static int split_path(const char *path, char **ret_directory, char **ret_name)
{
    static const char suffix[] = ".scenario";
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base);

    if (has_suffix(base, n, suffix))
        n -= strlen(suffix);
    *ret_directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    *ret_name = strndup(base, n);
    return *ret_directory && *ret_name ? 0 : -ENOMEM;
}

int sim_scenario_load(const char *path, const char *const *policy_dirs, SimSpec **ret, ConfReport *report)
{
    CLEANUP_FREE char *directory = NULL, *name = NULL;
    size_t n_errors = report->n_errors;
    Reader reader;
    int r = split_path(path, &directory, &name);

    if (r < 0)
        return r;
    r = reader_init(&reader, name, path, directory, report);
    if (r == 0)
        r = conf_parse_file(path, &handler, &reader, report);
    return finish(&reader, r, n_errors, policy_dirs, ret);
}
