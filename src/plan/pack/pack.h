/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which nodes each group should live on, with all groups of the machine considered together: compress, spread and flip
 * (P15) under the load rules of P5 and P6. A pure function of numbers that knows neither World nor policies.
 *
 * Loads and demands are in permille of a CPU. Demand is run time plus runnable wait. Run time alone would shrink a
 * group that starves, and the next packing would put it where it starves more. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_NODES_MAX   64U   /* nodes of a machine, including those without CPUs */
#define PACK_GROUPS_MAX  4096U /* with more, the costs could overflow */
#define PACK_TRAFFIC_MAX (1ULL << 32)
#define PACK_DEMAND_MAX  (1U << 22) /* permille; larger capacities and demands are cut to it */

/* A set of nodes: bit i is PackProblem.nodes[i]. */
typedef uint64_t PackNodes;

typedef struct PackNode {
    uint32_t capacity_permille; /* usable CPUs minus what others use; 0: none, and the node is in no result */
    uint32_t size_permille;     /* usable CPUs including what others use; at least the capacity is assumed */
    /* 1000 for each core with a usable CPU, minus what others use; 0: unknown, and threads are never counted
     * as sharing a core */
    uint32_t cores_permille;
    /* Load of others here that presses on the node's memory, as private_permille of a group does */
    uint32_t heavy_permille;
    /* Bandwidth of its memory; MB/s, up to PACK_TRAFFIC_MAX. 0: unknown, and taken to be its share of all traffic */
    uint64_t traffic_mb;
    uint64_t free_bytes; /* memory that may still come here: what is free, minus the headroom */
    /* Breaks ties, lower first; distinct. The lowest CPU of the node, which does not change when nodes are
     * renamed (I12) */
    uint32_t key;
} PackNode;

typedef enum PackMode {
    PACK_MODE_COMPRESS, /* the fewest and nearest nodes that fit; need for bandwidth is ignored */
    PACK_MODE_AUTO,     /* the same, but spread where bandwidth is worth more than being together */
    /* as many nodes as help; distance between its threads costs nothing, and memory is expected to follow */
    PACK_MODE_SPREAD,
    PACK_MODE_MAX,
} PackMode;

typedef struct PackGroup {
    uint64_t id; /* breaks ties, lower first; distinct */
    PackMode mode;
    uint32_t demand_permille;
    /* Mode=auto: the share of its memory use that is private to a thread. For that share threads need not be together,
     * so they should not press on the memory of one node. 0: all is shared, or unknown. Mode=spread: taken as 1000 */
    uint32_t private_permille;
    /* Share of its memory use that is private to a thread and on one node for each */
    uint32_t sorted_permille;
    /* Mode=auto: share of its memory use that few threads share, if these fit a node. They need not be near
     * the others */
    uint32_t few_permille;
    /* Mode=auto: demand of threads that run all the time. Two of them on one core always slow each other down */
    uint32_t steady_permille;
    /* Variance of the number of threads that want a CPU at one instant, in permille. For n threads that each
     * want one for a part u of the time it is n u (1 - u) */
    uint32_t variance_permille;
    bool lone;                  /* a single thread, which is on one of its nodes at a time */
    uint32_t min_gain_permille; /* share of its memory accesses that must become local for a move (P6) */
    uint32_t max_nodes;         /* 0: no limit */
    PackNodes home;             /* current home; 0: none yet */
    bool wishes;                /* it has no home yet, and `home` is only its wish */
    PackNodes allowed;          /* the widest set it may have: its cpuset and Nodes= */
    uint32_t cpuset; /* 1 + index of its cpuset if that splits a node; 0: no cpuset, or whole nodes */
    const uint64_t *memory_bytes; /* [n_nodes], below 2^50 each; NULL: not known */
    /* How much less than usual it counts to be near this memory; 1000: not at all. For memory that is only
     * guessed, or so little that caches hold it: distance from rarely fetched memory costs little */
    uint32_t memory_discount_permille;
    /* Mode=auto: how much less than usual distance counts, from this memory and between its threads, because
     * its threads hardly ever wait for memory; up to 1000 */
    uint32_t stall_discount_permille;
    /* Mode=auto: memory bandwidth that it wants from its nodes; MB/s, up to PACK_TRAFFIC_MAX */
    uint64_t traffic_mb;
    /* Fixed, frozen or within its residency: it keeps its home; without a home it roams over `allowed` */
    bool stays;
    /* MinAgeSec= not reached: it keeps a home that it has. It may get a first home, as small as fits unless
     * what its threads use alone presses on a node */
    bool young;
} PackGroup;

