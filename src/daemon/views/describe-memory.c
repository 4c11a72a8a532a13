/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where memory lies, summed over what was asked about, and what is done about it. This is residency (evidence
 * D): how much of each process, not which thread uses it. */

#include "daemon/views/describe.h"

#include "plan/group.h"
#include "policy/policy.h"

typedef struct MemorySum {
    uint64_t *bytes;      /* [n_nodes] */
    uint64_t oldest_usec; /* of the oldest reading */
    uint64_t all_bytes;
    uint32_t n_known, n_unknown;
    uint64_t stall_sum, traffic_sum, stall_weight; /* of processes with counts, weighted by CPU time */
    uint64_t todo_bytes;                           /* of migration requests in flight */
    uint32_t n_moving;
} MemorySum;

static void add(MemorySum *sum, const Topology *topology, const Process *process)
{
    sum->todo_bytes += process->memory.todo_bytes;
    sum->n_moving += process->memory.to != NULL;
    if (process->stall_usec > 0) {
        sum->stall_weight += MAX(process->cpu_permille, 1U);
        sum->stall_sum += (uint64_t)MAX(process->cpu_permille, 1U) * process->stall_permille;
        sum->traffic_sum += (uint64_t)process->cpu_permille * process->traffic_mb;
    }
    if (!process->node_bytes) {
        sum->n_unknown++;
        return;
    }
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        sum->bytes[i] += process->node_bytes[i];
        sum->all_bytes += process->node_bytes[i];
    }
    sum->oldest_usec =
        sum->n_known > 0 ? MIN(sum->oldest_usec, process->node_bytes_usec) : process->node_bytes_usec;
    sum->n_known++;
}

static void put_node(Dict *dict, const World *world, uint32_t node, uint64_t bytes)
{
    dict_begin(dict);
    dict_u32(dict, "node", world->topology->nodes[node].os_index);
    dict_u64(dict, "bytes", bytes);
    dict_end(dict);
}

/* The share of the node with most of the memory (P16, strength of convergence). */
static uint32_t strength_permille(const World *world, const MemorySum *sum)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        most = MAX(most, sum->bytes[i]);
    return sum->all_bytes > 0 ? (uint32_t)(most / MAX(sum->all_bytes / 1000, 1U)) : 0;
}

/* Whether memory of this workload follows its homes, as far as it is not left to the kernel's balancing. */
static bool follows(const Manager *manager, WorkloadIx workload)
{
    const Policy *policy = group_policy(manager->world, manager->policies, workload);

    return policy && policy->follow && manager->orders;
}

/* Whether it is also interleaved over the nodes of its home (P17, interleaving). */
static bool stripes(const Manager *manager, WorkloadIx workload)
{
    const Policy *policy = group_policy(manager->world, manager->policies, workload);

    return follows(manager, workload) && policy->mode == POLICY_MODE_INTERLEAVE &&
           !manager->world->kernel_balances;
}

static void put(Dict *dict, const Manager *manager, WorkloadIx workload, const MemorySum *sum)
{
    const World *world = manager->world;
    uint64_t age = sum->n_known > 0 ? world->now_usec - MIN(sum->oldest_usec, world->now_usec) : 0;

    dict_list_begin(dict, "memory");
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (sum->bytes[i] > 0)
            put_node(dict, world, i, sum->bytes[i]);
    dict_list_end(dict, "memory");
    dict_u64(dict, "memory_bytes", sum->all_bytes);
    dict_string(dict, "memory_evidence",
                sum->n_known > 0 ? policy_evidence_names[POLICY_EVIDENCE_RESIDENCY] : NULL);
    dict_u64(dict, "memory_age_usec", age);
    dict_u32(dict, "memory_unknown", sum->n_unknown);
    dict_u32(dict, "memory_strength_permille", MIN(strength_permille(world, sum), 1000U));
    dict_i32(dict, "memory_stall_permille",
             sum->stall_weight > 0 ? (int32_t)(sum->stall_sum / sum->stall_weight) : -1);
    dict_u64(dict, "memory_traffic_bytes_per_sec", sum->traffic_sum * 1000);
    dict_bool(dict, "memory_follows", follows(manager, workload));
    dict_bool(dict, "memory_striped", stripes(manager, workload));
    dict_u32(dict, "memory_moving", sum->n_moving);
    dict_u64(dict, "memory_todo_bytes", sum->todo_bytes);
}

