/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* simulate: what planning would do on another machine. Runs a scenario for every variant and seed, and judges
 * its expectations. All results are one JSON value, from which the tables are printed. */

#include "base/human.h"
#include "ctl/terminal/style.h"
#include "ctl/terminal/table.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/simulate/runs.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"
#include "sim/scenario/scenario.h"

#include <math.h>
#include <string.h>

/* Infinite and undefined numbers become null: JSON has neither. */
static int set_double(json_object *object, const char *key, double value)
{
    if (!isfinite(value))
        return json_set_null(object, key);
    if (value == floor(value) && fabs(value) < 9e15)
        return json_set(object, key, json_object_new_int64((int64_t)value));
    return json_set(object, key, json_object_new_double(value));
}

static int set_summary(json_object *object, const SimSummary *s)
{
    if (set_double(object, "low", s->low) < 0 || set_double(object, "median", s->median) < 0 ||
        set_double(object, "high", s->high) < 0)
        return -ENOMEM;
    return 0;
}

static int add_metrics(json_object *parent, const char *key, const SimTable *table, size_t variant,
                       size_t workload)
{
    json_object *metrics = json_add_object(parent, key);

    for (SimMetric m = 0; metrics && m < SIM_METRIC_MAX; m++) {
        SimSummary summary;
        json_object *object;

        if (workload != SIZE_MAX && sim_metric_is_machine(m))
            continue;
        object = json_add_object(metrics, sim_metric_names[m]);
        if (sim_table_summary(table, variant, m, workload, &summary) < 0 || set_summary(object, &summary) < 0)
            return -ENOMEM;
    }
    return metrics ? 0 : -ENOMEM;
}

static int add_variants(json_object *result, const SimTable *table)
{
    const SimSpec *spec = table->spec;
    json_object *list = json_add_array(result, "variants");

    for (size_t v = 0; v < spec->n_variants; v++) {
        json_object *object = json_add_object(list, NULL), *workloads;

        if (json_set_text(object, "name", spec->variants[v].name) < 0 ||
            json_set_bool(object, "daemon", spec->variants[v].daemon) < 0 ||
            add_metrics(object, "machine", table, v, SIZE_MAX) < 0)
            return -ENOMEM;
        workloads = json_add_object(object, "workloads");
        for (size_t w = 0; w < spec->n_workloads; w++)
            if (add_metrics(workloads, spec->workloads[w].name, table, v, w) < 0)
                return -ENOMEM;
    }
    return list ? 0 : -ENOMEM;
}

static int add_expectation(json_object *list, const SimTable *table, const SimExpect *expect, bool *held)
{
    json_object *object = json_add_object(list, NULL);
    SimVerdict verdict;

    if (sim_expect_judge(table, expect, &verdict) < 0)
        return -ENOMEM;
    *held = *held && verdict.held;
    if (json_set_number(object, "line", expect->line) < 0 ||
        json_set_text(object, "text", expect->text) < 0 ||
        json_set_text(object, "over", expect->over == SIM_OVER_EVERY ? "every" : "median") < 0 ||
        json_set_bool(object, "held", verdict.held) < 0 ||
        json_set_number(object, "cases", verdict.n_cases) < 0 ||
        json_set_number(object, "cases_held", verdict.n_held) < 0 || set_summary(object, &verdict.found) < 0)
        return -ENOMEM;
    return 0;
}

static int add_expectations(json_object *result, const SimTable *table, bool *ret_held)
{
    const SimSpec *spec = table->spec;
    json_object *list = json_add_array(result, "expectations");
    bool held = true;

    for (size_t i = 0; i < spec->n_expects; i++)
        if (add_expectation(list, table, &spec->expects[i], &held) < 0)
            return -ENOMEM;
    *ret_held = held;
    return list ? json_set_bool(result, "held", held) : -ENOMEM;
}

