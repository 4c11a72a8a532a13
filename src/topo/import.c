/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads what placement needs from an hwloc topology.
 *
 * Nodes. In hwloc a CPU can be local to several NUMA nodes: a memory-only node (CXL, HBM) has the cpuset of the object
 * it is attached to, or an empty one. Here a CPU has one node, the one the kernel would give it: of the nodes local to
 * it the one with the smallest cpuset, and among equals the one with the lowest number, because Linux numbers nodes
 * with CPUs first. So a node has no CPUs when its cpuset is empty, or when other nodes of the same or a smaller
 * locality took all of them:
 *
 *     node 0 {0-3}  node 1 {4-7}  node 2 {0-7}   ->  0-3, 4-7, none (CXL behind the package)
 *     node 0 {0-3}  node 1 {0-3}                 ->  0-3, none      (CXL or HBM beside the DRAM)
 *
 * A CPU that no node claims is left out, because nothing is known about its memory.
 *
 * Restriction. hwloc would drop a disallowed node together with its CPUs' locality, so everything is loaded and
 * restricted here. Disallowed CPUs are left out. A disallowed node that has allowed CPUs stays, without memory; others
 * are left out.
 *
 * Bandwidth. It comes from firmware (ACPI HMAT), which most machines do not have; see build_bandwidth() for those.
 * Linux reports MB/s, as ACPI does, and hwloc passes that on.
 *
 * LLC. It is the outermost data or unified cache above the CPU, whatever its level: usually L3, L2 on machines without
 * L3. Where hwloc sees no cache at all (some virtual machines) each core counts as its own LLC, which is the Linux
 * scheduler's fallback on x86. One LLC for all CPUs would assume sharing of a cache that was never seen. */

#include "topo/build.h"

#include "base/parse.h"

#define BANDWIDTH_MIN_MB 6400U

static int compare_locality(const void *a, const void *b)
{
    const struct hwloc_obj *x = *(struct hwloc_obj *const *)a, *y = *(struct hwloc_obj *const *)b;
    int w = hwloc_bitmap_weight(x->cpuset), v = hwloc_bitmap_weight(y->cpuset);

    if (w != v)
        return w < v ? -1 : 1;
    return x->os_index < y->os_index ? -1 : x->os_index > y->os_index;
}

static int compare_nodes(const void *a, const void *b)
{
    const TopologyNode *x = a, *y = b;

    return x->os_index < y->os_index ? -1 : x->os_index > y->os_index;
}

uint32_t topology_bandwidth(uint64_t mb)
{
    return mb >= BANDWIDTH_MIN_MB ? (uint32_t)MIN(mb, (uint64_t)TOPOLOGY_BANDWIDTH_MAX) : 0;
}

/* Bandwidth from the nearest CPUs; read bandwidth if only that is reported. */
static uint32_t import_bandwidth(hwloc_topology_t hwloc, hwloc_obj_t node)
{
    static const hwloc_memattr_id_t attributes[] = {HWLOC_MEMATTR_ID_BANDWIDTH,
                                                    HWLOC_MEMATTR_ID_READ_BANDWIDTH};

    for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
        struct hwloc_location from;
        hwloc_uint64_t mb;

        if (hwloc_memattr_get_best_initiator(hwloc, attributes[i], node, 0, &from, &mb) == 0)
            return topology_bandwidth(mb);
    }
    return 0;
}

static int import_node(Topology *topology, hwloc_topology_t hwloc, hwloc_obj_t obj, bool allowed,
                       hwloc_bitmap_t unclaimed)
{
    CLEANUP_BITMAP hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    uint32_t n_cpus;

    if (!cpus || hwloc_bitmap_and(cpus, obj->cpuset, unclaimed) < 0 ||
        hwloc_bitmap_andnot(unclaimed, unclaimed, cpus) < 0)
        return -ENOMEM;
    n_cpus = (uint32_t)hwloc_bitmap_weight(cpus);
    if (!allowed && n_cpus == 0)
        return 0;
    topology->nodes[topology->n_nodes++] = (TopologyNode){
        .os_index = obj->os_index,
        .n_cpus = n_cpus,
        .cpus = TAKE_PTR(cpus),
        .memory_bytes = allowed ? obj->attr->numanode.local_memory : 0,
        .bandwidth_mb = allowed ? import_bandwidth(hwloc, obj) : 0,
    };
    return 0;
}