typedef struct PackProblem {
    const PackNode *nodes;
    const uint32_t *distances; /* [n_nodes * n_nodes], row-major, 10 = local */
    uint32_t n_nodes;
    /* Load that may press on one node's memory before it counts (P5, imb_numa_nr) */
    uint32_t allowed_imbalance_permille;
    /* The permille of all demand that the machine can give, if that is not all; demands have been cut to it. 0: all */
    uint32_t share_permille;
    /* [n_cpusets * n_nodes]: CPUs of each cpuset on each node, permille of a CPU. All groups of a cpuset
     * share them; CPUs in several cpusets are counted for each */
    const uint32_t *cpusets;
    uint32_t n_cpusets;
    const PackGroup *groups;
    uint32_t n_groups;
} PackProblem;

/* What a packing costs. The unit is 1/64 of a permille of a CPU whose memory is one unit of distance further
 * away than local. `far` is the largest distance of the machine minus 10, at least 1. Sums over all groups:
 *
 *   remote    weight x mean of (distance - 10) from a node of its set to its memory, weighted by bytes, as
 *             things are now. The weight of a group is its demand: threads wait for memory, and bytes of
 *             different groups cannot be compared. The product is reduced by memory_discount_permille, then
 *             by stall_discount_permille. In Mode=spread a quarter of the rest remains, because memory is to
 *             follow the threads. With a quarter, 16 such groups of one thread, born on one of two nodes of
 *             40 CPUs, end 8 and 8: on the ninth `crowd` saves 8 x (4^2 + 2^2 - 2 x 3^2) / 40 = 0.4, and a
 *             third would not be less than that while the averages of new threads are still rising. For the
 *             same reason half remains for a single thread that uses all its memory alone.
 *             Memory that threads use alone is beside its user as far as there is room: an equal part of the
 *             demand for each node, or what presses on no memory (P5). The rest counts as above, and so does
 *             all memory of a lone thread, which is on all of its nodes in turn. What few share counts a
 *             quarter on several nodes: they go to one of these, and it follows them
 *   split     weight x mean of (distance - 10) between two nodes of its set, a node with itself included.
 *             Exempt are lone threads, what few share, and what each thread uses alone, has on one node, and
 *             is beside. (Memory elsewhere than on the node with most of it excuses twice as much at most: a
 *             little elsewhere is no reason to be apart.) All but an eighth is reduced by
 *             stall_discount_permille: what threads exchange through their caches is no miss. Also far / 128
 *             for each node beyond the first: otherwise a group with all its memory on node 0 would be as
 *             well off on both as on node 1 alone, and noise would decide
 *   move      weight x far x min_gain_permille / 1000, when a home changes. The weight is not reduced: the
 *             less memory counts, the more of it must become local
 *
 * and sums over all nodes, where each group's demand is divided over its set in proportion to the room there,
 * groups of few nodes first:
 *
 *   overload  32 x far x (demand beyond 108 % of the capacity), up to which P6 calls a node fully busy, not
 *             overloaded. Half a CPU is never an overload: otherwise a thread that wakes now and then would
 *             send one of the groups that fill a node of two CPUs away from its memory. (A quarter of the
 *             node at most: on two nodes of one CPU three threads are one too many. A group on several nodes
 *             has that half once, not for each.) With 32, a group that needs 112 % of a node is better off on
 *             two, even as far apart as nodes can be and with all memory on the first. A group leaves all its
 *             memory for an overload of a 32nd of its demand: fitting comes first
 *   siblings  2 x far x (demand beyond its cores), on a node whose cores have siblings. A thread beside a
 *             busy sibling runs at 0.6 of its speed, and so does the sibling. The loss of 0.8 of a CPU is two
 *             to three times what far memory costs a thread that waits for memory half of its time (80 : 135
 *             ns). So a group prefers cores elsewhere even to siblings beside its memory (P4: idle core, idle
 *             CPU, least loaded).
 *             On a node with siblings, `far` in this entry is at least 10, as if memory elsewhere took twice the
 *             time: what is lost is lost however near the other nodes are (S-NEIGHBOURS). That excludes what
 *             groups on several nodes and cpusets pay. A larger `far` counts as it is: memory is to follow, and
 *             will not be far for long.
 *             Where each CPU is a core of its own, 3/4 x far x (demand beyond them): a thread that waits now
 *             and then would rather wait elsewhere, unless its memory holds it.
 *             With or without siblings, a group on several nodes also pays 3/4 x far x (demand beyond the
 *             cores of all of them): much of its memory is far anyway.
 *             Where cores have siblings, also 1 x far x (demand beyond the cores, of threads that never
 *             pause). They slow each other down all the time: eleven on six cores do two thirds of what they
 *             do on two nodes. All groups on the node count together: of eight such threads in two groups, on
 *             two nodes of two cores, each shares a core in any case.
 *             Also 4 x far x (their demand beyond the CPUs), if the machine has enough for all. Half a CPU is
 *             no overload, but one of these threads waits for good, or all for a part of the time, while a
 *             CPU is idle. That costs more than far memory costs three, and their memory follows them.
 *             For threads that pause, 3 x far x (demand that at times finds no core, beyond the above), from
 *             mean and variance of all on the node: six threads that run two thirds of the time want five
 *             CPUs as often as three. A lone thread on n nodes has 1 / n^2 of its variance on each, as if it
 *             ran a little on all, since the kernel finds it an idle CPU. So threads that pause share nodes
 *             that are hardly further from their memory. The excess is at most what would be wanted beyond
 *             the cores if lone threads did not pause: four on four cores always find one.
 *             All groups of a cpuset together pay likewise for demand beyond its part of a node: as overload,
 *             3/4 x far as if each CPU were a core, and 4 x far for threads that never pause
 *   shortage  as overload, for memory that finds no room: as a part of all the memory that the node can
 *             have, converted to the same part of its CPUs
 *   crowd     8 x far x (load that presses on memory, beyond the allowed imbalance)^2 / size. With 8, 16
 *             tasks that all need bandwidth, on one node of 40 CPUs with all their memory, are better off on
 *             two in spite of remote and split, and 13 are not (S-FORK; one node saturates at 8). In a group
 *             of several nodes that could have one for each thread, threads that share nothing are counted
 *             whole: between two numbers of them the cost is the weighted mean
 *   pressed   2 x far x (demand of threads of one group that share nothing, beyond half of the CPUs of a node
 *             and beyond the allowed imbalance), as far as the other nodes have room for it. Half of the
 *             cores of a node can mostly fill its memory controllers; both numbers are choices of ours. With
 *             it, three on a node of four, with all their memory, are better off on two, where `crowd` alone
 *             would not pay for split
 *   starved   2 x far x (demand that waits for bandwidth that a node cannot give): the demand there, reduced
 *             by stall_discount_permille, times the part of the traffic beyond four fifths of what the node
 *             gives, or beyond its share of all wanted traffic, if that is more. Where it is unknown what the
 *             node gives, beyond its share by size, and 4 GB/s.
 *             Memory is assumed to follow. The fifth is for traffic that nobody counts, and because memory
 *             answers late long before it is full. A waiting CPU is lost like one beside a busy sibling
 *             (siblings); where nodes are nearer than 20 it counts for less than that
 *   unfair    3/2 x far x (demand beyond the capacity)^2 / capacity, times the part that is wanted in vain,
 *             if any is. Then no CPU is idle anywhere, and a group sent away from a full node gains nothing;
 *             but where more threads wait than elsewhere, each gets less. Overload and siblings begin that
 *             much later on a node, and what a node lacks to be half busy costs as much as overload. Demand
 *             changes from moment to moment, so only what exceeds 5/4 of all the machine has is in vain
 *   even      far / 64 x load^2 / capacity: among otherwise equal nodes, prefers the one with more room.
 *             Never more than about 3 % of the weight, what MinGainPermille takes for noise */
