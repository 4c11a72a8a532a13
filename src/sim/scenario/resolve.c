/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes a scenario of its draft: names become indices, nodes become CPUs, and keys are checked against each
 * other and the machine. Errors carry the line of their section. */

#include "base/parse.h"
#include "plan/ablation.h"
#include "sim/scenario/draft.h"
#include "sim/scenario/expect.h"
#include "sim/scenario/preset.h"
#include "world/world.h"

#include <stdio.h>
#include <string.h>

int scenario_each_word(const char *text, int (*word)(void *userdata, const char *word), void *userdata)
{
    CLEANUP_FREE char *copy = strdup(text);
    char *save = NULL;
    int r = 0;

    if (!copy)
        return -ENOMEM;
    for (char *w = strtok_r(copy, " \t", &save); r == 0 && w; w = strtok_r(NULL, " \t", &save))
        r = word(userdata, w);
    return r;
}

char *scenario_path(const ScenarioDraft *d, const char *path)
{
    return path[0] == '/' ? strdup(path) : format_text("%s%s", d->directory, path);
}

/*
 * Machine
 */

static int unknown_preset(ScenarioDraft *d)
{
    CLEANUP_FREE char *names = NULL;
    size_t n, len = 0;
    const SimPreset *presets = preset_list(&n);
    FILE *out = open_memstream(&names, &len);

    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "%s%s", i ? ", " : "", presets[i].name);
    if (fclose(out) != 0)
        return -ENOMEM;
    return DRAFT_REFUSE(d, d->machine.line, "Preset= takes %s, not: %s", names, d->machine.preset);
}

static int load_topology(ScenarioDraft *d, char **ret_error)
{
    const MachineDraft *m = &d->machine;
    TopologyOptions options = {.synthetic = m->synthetic};
    CLEANUP_FREE char *path = NULL;

    if (m->preset)
        return preset_load(preset_find(m->preset), &d->spec->topology, ret_error);
    if (m->xml) {
        path = scenario_path(d, m->xml);
        if (!path)
            return -ENOMEM;
        options.xml = path;
    }
    return topology_load(&options, &d->spec->topology, ret_error);
}

static void tell_bandwidth(Topology *topology, uint64_t bytes)
{
    for (uint32_t i = 0; bytes > 0 && i < topology->n_nodes; i++)
        topology->nodes[i].bandwidth_mb = (uint32_t)(bytes / 1000000);
}

static int resolve_machine(ScenarioDraft *d)
{
    const MachineDraft *m = &d->machine;
    CLEANUP_FREE char *error = NULL;
    int r;

    if (!!m->preset + !!m->xml + !!m->synthetic != 1)
        return DRAFT_REFUSE(d, m->line, "expected one of Preset=, XML= and Synthetic= in [Machine]");
    if (m->preset && !preset_find(m->preset))
        return unknown_preset(d);
    if (m->xml && !d->directory)
        return DRAFT_REFUSE(d, m->line, "expected no XML= in a scenario that is not a file");
    if (m->model.remote_latency_nsec < m->model.local_latency_nsec)
        DRAFT_ERROR(d, m->line, "expected RemoteLatencyNSec= of at least LocalLatencyNSec=, %u",
                    m->model.local_latency_nsec);
    r = load_topology(d, &error);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        DRAFT_ERROR(d, m->line, "expected a machine: %s", error ? error : strerror(-r));
    d->spec->model = m->model;
    if (d->spec->topology) {
        tell_bandwidth(d->spec->topology, m->model.firmware_bandwidth);
        d->spec->machine = strdup(m->preset ? m->preset : d->spec->topology->source);
        return d->spec->machine ? 0 : -ENOMEM;
    }
    return 0;
}

/*
 * Workloads
 */