static void put_account(Dict *dict, const MemoryAccount *account)
{
    dict_u64(dict, "memory_orders", account->n_orders);
    dict_u64(dict, "memory_moved_bytes", account->moved_bytes);
    dict_u64(dict, "memory_refused_bytes", account->refused_bytes);
    dict_u64(dict, "memory_blocked_usec", account->blocked_usec);
}

/* Allocates the array of a sum; NULL with the error in the Dict. */
static uint64_t *new_bytes(Dict *dict, const World *world)
{
    uint64_t *bytes = calloc(MAX(world->topology->n_nodes, 1U), sizeof(*bytes));

    dict_check(dict, bytes ? 0 : -ENOMEM);
    return bytes;
}

void describe_memory(Dict *dict, const Manager *manager, WorkloadIx workload, GroupIx group)
{
    const World *world = manager->world;
    CLEANUP_FREE uint64_t *bytes = new_bytes(dict, world);
    MemorySum sum = {.bytes = bytes};

    if (!bytes)
        return;
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];

        if (!process->gone && process->workload.i == workload.i &&
            (group.i < 0 || process->group.i == group.i))
            add(&sum, world->topology, process);
    }
    put(dict, manager, workload, &sum);
    put_account(dict, group.i < 0 ? &world->workloads[workload.i].memory : &world->groups[group.i].memory);
}

void describe_memory_of_process(Dict *dict, const Manager *manager, const Process *process)
{
    const World *world = manager->world;
    CLEANUP_FREE uint64_t *bytes = new_bytes(dict, world);
    MemorySum sum = {.bytes = bytes};

    if (!bytes)
        return;
    add(&sum, world->topology, process);
    put(dict, manager, process->workload, &sum);
}

void describe_free_memory(Dict *dict, const World *world)
{
    dict_list_begin(dict, "free");
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (world->nodes[i].free_known)
            put_node(dict, world, i, world->nodes[i].free_bytes);
    dict_list_end(dict, "free");
}

int32_t describe_memory_node(const World *world, const Process *process)
{
    uint32_t best = 0;

    for (uint32_t i = 1; process->node_bytes && i < world->topology->n_nodes; i++)
        if (process->node_bytes[i] > process->node_bytes[best])
            best = i;
    return process->node_bytes && process->node_bytes[best] > 0
               ? (int32_t)world->topology->nodes[best].os_index
               : -1;
}

void describe_mover(Dict *dict, const Manager *manager)
{
    MoverStatistics statistics = {0};
    const MoverAccount *account = &statistics.account;

    if (manager->orders)
        mover_statistics(orders_mover(manager->orders), &statistics);
    dict_bool(dict, "memory_moves", manager->orders != NULL);
    dict_bool(dict, "kernel_balances", manager->world->kernel_balances);
    dict_u32(dict, "memory_pressure_permille", manager->world->memory_pressure_permille);
    dict_u32(dict, "memory_moving", (uint32_t)statistics.n_orders);
    dict_u64(dict, "memory_moved_bytes", account->moved_bytes);
    dict_u64(dict, "memory_huge_pages", account->n_huge);
    dict_u64(dict, "memory_blocked_usec", account->blocked_usec);
    dict_u64(dict, "memory_longest_usec", account->longest_usec);
    dict_u64(dict, "memory_rate_bytes", statistics.rate_bytes);
    dict_u32(dict, "memory_hanging", (uint32_t)statistics.n_hanging);
    dict_counters(dict, "memory_outcomes", statistics.n_outcome, MOVER_OUTCOME_MAX, mover_outcome_names);
    dict_counters(dict, "memory_refused", account->refused_bytes, MOVER_REASON_MAX, mover_reason_names);
}
