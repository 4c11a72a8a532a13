/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Only independent facts are written. The CPUs of a node or LLC, the counts and the set of all CPUs are derived from
 * the cpu lines. So most contradictions cannot be expressed at all; topology_check() finds the rest.
 *
 *     topology origin=synthetic source="node:2 core:1 pu:1" rehearsal=0 restricted=no distances_known=yes
 *     node os=0 memory_bytes=1073741824 bandwidth_mb=0 distances=10,20
 *     node os=1 memory_bytes=1073741824 bandwidth_mb=0 distances=20,10
 *     cpu cpu=0 node=0 llc=0 core=0
 *     cpu cpu=1 node=1 llc=1 core=1
 *     domain numa=yes distance=20 span=2 imb_numa_nr=1 */

#include "topo/topology-text.h"

#include "base/parse.h"

#include <string.h>

static const RecordField topology_fields[] = {
    {"origin", RECORD_ENUM, offsetof(Topology, origin), true, 0, topology_origin_names},
    {"source", RECORD_TEXT, offsetof(Topology, source), true},
    {"rehearsal", RECORD_U32, offsetof(Topology, rehearsal)},
    {"restricted", RECORD_BOOL, offsetof(Topology, restricted)},
    {"distances_known", RECORD_BOOL, offsetof(Topology, distances_known)},
};

typedef struct NodeRow {
    uint32_t os_index;
    uint64_t memory_bytes;
    uint32_t bandwidth_mb;
    RecordNumbers distances;
} NodeRow;

static const RecordField node_fields[] = {
    {"os", RECORD_U32, offsetof(NodeRow, os_index), true},
    {"memory_bytes", RECORD_U64, offsetof(NodeRow, memory_bytes)},
    {"bandwidth_mb", RECORD_U32, offsetof(NodeRow, bandwidth_mb)},
    {"distances", RECORD_NUMBERS, offsetof(NodeRow, distances), true},
};

typedef struct CpuRow {
    CpuIx cpu;
    NodeIx node;
    LlcIx llc;
    CoreIx core;
} CpuRow;

static const RecordField cpu_fields[] = {
    {"cpu", RECORD_INDEX, offsetof(CpuRow, cpu), true},
    {"node", RECORD_INDEX, offsetof(CpuRow, node), true},
    {"llc", RECORD_INDEX, offsetof(CpuRow, llc), true},
    {"core", RECORD_INDEX, offsetof(CpuRow, core), true},
};

static const RecordField domain_fields[] = {
    {"numa", RECORD_BOOL, offsetof(TopologyDomain, numa), true},
    {"distance", RECORD_U32, offsetof(TopologyDomain, distance), true},
    {"span", RECORD_U32, offsetof(TopologyDomain, span), true},
    {"imb_numa_nr", RECORD_U32, offsetof(TopologyDomain, imb_numa_nr), true},
};

void topology_write(const Topology *topology, FILE *out)
{
    record_write(out, "topology", topology_fields, ARRAY_SIZE(topology_fields), topology);

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        NodeRow row = {
            .os_index = topology->nodes[i].os_index,
            .memory_bytes = topology->nodes[i].memory_bytes,
            .bandwidth_mb = topology->nodes[i].bandwidth_mb,
            .distances = {.values = topology->distances + (size_t)i * topology->n_nodes,
                          .n = topology->n_nodes},
        };

        record_write(out, "node", node_fields, ARRAY_SIZE(node_fields), &row);
    }
    for (uint32_t i = 0; i < topology->cpu_limit; i++) {
        const TopologyCpu *cpu = &topology->cpus[i];
        CpuRow row = {{(int32_t)i}, cpu->node, cpu->llc, cpu->core};

        if (cpu->present)
            record_write(out, "cpu", cpu_fields, ARRAY_SIZE(cpu_fields), &row);
    }
    for (uint32_t i = 0; i < topology->n_domains; i++)
        record_write(out, "domain", domain_fields, ARRAY_SIZE(domain_fields), &topology->domains[i]);
}

