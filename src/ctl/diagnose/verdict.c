/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The share of local accesses has bounds that hold whichever thread uses which part of the memory. With the shares r
 * of run time and m of memory by node, at most the sum of min(r, m) is local (each node's threads use the memory
 * there), at least the sum of max(0, r + m - 1) (they use all other memory first), and the sum of r x m if all memory
 * is used evenly. As far as memory is its own, a thread that ran on several nodes was local at most while on one of
 * them. This tells threads that wander from threads that stay beside their own memory.
 *
 * The gain is bounded by the distances in the firmware's tables: if all of the time were accesses, it would shrink
 * like the mean distance, from now to the best place. No program only accesses memory, so the gain is "at most". */

#include "ctl/diagnose/verdict.h"

/* All of these are choices of ours. */

/* Less CPU time is not worth a place. */
#define IDLE_PERMILLE 50U
/* Fits at least mostly in last-level caches. */
#define SMALL_BYTES (64ULL << 20)
/* Of the CPU time wanted; less is the granularity of scheduling. */
#define WAITS_PERMILLE 150U
/* This much idle time is a CPU that could have been used. */
#define IDLE_CPU_PERMILLE 500U
/* More local accesses than this would not pay. */
#define LOCAL_PERMILLE 800U
/* With fewer local accesses, something is wrong. */
#define FAR_PERMILLE 500U
/* A better place must be better by this much. */
#define BETTER_PERMILLE 150U
/* From this share of run time on, it runs on a node. */
#define RUNS_PERMILLE 100U
/* From this share on, nearly all of something is in one place. */
#define MOST_PERMILLE 750U

typedef struct NameText {
    const char *name, *text;
} NameText;

static const NameText verdicts[DIAGNOSE_MAX] = {
    [DIAGNOSE_UNREADABLE] =
        {"unreadable",
         "Unknown, because where its memory lies could not be read: try again as root, or for longer."},
    [DIAGNOSE_ONE_NODE] = {"one-node", "NUMA does not matter here: the machine has one node."},
    [DIAGNOSE_IDLE] = {"idle", "NUMA does not matter here: it hardly runs."},
    [DIAGNOSE_SMALL] = {"small", "NUMA does not matter here: its memory is small enough for caches."},
    [DIAGNOSE_PLACED] = {"placed", "numaplaced places it: numaplacectl explain says more."},
    [DIAGNOSE_LOCAL] = {"local", "NUMA does not matter here: most of what it uses is near its threads."},
    [DIAGNOSE_FULL] = {"full", "Its threads wait for CPUs, and no CPU is idle: the machine is full."},
    [DIAGNOSE_WAITS] = {"waits", "Its threads wait for CPUs, while CPUs that they may use are idle."},
    [DIAGNOSE_PIN_WAITS] = {"pin-waits",
                            "Its threads wait for CPUs, while CPUs that they may not use are idle."},
    [DIAGNOSE_PIN_FAR] = {"pin-far", "Its threads may not run where most of its memory lies."},
    [DIAGNOSE_BOUND_FAR] = {"bound-far", "Its memory is bound to nodes where its threads hardly run."},
    [DIAGNOSE_THREADS_FAR] = {"threads-far",
                              "Its threads run far from its memory, which lies where they have room."},
    [DIAGNOSE_MEMORY_FAR] = {"memory-far", "Its memory lies far from its threads, and would have to move."},
    [DIAGNOSE_BANDWIDTH] = {"bandwidth",
                            "It needs more than one node, and most of its memory lies on one: that "
                            "node's bandwidth is likely to be the limit."},
    [DIAGNOSE_UNCERTAIN] = {"uncertain",
                            "Unknown, because it is not known which thread uses which part of its memory."},
    [DIAGNOSE_NOWHERE] = {"nowhere",
                          "Much of its memory is remote, and no place was found where less of it would be."},
};

const char *diagnose_verdict_name(DiagnoseVerdict verdict)
{
    return verdicts[verdict].name;
}

const char *diagnose_verdict_text(DiagnoseVerdict verdict)
{
    return verdicts[verdict].text;
}

bool diagnose_is_alarm(DiagnoseVerdict verdict)
{
    return verdict == DIAGNOSE_WAITS || verdict == DIAGNOSE_PIN_WAITS || verdict == DIAGNOSE_PIN_FAR ||
           verdict == DIAGNOSE_BOUND_FAR || verdict == DIAGNOSE_THREADS_FAR ||
           verdict == DIAGNOSE_MEMORY_FAR || verdict == DIAGNOSE_BANDWIDTH;
}

typedef struct Shares {
    uint64_t bytes, run;     /* of all nodes */
    uint32_t memory_node;    /* with the most memory */
    double memory_most;      /* its share */
    double run_most;         /* share of run time on the node with the most */
    uint32_t n_run;          /* nodes that it runs on, not just occasionally */
    double distance, better; /* mean over all accesses, now and at home; 1: local */
} Shares;

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