/* Fills topology->nodes and drops CPUs that no node claims from topology->all_cpus. */
static int import_nodes(Topology *topology, hwloc_topology_t hwloc, hwloc_const_nodeset_t allowed)
{
    int n = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_NUMANODE), r = 0;
    CLEANUP_FREE hwloc_obj_t *order = NULL;
    CLEANUP_BITMAP hwloc_bitmap_t unclaimed = NULL;

    if (n <= 0)
        return -ENODATA;
    order = calloc((size_t)n, sizeof(hwloc_obj_t));
    topology->nodes = calloc((size_t)n, sizeof(TopologyNode));
    if (!order || !topology->nodes)
        return -ENOMEM;
    unclaimed = hwloc_bitmap_dup(topology->all_cpus);
    if (!unclaimed)
        return -ENOMEM;

    for (int i = 0; i < n; i++)
        order[i] = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, (unsigned)i);
    qsort(order, (size_t)n, sizeof(hwloc_obj_t), compare_locality);
    for (int i = 0; r == 0 && i < n; i++)
        r = import_node(topology, hwloc, order[i], hwloc_bitmap_isset(allowed, order[i]->os_index),
                        unclaimed);
    qsort(topology->nodes, topology->n_nodes, sizeof(TopologyNode), compare_nodes);
    if (r == 0 && hwloc_bitmap_andnot(topology->all_cpus, topology->all_cpus, unclaimed) < 0)
        r = -ENOMEM;
    return r;
}

/* The outermost cache above `pu`, or NULL. */
static hwloc_obj_t outermost_cache(hwloc_obj_t pu)
{
    hwloc_obj_t cache = NULL;

    for (hwloc_obj_t obj = pu->parent; obj; obj = obj->parent)
        if (hwloc_obj_type_is_dcache(obj->type))
            cache = obj;
    return cache;
}

static int new_llc(Topology *topology, size_t *capacity, LlcIx *ret)
{
    TopologyLlc llc = {.cpus = hwloc_bitmap_alloc(), .nodes = hwloc_bitmap_alloc()};

    if (!llc.cpus || !llc.nodes || !GROW(topology->llcs, *capacity, (size_t)topology->n_llcs + 1)) {
        hwloc_bitmap_free(llc.cpus);
        hwloc_bitmap_free(llc.nodes);
        return -ENOMEM;
    }
    *ret = (LlcIx){(int32_t)topology->n_llcs};
    topology->llcs[topology->n_llcs++] = llc;
    return 0;
}

/* Numbers cores and LLCs in the order of their lowest CPU. CPUs come in ascending order, and hwloc's userdata
 * of a core or cache points to the entry of the first CPU seen in it. */
static int import_cpu(Topology *topology, hwloc_topology_t hwloc, hwloc_obj_t pu, size_t *capacity)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, pu), cache = outermost_cache(pu);
    TopologyCpu *cpu = &topology->cpus[pu->os_index];
    const TopologyCpu *core_first, *llc_first;
    int r;

    core = core ? core : pu;
    core_first = core->userdata;
    llc_first = cache ? cache->userdata : core_first;

    cpu->core = core_first ? core_first->core : (CoreIx){(int32_t)topology->n_cores++};
    if (!core_first)
        core->userdata = cpu;

    if (llc_first) {
        cpu->llc = llc_first->llc;
    } else {
        r = new_llc(topology, capacity, &cpu->llc);
        if (r < 0)
            return r;
        if (cache)
            cache->userdata = cpu;
    }
    cpu->present = true;
    return hwloc_bitmap_set(topology->llcs[cpu->llc.i].cpus, pu->os_index) < 0 ? -ENOMEM : 0;
}

static int import_cpus(Topology *topology, hwloc_topology_t hwloc)
{
    CLEANUP_FREE hwloc_obj_t *pus = NULL;
    size_t capacity = 0;
    int cpu, r = 0;

    topology->n_cpus = (uint32_t)hwloc_bitmap_weight(topology->all_cpus);
    topology->cpu_limit = (uint32_t)hwloc_bitmap_last(topology->all_cpus) + 1;
    topology->cpus = calloc(topology->cpu_limit, sizeof(TopologyCpu));
    pus = calloc(topology->cpu_limit, sizeof(hwloc_obj_t));
    if (!topology->cpus || !pus)
        return -ENOMEM;

    for (uint32_t i = 0; i < topology->cpu_limit; i++)
        topology->cpus[i] = (TopologyCpu){.node = NODE_NONE, .llc = LLC_NONE, .core = CORE_NONE};
    for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PU, pu));)
        if (pu->os_index < topology->cpu_limit)
            pus[pu->os_index] = pu;

    hwloc_bitmap_foreach_begin (cpu, topology->all_cpus)
        if (r == 0)
            r = pus[cpu] ? import_cpu(topology, hwloc, pus[cpu], &capacity) : -ENODATA;
hwloc_bitmap_foreach_end
();
for (uint32_t i = 0; i < topology->n_nodes; i++) {
    hwloc_bitmap_foreach_begin (cpu, topology->nodes[i].cpus)
        topology->cpus[cpu].node = (NodeIx){(int32_t)i};
hwloc_bitmap_foreach_end
();
}
return r;
}