static int make_result(const SimTable *table, json_object **ret, bool *ret_held)
{
    CLEANUP_JSON json_object *result = json_object_new_object();
    const SimSpec *spec = table->spec;

    if (json_set_text(result, "scenario", spec->name) < 0 ||
        json_set_text(result, "description", spec->description) < 0 ||
        json_set_text(result, "machine", spec->machine) < 0 ||
        json_set_number(result, "seeds", spec->n_seeds) < 0 ||
        json_set_number(result, "duration_usec", spec->duration_usec) < 0 ||
        add_variants(result, table) < 0 || add_expectations(result, table, ret_held) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(result);
    return 0;
}

/*
 * Tables
 */

/* Whole numbers as they are, others with as many digits as anybody reads. `null` is the text for a null value. */
static void format_number(json_object *summary, const char *key, const char *null, char *buf, size_t size)
{
    json_object *value = json_object_object_get(summary, key);
    double v;

    if (!value) {
        (void)snprintf(buf, size, "%s", null);
        return;
    }
    v = json_object_get_double(value);
    (void)snprintf(buf, size, v == floor(v) ? "%.0f" : v >= 100 ? "%.1f" : "%.4g", v);
}

/* "1.49", or with a range "1.49 [1.47..1.52]". */
static void add_summary_cell(Table *table, json_object *summary, const char *null)
{
    char low[32], median[32], high[32];

    format_number(summary, "low", null, low, sizeof(low));
    format_number(summary, "median", null, median, sizeof(median));
    format_number(summary, "high", null, high, sizeof(high));
    if (!strcmp(low, high))
        table_add(table, NULL, median);
    else
        table_addf(table, NULL, "%s [%s..%s]", median, low, high);
}

/* Whether a metric has a row: if an expectation is about it, or if it is the machine's and not 0 in some variant. */
static bool worth_a_row(const SimTable *table, SimMetric metric, size_t workload)
{
    const SimSpec *spec = table->spec;

    for (size_t i = 0; i < spec->n_expects; i++)
        if (spec->expects[i].metric == metric && spec->expects[i].workload == workload)
            return true;
    if (workload != SIZE_MAX)
        return false;
    for (size_t v = 0; v < spec->n_variants; v++)
        for (size_t s = 0; s < table->n_seeds; s++) {
            double value = sim_table_get(table, v, s, metric, workload);

            if (isfinite(value) && value != 0)
                return true;
        }
    return false;
}

static void add_metric_row(Table *out, const SimTable *table, json_object *variants, SimMetric metric,
                           size_t workload)
{
    const SimSpec *spec = table->spec;

    if (workload == SIZE_MAX)
        table_add(out, NULL, sim_metric_names[metric]);
    else
        table_addf(out, NULL, "%s(%s)", sim_metric_names[metric], spec->workloads[workload].name);
    for (size_t v = 0; v < spec->n_variants; v++) {
        json_object *variant = json_object_array_get_idx(variants, v), *metrics;

        metrics = json_object_object_get(variant, workload == SIZE_MAX ? "machine" : "workloads");
        if (workload != SIZE_MAX)
            metrics = json_object_object_get(metrics, spec->workloads[workload].name);
        add_summary_cell(out, json_object_object_get(metrics, sim_metric_names[metric]), "never");
    }
}

static int print_metrics(const CtlOptions *options, const SimTable *table, json_object *result)
{
    const SimSpec *spec = table->spec;
    TableColumn columns[SIM_VARIANTS_MAX + 1] = {{"METRIC", 0}};
    CLEANUP(table_free_p) Table *out = NULL;

    for (size_t v = 0; v < spec->n_variants; v++)
        columns[v + 1] = (TableColumn){spec->variants[v].name, SCOLS_FL_RIGHT};
    if (table_new(options, columns, spec->n_variants + 1, &out) < 0)
        return -ENOMEM;
    for (SimMetric m = 0; m < SIM_METRIC_MAX; m++) {
        if (worth_a_row(table, m, SIZE_MAX))
            add_metric_row(out, table, view_list(result, "variants"), m, SIZE_MAX);
        for (size_t w = 0; w < spec->n_workloads; w++)
            if (worth_a_row(table, m, w))
                add_metric_row(out, table, view_list(result, "variants"), m, w);
    }
    return table_print(out, stdout);
}

static int print_expectations(const CtlOptions *options, json_object *result)
{
    static const TableColumn columns[] = {
        {"EXPECTATION", SCOLS_FL_TRUNC}, {"", 0}, {"HELD", SCOLS_FL_RIGHT}, {"FOUND", SCOLS_FL_RIGHT}};
    json_object *list = view_list(result, "expectations");
    CLEANUP(table_free_p) Table *out = NULL;

    if (view_length(list) == 0)
        return 0;
    (void)putchar('\n');
    if (table_new(options, columns, ARRAY_SIZE(columns), &out) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < view_length(list); i++) {
        json_object *e = json_object_array_get_idx(list, i);
        bool held = view_bool(e, "held");

        table_add(out, NULL, view_string(e, "text"));
        table_add(out, held ? STYLE_GOOD : STYLE_BAD, held ? "held" : "failed");
        table_addf(out, NULL, "%lld/%lld", (long long)view_number(e, "cases_held", 0),
                   (long long)view_number(e, "cases", 0));
        add_summary_cell(out, e, "-");
    }
    return table_print(out, stdout);
}

static void print_legend(const CtlOptions *options, const SimSpec *spec, json_object *result)
{
    view_say(options->colour ? STYLE_BOLD : NULL, "%s on %s, %u %s of at most %.6gs\n",
             view_string(result, "scenario"), view_string(result, "machine"), spec->n_seeds,
             human_noun(spec->n_seeds, "seed", "seeds"), (double)spec->duration_usec / 1e6);
    if (spec->description)
        view_say(NULL, "%s\n", spec->description);
    (void)putchar('\n');
}

static CtlExit print_result(const CtlOptions *options, const SimTable *table, json_object *result)
{
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, result);
    if (options->legend)
        print_legend(options, table->spec, result);
    if (print_metrics(options, table, result) < 0 || print_expectations(options, result) < 0)
        return ctl_fail_oom();
    return CTL_EXIT_OK;
}