typedef struct PackCost {
    uint64_t remote, split, move, overload, siblings, shortage, crowd, pressed, starved, unfair, even;
    uint64_t total;
} PackCost;

/* The load above which CPUs of this capacity are overloaded, whether of one node or of several that a group
 * shares; both in permille of a CPU. */
uint64_t pack_limit(uint64_t capacity);

/* Packs all groups: ret_sets[i] are the nodes of groups[i], 0: none (nowhere allowed, or it stays and has no home).
 * The order of nodes and groups does not matter; their keys and ids decide ties. Packing again with these sets as
 * homes gives them again. Only if the work on a very large problem exceeded its bound may it give a cheaper packing.
 *
 * The least cost is not guaranteed (the problem is NP-hard), bounded work is. Returns 0, -ENOMEM, -E2BIG beyond the
 * limits above, or -EINVAL: a key or id occurs twice, `home` or `allowed` has nodes that the machine lacks, or
 * `cpuset` is none of the problem's. */
int pack_solve(const PackProblem *problem, PackNodes *ret_sets);

/* Divides the demand of each group over the nodes of its set, as the costs do: ret[group * n_nodes + node],
 * in permille of a CPU. Errors as above. */
int pack_parts(const PackProblem *problem, const PackNodes *sets, uint64_t *ret);

/* Computes what a given packing costs. Errors as above. */
int pack_cost(const PackProblem *problem, const PackNodes *sets, PackCost *ret);