/* Sets *ret to the CPUs of the nodes (operating-system numbers). */
static int nodes_to_cpus(ScenarioDraft *d, const WorkloadDraft *w, const char *key,
                         hwloc_const_bitmap_t nodes, hwloc_bitmap_t *ret)
{
    const Topology *topology = d->spec->topology;
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    int id;

    if (!cpus)
        return -ENOMEM;
    hwloc_bitmap_free(*ret);
    *ret = cpus;
    hwloc_bitmap_foreach_begin (id, nodes) {
        NodeIx node = topology_node_by_os(topology, (unsigned)id);

        if (node.i < 0)
            DRAFT_ERROR(d, w->line, "%s= of workload %s names node %d, which the machine does not have", key,
                        w->value.name, id);
        else if (hwloc_bitmap_or(cpus, cpus, topology->nodes[node.i].cpus) < 0)
            return -ENOMEM;
    }
hwloc_bitmap_foreach_end
();
return 0;
}

/* A mask must include CPUs of the machine and of the cpuset. */
static void check_mask(ScenarioDraft *d, const WorkloadDraft *w, const char *key, hwloc_const_bitmap_t mask)
{
    const SimWorkload *v = &w->value;

    if (mask && (!hwloc_bitmap_intersects(mask, d->spec->topology->all_cpus) ||
                 (v->cpuset && !hwloc_bitmap_intersects(mask, v->cpuset))))
        DRAFT_ERROR(d, w->line, "%s= of workload %s includes no CPU of the machine, or none of its cpuset",
                    key, v->name);
}

static int resolve_places(ScenarioDraft *d, WorkloadDraft *w)
{
    SimWorkload *v = &w->value;
    int r = 0;

    if (w->nodes && v->cpuset)
        DRAFT_ERROR(d, w->line, "expected one of CPUs= and Nodes= for workload %s", v->name);
    else if (w->nodes)
        r = nodes_to_cpus(d, w, "Nodes", w->nodes, &v->cpuset);
    if (r == 0 && w->start_nodes)
        r = nodes_to_cpus(d, w, "StartNodes", w->start_nodes, &v->start_cpus);
    if (r < 0)
        return r;
    check_mask(d, w, w->nodes ? "Nodes" : "CPUs", v->cpuset);
    check_mask(d, w, "Affinity", v->affinity);
    check_mask(d, w, "StartNodes", v->start_cpus);
    return 0;
}

/* Whether the time is never 0. */
static bool is_positive(const SimDist *dist)
{
    return dist->a_usec > 0;
}

static void check_rhythm(ScenarioDraft *d, const WorkloadDraft *w)
{
    const SimWorkload *v = &w->value;
    bool sleeps = v->sleep.a_usec > 0 || v->sleep.b_usec > 0;

    if (scenario_draft_given(w, "BurstSec") && !is_positive(&v->burst))
        DRAFT_ERROR(d, w->line, "expected a BurstSec= of at least 1us for workload %s", v->name);
    if ((sleeps || v->wake != SIM_WAKE_NONE) && !is_positive(&v->burst))
        DRAFT_ERROR(d, w->line, "expected BurstSec= for workload %s, which sleeps", v->name);
    if (sleeps && v->wake != SIM_WAKE_NONE)
        DRAFT_ERROR(d, w->line,
                    "expected no SleepSec= for workload %s, whose threads sleep until they are woken",
                    v->name);
    if (v->wake != SIM_WAKE_NONE && v->n_threads % 2 != 0)
        DRAFT_ERROR(d, w->line,
                    "expected an even number of Threads= for workload %s, whose threads wake each other",
                    v->name);
}

