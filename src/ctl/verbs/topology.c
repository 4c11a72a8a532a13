/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* topology: the machine as placement sees it. It is read here, not by the daemon, so that the XML of any
 * machine can be examined anywhere. The JSON keys are those of GetTopology, see numaplace-json(5). */

#include "base/parse.h"
#include "ctl/verbs/verb.h"

#include <string.h>

static int add_nodes(json_object *array, const Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];
        json_object *object = json_add_object(array, NULL);

        if (json_set_number(object, "node", node->os_index) < 0 ||
            json_set_set(object, "cpus", node->cpus) < 0 ||
            json_set_number(object, "n_cpus", node->n_cpus) < 0 ||
            json_set_number(object, "memory_bytes", node->memory_bytes) < 0 ||
            json_set_number(object, "bandwidth_bytes_per_sec", node->bandwidth_mb * 1000000ULL) < 0)
            return -ENOMEM;
    }
    return array ? 0 : -ENOMEM;
}

static int add_distances(json_object *array, const Topology *topology)
{
    for (size_t i = 0; i < (size_t)topology->n_nodes * topology->n_nodes; i++)
        if (json_append(array, json_object_new_uint64(topology->distances[i])) < 0)
            return -ENOMEM;
    return array ? 0 : -ENOMEM;
}

static int add_llcs(json_object *array, const Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        json_object *object = json_add_object(array, NULL);

        if (json_set_set(object, "cpus", topology->llcs[i].cpus) < 0 ||
            json_set_nodes(object, "nodes", topology, topology->llcs[i].nodes) < 0)
            return -ENOMEM;
    }
    return array ? 0 : -ENOMEM;
}

static int add_domains(json_object *array, const Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_domains; i++) {
        const TopologyDomain *domain = &topology->domains[i];
        json_object *object = json_add_object(array, NULL);

        if (json_set_bool(object, "numa", domain->numa) < 0 ||
            json_set_number(object, "distance", domain->distance) < 0 ||
            json_set_number(object, "span", domain->span) < 0 ||
            json_set_number(object, "imb_numa_nr", domain->imb_numa_nr) < 0)
            return -ENOMEM;
    }
    return array ? 0 : -ENOMEM;
}

static int topology_to_json(const Topology *topology, const char *text, json_object **ret)
{
    CLEANUP_JSON json_object *object = json_object_new_object();

    if (json_set_text(object, "origin", topology_origin_names[topology->origin]) < 0 ||
        json_set_text(object, "source", topology->source) < 0 ||
        json_set_number(object, "rehearsal", topology->rehearsal) < 0 ||
        json_set_bool(object, "restricted", topology->restricted) < 0 ||
        json_set_bool(object, "distances_known", topology->distances_known) < 0 ||
        json_set_set(object, "cpus", topology->all_cpus) < 0 ||
        json_set_number(object, "n_cpus", topology->n_cpus) < 0 ||
        json_set_number(object, "n_nodes", topology->n_nodes) < 0 ||
        json_set_number(object, "n_llcs", topology->n_llcs) < 0 ||
        json_set_number(object, "n_cores", topology->n_cores) < 0 ||
        add_nodes(json_add_array(object, "nodes"), topology) < 0 ||
        add_distances(json_add_array(object, "distances"), topology) < 0 ||
        add_llcs(json_add_array(object, "llcs"), topology) < 0 ||
        add_domains(json_add_array(object, "domains"), topology) < 0 ||
        json_set_text(object, "text", text) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(object);
    return 0;
}

static CtlExit verb_topology(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_JSON json_object *object = NULL;
    CLEANUP_FREE char *error = NULL, *text = NULL;
    int r = topology_load(&options->topology, &topology, &error);

    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "topology: %s", error ? error : strerror(-r));
    text = topology_format(topology);
    if (!text)
        return ctl_fail_oom();
    if (options->json == CTL_JSON_OFF) {
        (void)fputs(text, stdout);
        return CTL_EXIT_OK;
    }
    if (topology_to_json(topology, text, &object) < 0)
        return ctl_fail_oom();
    return ctl_print_json(options, object);
}

const CtlVerbRow ctl_verb_topology = {
    .name = "topology",
    .arguments = "",
    .accepts = CTL_ACCEPTS_TOPOLOGY,
    .help = "nodes, caches, CPUs, distances",
    .run = verb_topology,
    .pages = true,
    .alone = true,
};
