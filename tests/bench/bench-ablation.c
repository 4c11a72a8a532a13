/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What each rule of planning is worth. Every rule is switched off alone (plan/ablation.h, and keys of policies), in
 * each variant with a daemon of each scenario named, with --runs seeds each, and on --machines random machines.
 *
 *   differs   runs in which anything was different without the rule
 *   work      done with the rule, divided by that of the same seed without it: mean, least and most, and where
 *   moves     changes of homes and moves across nodes, with and without
 *   pages     moved, with and without */

#include "plan/ablation.h"
#include "simbench.h"

static SimbenchOptions arg = {.runs = 1, .machines = 200};

/* What a policy can switch off. */
typedef struct Key {
    const char *name;
    void (*set)(Policy *policy);
} Key;

static void no_steal(Policy *policy)
{
    policy->steal = false;
}

static void no_node_limit(Policy *policy)
{
    policy->node_limit = POLICY_NODES_MAX;
}

static void no_vetoes(Policy *policy)
{
    policy->nice_tries = 0;
}

static void no_residency(Policy *policy)
{
    policy->min_residency_usec = 0;
}

static void no_settling(Policy *policy)
{
    policy->settle_usec = 0;
}

static void no_freezing_back(Policy *policy)
{
    policy->ping_pong_usec = 0;
}

static void no_least_gain(Policy *policy)
{
    policy->min_gain_permille = 0;
}

static void no_following(Policy *policy)
{
    policy->follow = false;
}

static void no_samples(Policy *policy)
{
    policy->evidence = POLICY_EVIDENCE_RESIDENCY;
}

static void no_evening_out(Policy *policy)
{
    policy->even_out = false;
}

static void no_second_stage(Policy *policy)
{
    policy->two_stage = false;
}

static void no_feedback(Policy *policy)
{
    policy->scan_feedback = false;
}

static void no_forcing(Policy *policy)
{
    policy->force_complete = false;
}

static const Key keys[] = {
    {"Steal", no_steal},
    {"NodeLimit", no_node_limit},
    {"NiceTries", no_vetoes},
    {"MinResidencySec", no_residency},
    {"SettleSec", no_settling},
    {"PingPongSec", no_freezing_back},
    {"MinGainPermille", no_least_gain},
    {"Follow", no_following},
    {"Evidence", no_samples},
    {"EvenOut", no_evening_out},
    {"TwoStage", no_second_stage},
    {"ScanFeedback", no_feedback},
    {"ForceComplete", no_forcing},
};

#define N_RULES (ABLATION_MAX + ARRAY_SIZE(keys))

typedef struct Worth {
    size_t n, n_differs;
    double sum, least, most;
    char least_at[96], most_at[96];
    int64_t moves[2], pages[2]; /* with, without */
} Worth;

static Worth worths[N_RULES];

static const char *name_of(size_t rule)
{
    return rule < ABLATION_MAX ? ablation_names[rule] : keys[rule - ABLATION_MAX].name;
}

static int64_t get(const SimResult *result, SimMetric metric)
{
    return sim_result_get(result, metric, SIZE_MAX);
}

static int64_t moves_of(const SimResult *result)
{
    return get(result, SIM_METRIC_HOME_CHANGES) + get(result, SIM_METRIC_MOVES_CROSS_DAEMON);
}

static void compare(Worth *worth, const char *at, const SimResult *with, const SimResult *without)
{
    double work = simbench_work(with, without);
    size_t n = (with->n_workloads + 1) * SIM_METRIC_MAX;

    worth->n_differs += memcmp(with->values, without->values, n * sizeof(*with->values)) != 0;
    worth->sum += work;
    if (worth->n == 0 || work < worth->least) {
        worth->least = work;
        (void)snprintf(worth->least_at, sizeof(worth->least_at), "%s", at);
    }
    if (worth->n == 0 || work > worth->most) {
        worth->most = work;
        (void)snprintf(worth->most_at, sizeof(worth->most_at), "%s", at);
    }
    worth->moves[0] += moves_of(with);
    worth->moves[1] += moves_of(without);
    worth->pages[0] += get(with, SIM_METRIC_PAGES_MOVED);
    worth->pages[1] += get(without, SIM_METRIC_PAGES_MOVED);
    worth->n++;
}