static void check_memory(ScenarioDraft *d, WorkloadDraft *w)
{
    SimWorkload *v = &w->value;

    if (!scenario_draft_given(w, "SharedAccess") && v->private_bytes == 0 && v->shared_bytes > 0)
        v->shared_permille = 1000;
    if (v->shared_permille > 0 && v->shared_bytes == 0)
        DRAFT_ERROR(d, w->line, "expected SharedMemory= for workload %s, which has SharedAccess=", v->name);
    if (v->shared_permille < 1000 && v->shared_bytes > 0 && v->private_bytes == 0)
        DRAFT_ERROR(d, w->line, "expected PrivateMemory= or SharedAccess=100%% for workload %s", v->name);
    if (v->shared_by > 0 && v->shared_bytes == 0)
        DRAFT_ERROR(d, w->line, "expected SharedMemory= for workload %s, which has SharedBy=", v->name);
    if (v->private_bytes + v->shared_bytes == 0 && (v->memory_permille > 0 || v->bandwidth > 0))
        DRAFT_ERROR(d, w->line, "expected PrivateMemory= or SharedMemory= for workload %s, which uses memory",
                    v->name);
    if (v->private_bytes == 0 && v->displaced_permille > 0)
        DRAFT_ERROR(d, w->line, "expected PrivateMemory= for workload %s, which has Displaced=", v->name);
    if (v->private_bytes + v->shared_bytes == 0 && v->phase_usec > 0)
        DRAFT_ERROR(d, w->line,
                    "expected PrivateMemory= or SharedMemory= for workload %s, which has PhaseSec=", v->name);
    if ((v->phase_usec > 0) + (v->displaced_usec > 0) + (v->affinity_usec > 0) > 1)
        DRAFT_ERROR(d, w->line, "expected one of AffinitySec=, DisplacedSec= and PhaseSec= for workload %s",
                    v->name);
    if (v->affinity_usec > 0 && !v->affinity)
        DRAFT_ERROR(d, w->line, "expected Affinity= for workload %s, which has AffinitySec=", v->name);
    if (v->displaced_usec > 0 && v->displaced_permille == 0)
        DRAFT_ERROR(d, w->line, "expected Displaced= for workload %s, which has DisplacedSec=", v->name);
}

static int resolve_identity(ScenarioDraft *d, WorkloadDraft *w)
{
    SimWorkload *v = &w->value;

    if (!v->comm)
        v->comm = strndup(v->name, WORLD_COMM_SIZE - 1);
    if (!v->cgroup)
        v->cgroup = format_text("/sim.slice/%s.service", v->name);
    if (!v->comm || !v->cgroup)
        return -ENOMEM;
    if (v->cgroup[0] != '/')
        DRAFT_ERROR(d, w->line, "Cgroup= of workload %s takes a path that starts with /, not: %s", v->name,
                    v->cgroup);
    return 0;
}

static int resolve_workloads(ScenarioDraft *d)
{
    SimSpec *spec = d->spec;
    uint64_t n_threads = 0;

    if (d->n_workloads == 0)
        return DRAFT_REFUSE(d, 0, "expected a section [Workload NAME]");
    spec->workloads = calloc(d->n_workloads, sizeof(SimWorkload));
    if (!spec->workloads)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_workloads; i++) {
        WorkloadDraft *w = &d->workloads[i];
        int r = resolve_places(d, w);

        if (r == 0)
            r = resolve_identity(d, w);
        if (r < 0)
            return r;
        check_rhythm(d, w);
        check_memory(d, w);
        n_threads += (uint64_t)w->value.n_processes * w->value.n_threads;
        spec->workloads[spec->n_workloads++] = w->value;
        w->value = (SimWorkload){0};
    }
    if (n_threads > SIM_THREADS_MAX)
        DRAFT_ERROR(d, 0, "expected at most %u threads in all workloads together, not: %llu", SIM_THREADS_MAX,
                    (unsigned long long)n_threads);
    return 0;
}

/*
 * Variants and expectations
 */

typedef struct Choice {
    ScenarioDraft *draft;
    const VariantDraft *from;
    SimVariant *to;
} Choice;