static CtlExit load(const CtlOptions *options, const char *path, SimSpec **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    int r = sim_scenario_load(path, options->n_policy_dirs > 0 ? options->policy_dirs : NULL, ret, &report);

    policy_files_complain(&report);
    if (r == -EBADMSG)
        return CTL_EXIT_FAILURE;
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, strerror(-r));
    if (options->seeds > 0)
        (*ret)->n_seeds = options->seeds;
    return CTL_EXIT_OK;
}

static CtlExit verb_simulate(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP(simulate_runs_done) SimulateRuns runs = {0};
    CLEANUP_JSON json_object *result = NULL;
    bool held = false;
    CtlExit code = load(options, argv[0], &spec);

    /* These run one seed each and come first, so that a faulty output file is reported before all other runs. */
    if (code == CTL_EXIT_OK && options->record)
        code = simulate_record(spec, options->record);
    if (code == CTL_EXIT_OK && options->plot)
        code = simulate_plot(spec, options->plot);
    if (code == CTL_EXIT_OK)
        code = simulate_run_all(spec, &runs);
    if (code == CTL_EXIT_OK && make_result(&runs.table, &result, &held) < 0)
        code = ctl_fail_oom();
    if (code == CTL_EXIT_OK)
        code = print_result(options, &runs.table, result);
    return code == CTL_EXIT_OK && !held ? CTL_EXIT_FAILURE : code;
}

const CtlVerbRow ctl_verb_simulate = {
    .name = "simulate",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .accepts = CTL_ACCEPTS(POLICY_DIR) | CTL_ACCEPTS(SEEDS) | CTL_ACCEPTS(PLOT) | CTL_ACCEPTS(RECORD),
    .help = "run a scenario on a model of a machine",
    .run = verb_simulate,
    .alone = true,
};
