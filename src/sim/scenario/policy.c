/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policies of a scenario. An inline policy is reassembled as the text of a policy file and parsed as one;
 * the lines in its messages are then those of the scenario. Each variant parses its policies itself, because
 * a PolicySet owns its policies. Unknown keys, which are a warning in policy files, are errors in an inline
 * policy, as everywhere in a scenario. */

#include "base/parse.h"
#include "sim/scenario/draft.h"

#include <stdio.h>
#include <string.h>

typedef struct Gather {
    ScenarioDraft *draft;
    const VariantDraft *variant;
    Policy *policies[SIM_POLICIES_MAX];
    size_t n;
} Gather;

static int print_lines(FILE *out, const void *object)
{
    const PolicyDraft *p = object;

    for (size_t i = 0; i < p->n_lines; i++)
        (void)fputs(p->lines[i].text, out);
    return 0;
}

/* Strips "ignoring " from the text of a warning, which is an error here. */
static const char *without_ignoring(const char *text)
{
    static const char ignoring[] = "ignoring ";
    size_t n = sizeof(ignoring) - 1;

    return strncmp(text, ignoring, n) == 0 ? text + n : text;
}

/* Reports the messages about an inline policy at the lines of the scenario; once, although each variant parses it. */
static void pass_on(ScenarioDraft *d, PolicyDraft *p, const ConfReport *report)
{
    for (size_t i = 0; i < report->n_messages && !p->reported; i++) {
        const ConfMessage *m = &report->messages[i];

        DRAFT_ERROR(d, m->line > 0 && m->line <= p->n_lines ? p->lines[m->line - 1].line : p->line,
                    "policy %s: %s", p->name, without_ignoring(m->text));
    }
    p->reported = true;
}

static bool is_told(const ConfReport *report, const ConfMessage *message)
{
    for (size_t i = 0; i < report->n_messages; i++) {
        const ConfMessage *m = &report->messages[i];

        if (m->line == message->line && !strcmp(m->file, message->file) && !strcmp(m->text, message->text))
            return true;
    }
    return false;
}

/* Reports the messages about policy files once, although several variants may read them. */
static void pass_on_files(ScenarioDraft *d, const ConfReport *report)
{
    for (size_t i = 0; i < report->n_messages; i++) {
        const ConfMessage *m = &report->messages[i];

        if (!is_told(d->report, m))
            conf_report_add(d->report, m->severity, m->file, m->line, "%s", m->text);
    }
}

static int add(Gather *g, Policy *policy)
{
    if (g->n == SIM_POLICIES_MAX) {
        (void)policy_free(policy);
        DRAFT_ERROR(g->draft, g->variant->line, "expected at most %u policies in variant %s",
                    SIM_POLICIES_MAX, g->variant->name);
        return 0;
    }
    g->policies[g->n++] = policy;
    return 0;
}

static int add_inline(Gather *g, PolicyDraft *p)
{
    ScenarioDraft *d = g->draft;
    CLEANUP(conf_report_done) ConfReport report = {0};
    CLEANUP(policy_free_p) Policy *policy = NULL;
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int r;

    text = format_printed(print_lines, p, &len);
    if (!text)
        return -ENOMEM;
    r = policy_parse(p->name, text, len, d->file, d->spec->topology, &policy, &report);
    if (r == -ENOMEM)
        return r;
    pass_on(d, p, &report);
    return policy ? add(g, TAKE_PTR(policy)) : 0;
}

static int add_file(Gather *g, const char *word)
{
    ScenarioDraft *d = g->draft;
    CLEANUP(conf_report_done) ConfReport report = {0};
    CLEANUP(policy_free_p) Policy *policy = NULL;
    CLEANUP_FREE char *path = NULL;
    int r;

    if (!d->directory)
        return DRAFT_REFUSE(d, g->variant->line, "expected no policy files in a scenario that is not a file");
    path = scenario_path(d, word);
    if (!path)
        return -ENOMEM;
    r = policy_load_file(path, d->spec->topology, &policy, &report);
    if (r == -ENOMEM)
        return r;
    pass_on_files(d, &report);
    return policy ? add(g, TAKE_PTR(policy)) : 0;
}

static bool is_file(const char *word)
{
    return strchr(word, '/') || has_suffix(word, strlen(word), ".policy");
}

static int add_word(void *userdata, const char *word)
{
    Gather *g = userdata;
    ScenarioDraft *d = g->draft;

    if (!strcmp(word, "none"))
        return 0;
    if (is_file(word))
        return add_file(g, word);
    for (size_t i = 0; i < d->n_policies; i++)
        if (!strcmp(d->policies[i].name, word))
            return add_inline(g, &d->policies[i]);
    return DRAFT_REFUSE(
        d, g->variant->line,
        "Policies= of variant %s takes names of [Policy ...] sections, files that end in .policy, or none, "
        "not: %s",
        g->variant->name, word);
}

static int gather(Gather *g)
{
    ScenarioDraft *d = g->draft;
    int r = 0;

    if (g->variant->policies)
        return scenario_each_word(g->variant->policies, add_word, g);
    for (size_t i = 0; r == 0 && i < d->n_policies; i++)
        r = add_inline(g, &d->policies[i]);
    return r;
}

int scenario_policies(ScenarioDraft *d, const VariantDraft *variant, const char *const *policy_dirs,
                      PolicySet **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    Gather g = {.draft = d, .variant = variant};
    size_t n_errors = d->report->n_errors;
    int r;

    *ret = NULL;
    if (policy_dirs && variant->daemon) {
        r = policy_set_load(policy_dirs, d->spec->topology, ret, &report);
        pass_on_files(d, &report);
        return r == -ENOMEM ? r : 0;
    }
    r = gather(&g);
    if (r == 0 && d->report->n_errors == n_errors)
        r = policy_set_new(g.policies, g.n, ret);
    for (size_t i = 0; i < g.n; i++)
        (void)policy_free(g.policies[i]);
    if (r != -EEXIST)
        return r;
    return DRAFT_REFUSE(d, variant->line, "expected policies of different names in variant %s",
                        variant->name);
}
