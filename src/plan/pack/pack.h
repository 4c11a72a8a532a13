/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which nodes each group should live on, all groups of the machine considered together: compress, spread and flip (P15)
 * under the load rules of P5 and P6. A pure function of numbers; it knows neither World nor policies.
 *
 * Units: loads and demands are permille of a CPU, demand is run time plus runnable wait. Demand by run time alone would
 * shrink a group that starves, and the next packing would put it where it starves more. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_NODES_MAX  64U        /* nodes of a machine, those without CPUs counted */
#define PACK_GROUPS_MAX 4096U      /* with more the costs could overflow */
#define PACK_TRAFFIC_MAX (1ULL << 32)
#define PACK_DEMAND_MAX (1U << 22) /* permille: what is more is cut to this, of capacities and demands */

/* A set of nodes: bit i is PackProblem.nodes[i]. */
typedef uint64_t PackNodes;

typedef struct PackNode {
    uint32_t capacity_permille; /* of its usable CPUs, less what others use; 0: it has none and is in no result */
    uint32_t size_permille;     /* with that; what is less than the capacity is taken as the capacity */
    /* 1000 for each of its cores that has a usable CPU, less what others use; 0: not told, and it never counts that
     * two threads share a core */
    uint32_t cores_permille;
    uint32_t heavy_permille; /* what others run here that presses on its memory, as private_permille of a group does */
    /* What its memory gives; MB/s, up to PACK_TRAFFIC_MAX. 0: not known, and what is wanted of it costs nothing */
    uint64_t traffic_mb;
    uint64_t free_bytes; /* memory that may still come here: what is free, less the headroom */
    uint32_t
        key; /* breaks ties, lower first; distinct. Its lowest CPU, which stays when nodes are renamed (I12) */
} PackNode;

typedef enum PackMode {
    PACK_MODE_COMPRESS, /* as few and as near nodes as fit; its need of bandwidth counts for nothing */
    PACK_MODE_AUTO,     /* the same, but spread where bandwidth is worth more than being together */
    PACK_MODE_SPREAD, /* as many nodes as help; that its threads are apart costs nothing, and memory is to follow */
    PACK_MODE_MAX,
} PackMode;

typedef struct PackGroup {
    uint64_t id; /* breaks ties, lower first; distinct */
    PackMode mode;
    uint32_t demand_permille;
    /* Mode auto: of what its threads use, what each uses alone. For that its threads need not be together, and so they
     * are not to press on the memory of one node. 0: they share all, or it is not known. Mode spread: taken as 1000 */
    uint32_t private_permille;
    uint32_t sorted_permille; /* and of all they use, what one uses alone and lies on one node for each */
    /* Mode auto: and of all they use, what few of them share whom a node holds. These need not be near the others */
    uint32_t few_permille;
    /* Mode auto: of its demand, what threads want that run all the time. Two of these on one core are in each other's
     * way all the time, too */
    uint32_t steady_permille;
    /* How the demand strays from its mean: the variance of the number of threads that want a CPU at an instant, in
     * permille. Of n threads that each want one for a part u of the time, n u (1 - u) */
    uint32_t variance_permille;
    bool lone; /* one thread, which is on one of its nodes at a time */
    uint32_t min_gain_permille; /* the share of its memory accesses that must become local for a move (P6) */
    uint32_t max_nodes;         /* 0: no limit */
    PackNodes home;             /* where it lives now; 0: nowhere yet */
    bool wishes;                /* it lives nowhere yet, and wishes to live there */
    PackNodes allowed;          /* the widest it may have: its cpuset and Nodes= */
    uint32_t cpuset; /* 1 + index of the cpuset that has only a part of some node; 0: none, or whole nodes */
    const uint64_t *memory_bytes; /* [n_nodes], below 2^50 each; NULL: not known */
    /* How much less than usual it counts to be near this memory, up to 1000: not at all. For what is only guessed,
     * or so little that caches hold it: threads are not far from what they rarely fetch */
    uint32_t memory_discount_permille;
    /* Mode auto: how much less than usual it counts to be far from this memory and from each other, up to 1000, since
     * its threads hardly ever wait for memory */
    uint32_t stall_discount_permille;
    /* Mode auto: what it wants of the memory of its nodes; MB/s, up to PACK_TRAFFIC_MAX */
    uint64_t traffic_mb;
    bool
        stays; /* fixed, frozen or within its residency: it keeps its home, or without one roams over `allowed` */
    /* MinAgeSec= not reached: it may get a first home, as small as fits unless what its threads use alone presses on
     * a node; one that it has it keeps */
    bool young;
} PackGroup;