static bool is_in(hwloc_const_bitmap_t nodes, uint32_t node)
{
    return nodes && hwloc_bitmap_isset(nodes, node);
}

static bool at_home(const DiagnoseFacts *facts, uint32_t node)
{
    return is_in(facts->home_nodes, node);
}

static double memory_on(const DiagnoseFacts *facts, const Shares *shares, hwloc_const_bitmap_t nodes)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < facts->topology->n_nodes; i++)
        sum += is_in(nodes, i) ? share(facts->node_bytes[i], shares->bytes) : 0.0;
    return sum;
}

static void sum_up(const DiagnoseFacts *facts, Shares *ret)
{
    for (uint32_t i = 0; i < facts->topology->n_nodes; i++) {
        ret->bytes += facts->node_bytes[i];
        ret->run += facts->run_node[i];
    }
    for (uint32_t i = 0; i < facts->topology->n_nodes; i++) {
        double memory = share(facts->node_bytes[i], ret->bytes), run = share(facts->run_node[i], ret->run);

        if (memory > ret->memory_most) {
            ret->memory_most = memory;
            ret->memory_node = i;
        }
        ret->run_most = MAX(ret->run_most, run);
        ret->n_run += run * 1000.0 >= RUNS_PERMILLE;
    }
}

/* Mean distance of accesses from the nodes it runs on to the nodes of its memory, if all memory is used evenly. */
static double mean_distance(const DiagnoseFacts *facts, const Shares *shares)
{
    const Topology *topology = facts->topology;
    double sum = 0.0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        for (uint32_t k = 0; k < topology->n_nodes; k++)
            sum += share(facts->run_node[i], shares->run) * share(facts->node_bytes[k], shares->bytes) *
                   topology->distances[(size_t)i * topology->n_nodes + k] / 10.0;
    return sum;
}

/* The same at home, with threads and memory spread evenly over its nodes. */
static double mean_distance_at_home(const DiagnoseFacts *facts)
{
    const Topology *topology = facts->topology;
    double sum = 0.0, n = 0.0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        for (uint32_t k = 0; k < topology->n_nodes; k++)
            if (at_home(facts, i) && at_home(facts, k)) {
                sum += topology->distances[(size_t)i * topology->n_nodes + k] / 10.0;
                n += 1.0;
            }
    return n > 0.0 ? sum / n : 1.0;
}

static void find_bounds(const DiagnoseFacts *facts, const Shares *shares, Diagnosis *ret)
{
    double even = 0.0, least = 0.0, most = 0.0, stays = share(facts->run_stays, shares->run);

    for (uint32_t i = 0; i < facts->topology->n_nodes; i++) {
        double run = share(facts->run_node[i], shares->run),
               memory = share(facts->node_bytes[i], shares->bytes);

        even += run * memory;
        most += MIN(run, memory);
        least += MAX(run + memory - 1.0, 0.0);
    }
    ret->local = (uint32_t)(even * 1000.0 + 0.5);
    ret->local_least = (uint32_t)(least * 1000.0 + 0.5);
    ret->local_most = MAX((uint32_t)(MIN(most, stays) * 1000.0 + 0.5), ret->local);
}

static uint32_t saved(double before, double after)
{
    return before > after ? (uint32_t)((1.0 - after / before) * 1000.0 + 0.5) : 0;
}

/* Whether waiting is the problem. */
static bool judge_waiting(const DiagnoseFacts *facts, Diagnosis *ret)
{
    if (ret->waits < WAITS_PERMILLE || facts->wait < IDLE_PERMILLE)
        return false;
    ret->gain_most = ret->waits;
    if (facts->idle_allowed >= IDLE_CPU_PERMILLE)
        ret->verdict = DIAGNOSE_WAITS;
    else if (facts->pinned && facts->idle_cpuset >= facts->idle_allowed + IDLE_CPU_PERMILLE)
        ret->verdict = DIAGNOSE_PIN_WAITS;
    else if (facts->confined && facts->idle_machine >= facts->idle_cpuset + IDLE_CPU_PERMILLE) {
        ret->verdict = DIAGNOSE_PIN_WAITS;
        ret->by_cpuset = true;
    } else {
        ret->gain_most = 0;
        return false;
    }
    return true;
}

/* Whether most of its memory is on nodes with CPUs, none of which it may use. */
static bool kept_off(const DiagnoseFacts *facts, const Shares *shares, hwloc_const_bitmap_t nodes)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < facts->topology->n_nodes; i++)
        if (facts->topology->nodes[i].n_cpus > 0 && !is_in(nodes, i))
            sum += share(facts->node_bytes[i], shares->bytes);
    return sum * 1000.0 > 1000.0 - FAR_PERMILLE;
}