/* Copies hwloc's matrix. `index` has room for one NodeIx per row. False if the matrix is incomplete or has
 * values that no SLIT can have. */
static bool copy_distances(Topology *topology, const struct hwloc_distances_s *matrix, NodeIx *index)
{
    size_t n = topology->n_nodes;

    for (unsigned i = 0; i < matrix->nbobjs; i++) {
        const struct hwloc_obj *obj = matrix->objs[i];

        index[i] = obj->type == HWLOC_OBJ_NUMANODE ? topology_node_by_os(topology, obj->os_index) : NODE_NONE;
    }
    for (unsigned i = 0; i < matrix->nbobjs; i++)
        for (unsigned j = 0; j < matrix->nbobjs; j++) {
            uint64_t value = matrix->values[(size_t)i * matrix->nbobjs + j];

            if (index[i].i < 0 || index[j].i < 0) /* a node that was left out */
                continue;
            if (value > DISTANCE_MAX || value < DISTANCE_LOCAL)
                return false;
            topology->distances[(size_t)index[i].i * n + (size_t)index[j].i] = (uint32_t)value;
        }
    for (size_t i = 0; i < n * n; i++)
        if (topology->distances[i] == 0 || (i % (n + 1) == 0 && topology->distances[i] != DISTANCE_LOCAL))
            return false;
    return true;
}

/* Fills topology->distances from hwloc's matrix. 1: done. 0: there is no valid matrix. -ENOMEM. */
static int find_distances(Topology *topology, hwloc_topology_t hwloc)
{
    struct hwloc_distances_s *matrix = NULL;
    CLEANUP_FREE NodeIx *index = NULL;
    unsigned n_matrices = 1;
    int r = 0;

    if (hwloc_distances_get_by_name(hwloc, "NUMALatency", &n_matrices, &matrix, 0) < 0 || n_matrices == 0)
        return 0;
    index = calloc(matrix->nbobjs, sizeof(*index));
    r = index ? copy_distances(topology, matrix, index) : -ENOMEM;
    hwloc_distances_release(hwloc, matrix);
    return r;
}

/* Linux falls back to 10 and 20 if the firmware's SLIT makes no sense; so does this. */
static int import_distances(Topology *topology, hwloc_topology_t hwloc)
{
    size_t n = topology->n_nodes;
    int r;

    assert(n > 0); /* there are CPUs, and each is in a node */
    topology->distances = calloc(n * n, sizeof(uint32_t));
    if (!topology->distances)
        return -ENOMEM;

    r = find_distances(topology, hwloc);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < n * n; i++)
        topology->distances[i] = i % (n + 1) == 0 ? DISTANCE_LOCAL : DISTANCE_REMOTE;
    topology->distances_known = r > 0 || n == 1; /* one node: nothing was assumed */
    return 0;
}

int import_hwloc(Topology *topology, hwloc_topology_t hwloc, bool restrict_to_allowed, char **ret_error)
{
    hwloc_const_bitmap_t cpus = hwloc_topology_get_topology_cpuset(hwloc);
    hwloc_const_bitmap_t nodes = hwloc_topology_get_topology_nodeset(hwloc);
    int r;

    if (hwloc_bitmap_last(cpus) > (int)PARSE_CPU_MAX)
        return format_error(ret_error, -EINVAL, "CPU numbers above %u are not supported.", PARSE_CPU_MAX);
    if (hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_NUMANODE) > (int)NODES_MAX)
        return format_error(ret_error, -EINVAL, "More than %u NUMA nodes are not supported.", NODES_MAX);

    topology->all_cpus = hwloc_bitmap_dup(cpus);
    if (!topology->all_cpus)
        return -ENOMEM;
    topology->restricted = restrict_to_allowed;
    if (restrict_to_allowed) {
        nodes = hwloc_topology_get_allowed_nodeset(hwloc);
        if (hwloc_bitmap_and(topology->all_cpus, cpus, hwloc_topology_get_allowed_cpuset(hwloc)) < 0)
            return -ENOMEM;
    }

    r = import_nodes(topology, hwloc, nodes);
    if (r < 0)
        return r;
    for (uint32_t i = 1; i < topology->n_nodes; i++)
        if (topology->nodes[i].os_index == topology->nodes[i - 1].os_index)
            return format_error(ret_error, -EINVAL, "Two NUMA nodes have the number %u.",
                                topology->nodes[i].os_index);
    if (hwloc_bitmap_iszero(topology->all_cpus))
        return format_error(ret_error, -EINVAL, "No CPU belongs to a NUMA node.");
    r = import_cpus(topology, hwloc);
    if (r < 0)
        return r;
    return import_distances(topology, hwloc);
}