typedef struct PackProblem {
    const PackNode *nodes;
    const uint32_t *distances; /* [n_nodes * n_nodes], row-major, 10 = local */
    uint32_t n_nodes;
    uint32_t
        allowed_imbalance_permille; /* what may press on one node's memory before it counts (P5, imb_numa_nr) */
    /* Of what groups want, what the machine can give, in permille, when that is less than all: their demands are cut to
     * this. 0: all of it */
    uint32_t share_permille;
    /* [n_cpusets * n_nodes]: the CPUs of each cpuset on each node, permille of a CPU. All groups of a cpuset share
     * them; what several cpusets have is counted for each */
    const uint32_t *cpusets;
    uint32_t n_cpusets;
    const PackGroup *groups;
    uint32_t n_groups;
} PackProblem;

/* What a packing costs. The unit is 1/64 of a permille of a CPU whose memory is one unit of distance further away than
 * local; `far` is the largest distance of the machine less 10, at least 1. Sums over all groups:
 *
 *   remote    weight x mean of (distance - 10) from a node of its set to its memory, in bytes, as things are now. The
 *             weight of a group is its demand: what waits for memory are threads; bytes of different groups cannot be
 *             compared. Less memory_discount_permille of that, less stall_discount_permille, and in Mode=spread a
 *             quarter of what remains: memory is to follow the threads. By a quarter 16 such groups of one thread,
 *             born on one of two nodes of 40 CPUs, end 8 and 8: on the ninth `crowd` saves 8 x (4^2 + 2^2 - 2 x 3^2) /
 *             40 = 0.4, and a third would not be less than that while the averages of new threads are still rising.
 *             Half of it remains of a single thread that uses all of it alone, for the same reason.
 *             Of what threads use alone, each has its own beside it as far as there is room, which is an equal part of
 *             the demand, or what presses on no memory (P5); the rest as above, and all of a lone thread, which is on
 *             all of its nodes in turns. Of what few share, on several nodes a quarter: they go to one of these, and it
 *             follows them
 *   split     weight x mean of (distance - 10) between two nodes of its set, the same node twice included, but not of a
 *             lone thread, nor of what each thread uses alone, has on one node, and is beside. (What lies elsewhere
 *             than on the node with most of it excuses twice as much at most: a little elsewhere is no reason to be
 *             apart.) Nor of what few share. Less stall_discount_permille of it, but for an eighth: what threads
 *             exchange through their caches is no miss. And far / 128 for each node more than one, or else a group
 *             with all its memory on node 0 would be as well off on both as on node 1 alone, and noise would decide
 *   move      weight x far x min_gain_permille / 1000, when a home changes; of the whole weight, so the less memory
 *             counts, the more of it must become local
 *
 * and over all nodes, each group's demand poured over its set, groups of few nodes first, in proportion to the room it
 * finds there:
 *
 *   overload  32 x far x (demand beyond 108 % of the capacity): up to there P6 calls a node fully busy, not
 *             overloaded. Half a CPU is never an overload: beside groups that fill a node of two CPUs, a thread that
 *             wakes now and then would else send one of them away from its memory. (A quarter of the node at most:
 *             on two nodes of one CPU three threads are one too many. A group on several nodes has that half once,
 *             not for each.) By 32 a group that needs 112 % of a node is better off on two, as far apart as nodes can
 *             be and with all memory on the first; and one is sent away from all its memory for an overload of a 32nd
 *             of its demand: what fits comes first
 *   siblings  2 x far x (demand beyond its cores), on a node whose cores have siblings. A thread beside a busy sibling
 *             runs at 0.6 of its speed, and the sibling does too: 0.8 of a CPU is lost, two to three times what far
 *             memory takes from one that waits for memory half of its time (80 : 135 ns). So a group prefers cores
 *             elsewhere to siblings here (P4: idle core, idle CPU, least loaded), also to those beside its memory.
 *             Where each CPU is a core of its own, 3/4 x far x (demand beyond them): who waits now and then would
 *             rather wait elsewhere, when its memory does not hold it. As much again for a group on several nodes, for
 *             demand beyond the cores of all: much of its memory is far anyway. And 1 x far x what threads that
 *             never pause want beyond its cores, where these have siblings: they are in each other's way all the time,
 *             so that eleven on six cores do two thirds of what they do on two nodes. That is of all groups on the node
 *             together: of eight such threads in two groups, on two nodes of two cores, each shares a core in any case.
 *             And 4 x far x what they want beyond its CPUs, if the machine has enough for all: half a CPU is no
 *             overload, but of these one waits for good, or all for a part of the time, while a CPU is idle. That is
 *             more than far memory takes from three; and their memory follows them.
 *             Of threads that pause, 3 x far x what finds no core at times beyond that, from the mean and the variance
 *             of all on the node: six threads that run two thirds of the time want five CPUs as often as three. Of a
 *             lone thread on n nodes each has 1 / n^2 of the variance, as if it ran a little on all of them, since the
 *             kernel finds it an idle CPU: so threads that pause share nodes that are hardly further from their memory.
 *             And no more than all want if lone threads do not pause: four on four cores find one always
 *             All groups of a cpuset pay in the same way for what they want beyond its part of a node: as overload,
 *             3/4 x far as if each CPU were a core, and 4 x far for threads that never pause
 *   shortage  as overload, for memory that finds no room, of all memory the node can have, as if it were so much of
 *             its CPUs
 *   crowd     8 x far x (bandwidth beyond the allowed imbalance)^2 / size. By it 16 tasks that all need
 *             bandwidth, on one node of 40 CPUs with all their memory, are better off on two in spite of remote and
 *             split, and 13 are not (S-FORK; one node saturates at 8). Threads that share nothing are whole, of a
 *             group of several nodes that could have one for each: between two numbers of them it is their weighted
 *             mean
 *   pressed   2 x far x what threads of one group that share nothing want beyond half of the CPUs of a node (and beyond
 *             the allowed imbalance), as far as that is not so on the other nodes as well. Half of the cores of a node
 *             can mostly fill its memory controllers; both numbers are choices of ours. By it three on a node of four,
 *             with all their memory, are better off on two, where `crowd` alone would not pay for split
 *   starved   2 x far x what waits for memory that a node cannot give, where that is known: of the demand there,
 *             less stall_discount_permille, the part of the traffic beyond four fifths of what the node gives, or
 *             its share of what is wanted of all, if that is more. Memory is taken to follow. The fifth is for what
 *             nobody counts, and since memory answers late long before it is full; a CPU that waits is lost as one
 *             beside a busy sibling is (siblings)
 *   unfair    3/2 x far x (demand beyond the capacity)^2 / capacity, times the part that is wanted in vain, and only
 *             where some is: no CPU is idle anywhere then, so that who is sent away from a full node gains nothing by
 *             it; but where more wait than elsewhere, each gets less. Overload and siblings begin so much later on a
 *             node, and what a node lacks to be half busy costs as much as overload. Want changes from moment to
 *             moment: in vain is what is more than 5/4 of all the machine has
 *   even      far / 64 x load^2 / capacity: between otherwise equal nodes the one with more room. Never more than
 *             about 3 % of the weight, what MinGainPermille takes for noise */