/* The Topology being read, with array capacities, which a Topology does not have. */
typedef struct TopologyDraft {
    Topology *topology;
    size_t nodes_capacity, cpus_capacity, domains_capacity;
    RecordNumbers *rows; /* the distances of each node read so far */
    size_t n_rows, rows_capacity;
    uint32_t n_llcs; /* Topology.n_llcs counts entries of its array, which does not exist yet */
} TopologyDraft;

static void draft_done(TopologyDraft *draft)
{
    for (size_t i = 0; i < draft->n_rows; i++)
        record_numbers_done(&draft->rows[i]);
    free(draft->rows);
    topology_unref(draft->topology);
}

static int read_node(RecordReader *reader, TopologyDraft *draft)
{
    Topology *t = draft->topology;
    NodeRow row = {0};
    int r = record_read(reader, node_fields, ARRAY_SIZE(node_fields), &row);

    if (r == 0 && t->n_nodes == TOPOLOGY_TEXT_NODES_MAX)
        r = record_expected(reader, "at most %u nodes", TOPOLOGY_TEXT_NODES_MAX);
    if (r == 0 && t->n_nodes > 0 && row.os_index <= t->nodes[t->n_nodes - 1].os_index)
        r = record_expected(reader, "nodes in ascending order of os=");
    if (r == 0 && (!GROW(draft->rows, draft->rows_capacity, draft->n_rows + 1) ||
                   !GROW(t->nodes, draft->nodes_capacity, t->n_nodes + 1)))
        r = -ENOMEM;
    if (r != 0) {
        record_numbers_done(&row.distances);
        return r;
    }

    draft->rows[draft->n_rows++] = row.distances;
    t->nodes[t->n_nodes++] = (TopologyNode){
        .os_index = row.os_index, .memory_bytes = row.memory_bytes, .bandwidth_mb = row.bandwidth_mb};
    return 0;
}

static int read_cpu(RecordReader *reader, TopologyDraft *draft)
{
    Topology *t = draft->topology;
    CpuRow row = {0};
    int r = record_read(reader, cpu_fields, ARRAY_SIZE(cpu_fields), &row);

    if (r < 0)
        return r;
    if (t->n_cpus == TOPOLOGY_TEXT_CPUS_MAX)
        return record_expected(reader, "at most %u CPUs", TOPOLOGY_TEXT_CPUS_MAX);
    if (row.cpu.i < (int32_t)t->cpu_limit || row.cpu.i > (int32_t)PARSE_CPU_MAX)
        return record_expected(reader, "CPUs in ascending order, up to %u", PARSE_CPU_MAX);
    if (row.node.i < 0 || row.node.i >= (int32_t)t->n_nodes)
        return record_expected(reader, "node= one of the %u nodes listed above", t->n_nodes);
    /* LLCs and cores are numbered in the order of their lowest CPU, so a new one has the next number. */
    if (row.llc.i < 0 || row.llc.i > (int32_t)draft->n_llcs || row.core.i < 0 ||
        row.core.i > (int32_t)t->n_cores)
        return record_expected(reader, "llc= up to %u and core= up to %u", draft->n_llcs, t->n_cores);
    if (!GROW(t->cpus, draft->cpus_capacity, (size_t)row.cpu.i + 1))
        return -ENOMEM;

    for (; t->cpu_limit < (uint32_t)row.cpu.i; t->cpu_limit++)
        t->cpus[t->cpu_limit] = (TopologyCpu){false, NODE_NONE, LLC_NONE, CORE_NONE};
    t->cpus[t->cpu_limit++] = (TopologyCpu){true, row.node, row.llc, row.core};
    draft->n_llcs = MAX(draft->n_llcs, (uint32_t)row.llc.i + 1);
    t->n_cores = MAX(t->n_cores, (uint32_t)row.core.i + 1);
    t->n_cpus++;
    return 0;
}

static int read_domain(RecordReader *reader, TopologyDraft *draft)
{
    Topology *t = draft->topology;

    if (t->n_domains > TOPOLOGY_TEXT_NODES_MAX)
        return record_expected(reader, "at most %u domains", TOPOLOGY_TEXT_NODES_MAX + 1);
    if (!GROW(t->domains, draft->domains_capacity, (size_t)t->n_domains + 1))
        return -ENOMEM;
    t->domains[t->n_domains] = (TopologyDomain){0};
    return record_read(reader, domain_fields, ARRAY_SIZE(domain_fields), &t->domains[t->n_domains++]);
}