static int choose_workload(void *userdata, const char *word)
{
    const Choice *c = userdata;
    const SimSpec *spec = c->draft->spec;

    for (size_t i = 0; i < spec->n_workloads; i++)
        if (!strcmp(spec->workloads[i].name, word)) {
            c->to->workloads[i] = true;
            return 0;
        }
    return DRAFT_REFUSE(c->draft, c->from->line, "Workloads= of variant %s takes names of workloads, not: %s",
                        c->from->name, word);
}

static int switch_off(void *userdata, const char *word)
{
    const Choice *c = userdata;
    int rule = ablation_find(word);

    if (rule >= 0) {
        c->to->ablated |= 1ULL << rule;
        return 0;
    }
    return DRAFT_REFUSE(c->draft, c->from->line,
                        "Off= of variant %s takes names of rules such as %s, not: %s", c->from->name,
                        ablation_names[0], word);
}

static int resolve_variant(ScenarioDraft *d, const VariantDraft *from, const char *const *policy_dirs)
{
    SimSpec *spec = d->spec;
    SimVariant *to = &spec->variants[spec->n_variants++];
    Choice choice = {d, from, to};
    int r;

    *to = (SimVariant){.daemon = from->daemon, .kernel = from->kernel};
    to->name = strdup(from->name);
    to->workloads = calloc(spec->n_workloads, sizeof(bool));
    if (!to->name || !to->workloads)
        return -ENOMEM;
    for (size_t i = 0; !from->workloads && i < spec->n_workloads; i++)
        to->workloads[i] = true;
    if (from->workloads) {
        r = scenario_each_word(from->workloads, choose_workload, &choice);
        if (r < 0)
            return r;
    }
    r = from->off ? scenario_each_word(from->off, switch_off, &choice) : 0;
    if (r < 0)
        return r;
    return scenario_policies(d, from, policy_dirs, &to->policies);
}

/* A file without variants has one. */
static int imply_variant(ScenarioDraft *d)
{
    if (!GROW(d->variants, d->variants_capacity, 1))
        return -ENOMEM;
    d->variants[0] = (VariantDraft){.name = strdup("default"), .daemon = true, .kernel = d->kernel};
    d->n_variants = 1;
    return d->variants[0].name ? 0 : -ENOMEM;
}

static int resolve_variants(ScenarioDraft *d, const char *const *policy_dirs)
{
    SimSpec *spec = d->spec;
    int r = d->n_variants == 0 ? imply_variant(d) : 0;

    if (r < 0)
        return r;
    spec->variants = calloc(d->n_variants, sizeof(SimVariant));
    if (!spec->variants)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < d->n_variants; i++)
        r = resolve_variant(d, &d->variants[i], policy_dirs);
    return r;
}

static int resolve_expects(ScenarioDraft *d)
{
    SimSpec *spec = d->spec;

    spec->expects = calloc(d->n_expects + 1, sizeof(SimExpect));
    if (!spec->expects)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_expects; i++) {
        const ExpectDraft *e = &d->expects[i];
        CLEANUP_FREE char *error = NULL;
        int r = sim_expect_parse(spec, e->key, e->value, &spec->expects[spec->n_expects], &error);

        if (r == -ENOMEM)
            return r;
        if (r < 0) {
            DRAFT_ERROR(d, e->line, "%s", error);
            continue;
        }
        spec->expects[spec->n_expects].over = e->over;
        spec->expects[spec->n_expects++].line = e->line;
    }
    return 0;
}

int scenario_resolve(ScenarioDraft *d, const char *const *policy_dirs)
{
    int r = resolve_machine(d);

    /* Nothing else can be checked without the machine. */
    if (r < 0 || !d->spec->topology)
        return r;
    if (d->spec->settle_usec > d->spec->duration_usec)
        DRAFT_ERROR(d, 0, "expected SettleSec= of at most DurationSec=");
    r = resolve_workloads(d);
    if (r < 0 || d->spec->n_workloads == 0)
        return r;
    r = resolve_variants(d, policy_dirs);
    return r == 0 ? resolve_expects(d) : r;
}