typedef struct PackCost {
    uint64_t remote, split, move, overload, siblings, shortage, crowd, pressed, starved, unfair, even;
    uint64_t total;
} PackCost;

/* In permille of a CPU: above it, CPUs of this capacity are overloaded, of one node or of several that a group
 * shares. */
uint64_t pack_limit(uint64_t capacity);

/* Packs all groups: ret_sets[i] are the nodes of groups[i], 0: none (nowhere allowed, or it stays and has no home).
 * The order of nodes and groups plays no part, their keys and ids decide among equals. Packing again with these sets
 * as homes gives them again; were it not for the bounded work, which a very large problem could exceed, a cheaper
 * packing.
 *
 * The least cost is not guaranteed (the problem is NP-hard), bounded work is. Returns 0, -ENOMEM, -E2BIG beyond the
 * limits above, or -EINVAL: a key or id twice, `home` or `allowed` has nodes the machine has not, or `cpuset` is none
 * of the problem's. */
int pack_solve(const PackProblem *problem, PackNodes *ret_sets);

/* How the demand of each group lies on the nodes of its set, as the costs take it: ret[group * n_nodes + node], in
 * permille of a CPU. Errors as above. */
int pack_parts(const PackProblem *problem, const PackNodes *sets, uint64_t *ret);

/* What a given packing costs; errors as above. */
int pack_cost(const PackProblem *problem, const PackNodes *sets, PackCost *ret);