static int run_without(SimSpec *spec, size_t variant, size_t rule, uint64_t seed, SimResult **ret)
{
    SimVariant *v = &spec->variants[variant];
    const PolicySet *set = v->policies;
    CLEANUP_FREE Policy *before = calloc(set->n_policies + 1, sizeof(*before));
    uint64_t ablated = v->ablated;
    int r;

    if (!before)
        return -ENOMEM;
    for (size_t i = 0; i < set->n_policies && rule >= ABLATION_MAX; i++) {
        before[i] = *set->policies[i];
        keys[rule - ABLATION_MAX].set(set->policies[i]);
    }
    v->ablated |= rule < ABLATION_MAX ? 1ULL << rule : 0;
    r = simbench_run(spec, variant, seed, ret);
    v->ablated = ablated;
    for (size_t i = 0; i < set->n_policies && rule >= ABLATION_MAX; i++)
        *set->policies[i] = before[i];
    return r;
}

static int run_seed(SimSpec *spec, size_t variant, uint64_t seed, const char *at)
{
    CLEANUP(sim_result_free_p) SimResult *with = NULL;
    int r = simbench_run(spec, variant, seed, &with);

    for (size_t rule = 0; r == 0 && rule < N_RULES; rule++) {
        CLEANUP(sim_result_free_p) SimResult *without = NULL;

        r = run_without(spec, variant, rule, seed, &without);
        if (r == 0)
            compare(&worths[rule], at, with, without);
    }
    return r;
}

static int run_scenario(const char *path)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    int r = simbench_parse(path, NULL, &spec);

    for (size_t i = 0; r == 0 && i < spec->n_variants; i++) {
        char at[96];

        (void)snprintf(at, sizeof(at), "%s %s", spec->name, spec->variants[i].name);
        for (unsigned seed = 1; r == 0 && spec->variants[i].daemon && seed <= arg.runs; seed++)
            r = run_seed(spec, i, seed, at);
    }
    return r;
}

static int run_machine(uint64_t seed)
{
    CLEANUP(sim_spec_free_p) SimSpec *spec = NULL;
    CLEANUP_FREE char *text = random_machine(seed, true);
    int r = text ? simbench_parse("machine", text, &spec) : -ENOMEM;
    char at[96];

    (void)snprintf(at, sizeof(at), "machine %" PRIu64, seed);
    return r == 0 ? run_seed(spec, RANDOM_MACHINE_HOMES, seed, at) : r;
}

static void print_worth(const char *rule, const Worth *w)
{
    double mean = w->sum / (double)MAX(w->n, 1U);

    if (arg.json)
        (void)printf(
            "{\"bench\":\"ablation\",\"rule\":\"%s\",\"runs\":%zu,\"differs\":%zu,\"work_mean\":%.4f,"
            "\"work_least\":%.4f,\"least_at\":\"%s\",\"work_most\":%.4f,\"most_at\":\"%s\",\"moves\":%" PRIi64
            ",\"moves_without\":%" PRIi64 ",\"pages\":%" PRIi64 ",\"pages_without\":%" PRIi64 "}\n",
            rule, w->n, w->n_differs, mean, w->least, w->least_at, w->most, w->most_at, w->moves[0],
            w->moves[1], w->pages[0], w->pages[1]);
    else
        (void)printf("%-16s differs %3zu/%zu  work %.4f  %.3f (%s) .. %.3f (%s)  moves %" PRIi64 " / %" PRIi64
                     "  pages %" PRIi64 " / %" PRIi64 "\n",
                     rule, w->n_differs, w->n, mean, w->least, w->least_at, w->most, w->most_at, w->moves[0],
                     w->moves[1], w->pages[0], w->pages[1]);
}

int main(int argc, char **argv)
{
    int r = 0;

    if (!simbench_options(argc, argv, &arg))
        return EXIT_FAILURE;
    for (int i = optind; r == 0 && i < argc; i++)
        r = run_scenario(argv[i]);
    for (uint64_t seed = 1; r == 0 && seed <= arg.machines; seed++)
        r = run_machine(seed);
    for (size_t rule = 0; r == 0 && rule < N_RULES; rule++)
        print_worth(name_of(rule), &worths[rule]);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