/* Whether masks, cpusets or memory policies keep its memory and its threads apart. */
static bool judge_pins(const DiagnoseFacts *facts, const Shares *shares, Diagnosis *ret)
{
    if (ret->local_most >= FAR_PERMILLE)
        return false;
    if (share(facts->bound_bytes, shares->bytes) * 1000.0 >= MOST_PERMILLE)
        ret->verdict = DIAGNOSE_BOUND_FAR;
    else if (facts->confined && kept_off(facts, shares, facts->cpuset_nodes)) {
        ret->verdict = DIAGNOSE_PIN_FAR;
        ret->by_cpuset = true;
    } else if (facts->pinned && kept_off(facts, shares, facts->allowed_nodes))
        ret->verdict = DIAGNOSE_PIN_FAR;
    else
        return false;
    ret->gain_most = saved(shares->distance, 1.0);
    return true;
}

/* The CPU time that a node offers, or if it has no CPUs, that the node with the most offers. */
static uint64_t room_of(const Topology *topology, uint32_t node)
{
    uint32_t n = topology->nodes[node].n_cpus;

    for (uint32_t i = 0; topology->nodes[node].n_cpus == 0 && i < topology->n_nodes; i++)
        n = MAX(n, topology->nodes[i].n_cpus);
    return n * 1000ULL;
}

static DiagnoseVerdict judge_distance(const DiagnoseFacts *facts, const Shares *shares, Diagnosis *ret)
{
    uint32_t n_home = facts->home_nodes ? (uint32_t)hwloc_bitmap_weight(facts->home_nodes) : 0;
    uint32_t then = n_home > 0 ? 1000 / n_home : 0;

    if (MIN(ret->local, ret->local_least + BETTER_PERMILLE) >= LOCAL_PERMILLE)
        return DIAGNOSE_LOCAL;
    /* It runs on several nodes and needs more CPU time than one node has, but nearly all of its memory is on one. */
    if (shares->memory_most * 1000.0 >= MOST_PERMILLE && shares->run_most * 1000.0 < MOST_PERMILLE &&
        facts->run + facts->wait > room_of(facts->topology, shares->memory_node)) {
        /* On this many nodes it would have the bandwidth of each. */
        ret->gain_most = saved(shares->n_run, 1.0);
        return DIAGNOSE_BANDWIDTH;
    }
    if (n_home > 0 && then >= ret->local_most + BETTER_PERMILLE) {
        double there = memory_on(facts, shares, facts->home_nodes);

        ret->move_bytes = (uint64_t)((1.0 - there) * (double)shares->bytes);
        ret->gain_most = saved(shares->distance, shares->better);
        return there * 1000.0 >= MOST_PERMILLE ? DIAGNOSE_THREADS_FAR : DIAGNOSE_MEMORY_FAR;
    }
    if (ret->local_most >= LOCAL_PERMILLE || (n_home > 0 && then >= ret->local + BETTER_PERMILLE)) {
        ret->gain_most = saved(shares->distance, n_home > 0 ? shares->better : 1.0);
        return DIAGNOSE_UNCERTAIN;
    }
    return DIAGNOSE_NOWHERE;
}

void diagnose(const DiagnoseFacts *facts, Diagnosis *ret)
{
    Shares shares = {0};
    uint64_t wants = facts->run + facts->wait;

    *ret = (Diagnosis){
        .local = DIAGNOSE_UNKNOWN,
        .local_least = DIAGNOSE_UNKNOWN,
        .local_most = DIAGNOSE_UNKNOWN,
        .waits = (uint32_t)(share(facts->wait, wants) * 1000.0 + 0.5),
    };
    if (facts->node_bytes && facts->run > 0) {
        sum_up(facts, &shares);
        if (shares.bytes > 0 && shares.run > 0)
            find_bounds(facts, &shares, ret);
    }
    if (wants < IDLE_PERMILLE) {
        ret->verdict = DIAGNOSE_IDLE;
        return;
    }
    if (facts->placed) {
        ret->verdict = DIAGNOSE_PLACED;
        return;
    }
    if (judge_waiting(facts, ret))
        return;
    if (facts->topology->n_nodes < 2)
        ret->verdict = DIAGNOSE_ONE_NODE;
    else if (!facts->node_bytes)
        ret->verdict = DIAGNOSE_UNREADABLE;
    else if (shares.bytes < SMALL_BYTES || shares.run == 0)
        ret->verdict = DIAGNOSE_SMALL;
    else {
        shares.distance = mean_distance(facts, &shares);
        shares.better = mean_distance_at_home(facts);
        if (judge_pins(facts, &shares, ret))
            return;
        ret->verdict = judge_distance(facts, &shares, ret);
    }
    /* Nothing else is wrong. */
    if (!diagnose_is_alarm(ret->verdict) && ret->waits >= WAITS_PERMILLE && facts->wait >= IDLE_PERMILLE)
        ret->verdict = DIAGNOSE_FULL;
}