static int join_distances(RecordReader *reader, TopologyDraft *draft)
{
    Topology *t = draft->topology;

    t->distances = calloc(MAX((size_t)t->n_nodes * t->n_nodes, (size_t)1), sizeof(*t->distances));
    if (!t->distances)
        return -ENOMEM;
    for (size_t i = 0; i < draft->n_rows; i++) {
        if (draft->rows[i].n != t->n_nodes)
            return record_expected(reader, "distances= of %u numbers for each of %u nodes, not %zu",
                                   t->n_nodes, t->n_nodes, draft->rows[i].n);
        memcpy(t->distances + i * t->n_nodes, draft->rows[i].values, t->n_nodes * sizeof(*t->distances));
    }
    return 0;
}

static int alloc_sets(Topology *t, uint32_t n_llcs)
{
    t->all_cpus = hwloc_bitmap_alloc();
    t->llcs = calloc(MAX(n_llcs, 1U), sizeof(*t->llcs));
    if (!t->all_cpus || !t->llcs)
        return -ENOMEM;
    t->n_llcs = n_llcs;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        t->nodes[i].cpus = hwloc_bitmap_alloc();
        if (!t->nodes[i].cpus)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < t->n_llcs; i++) {
        t->llcs[i].cpus = hwloc_bitmap_alloc();
        t->llcs[i].nodes = hwloc_bitmap_alloc();
        if (!t->llcs[i].cpus || !t->llcs[i].nodes)
            return -ENOMEM;
    }
    return 0;
}

/* Derives the sets of CPUs and nodes from the cpu lines. */
static int derive_sets(Topology *t, uint32_t n_llcs)
{
    int r = alloc_sets(t, n_llcs);

    if (r < 0)
        return r;

    for (uint32_t i = 0; i < t->cpu_limit; i++) {
        const TopologyCpu *cpu = &t->cpus[i];

        if (!cpu->present)
            continue;
        if (hwloc_bitmap_set(t->all_cpus, i) < 0 || hwloc_bitmap_set(t->nodes[cpu->node.i].cpus, i) < 0 ||
            hwloc_bitmap_set(t->llcs[cpu->llc.i].cpus, i) < 0 ||
            hwloc_bitmap_set(t->llcs[cpu->llc.i].nodes, (unsigned)cpu->node.i) < 0)
            return -ENOMEM;
        t->nodes[cpu->node.i].n_cpus++;
    }
    return 0;
}

static int finish(RecordReader *reader, TopologyDraft *draft)
{
    int r = join_distances(reader, draft);

    if (r == 0)
        r = derive_sets(draft->topology, draft->n_llcs);
    if (r < 0)
        return r;
    if (topology_check(draft->topology) < 0)
        return record_expected(reader, "a consistent topology before this line");
    return 0;
}

int topology_read(RecordReader *reader, Topology **ret)
{
    CLEANUP(draft_done) TopologyDraft draft = {.topology = calloc(1, sizeof(Topology))};
    Topology *t = draft.topology;
    int r;

    if (!t)
        return -ENOMEM;
    t->n_ref = 1;

    if (!record_is(reader, "topology"))
        return record_expected(reader, "a line \"topology ...\"");
    r = record_read(reader, topology_fields, ARRAY_SIZE(topology_fields), t);
    if (r == 0 && !t->source)
        r = record_expected(reader, "source= a string");
    if (r == 0)
        r = record_next(reader);
    while (r == 0 && reader->kind) {
        if (record_is(reader, "node") && t->n_cpus == 0)
            r = read_node(reader, &draft);
        else if (record_is(reader, "cpu") && t->n_domains == 0)
            r = read_cpu(reader, &draft);
        else if (record_is(reader, "domain"))
            r = read_domain(reader, &draft);
        else
            break;
        if (r == 0)
            r = record_next(reader);
    }
    if (r == 0)
        r = finish(reader, &draft);
    if (r < 0)
        return r;

    *ret = topology_ref(t); /* draft_done() drops the draft's reference */
    return 0;
}
