/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A packing in progress: the problem in an order that does not depend on the caller's, with sets that can be changed
 * one by one. Private to this folder.
 *
 * Nodes without CPUs are left out, and the others ("sites") are sorted by key. Groups ("items") are sorted by id. So
 * any walk over nodes or groups from first to last that keeps the first of the best is independent of names (I12). */

#include "plan/pack/pack.h"

#define PACK_SCALE    64U  /* units of cost per permille of a CPU and unit of distance */
#define PACK_OVERLOAD 32U  /* weight of overload, also of wide groups; see pack.h */
#define PACK_FOLLOWS  250U /* permille of a group's pull: memory that is to follow its users (pack.h) */
#define PACK_EXCHANGE 125U /* permille of a split that remains even if threads never wait for memory */
#define PACK_CROWDED  (PACK_SCALE * 3 / 4)
#define PACK_CROWD    8U
#define PACK_PRESSED  (PACK_SCALE * 2)
#define PACK_CUT      16U /* times the capacity; larger loads are cut to it (cost.c) */

#define PACK_UNFED UINT64_MAX
#define PACK_WHOLE UINT64_MAX

typedef struct PackSite {
    uint32_t index; /* into PackProblem.nodes */
    uint32_t key;
    uint64_t capacity, limit; /* permille; limit: above it the site is overloaded */
    uint64_t cores;           /* permille; above it, threads share cores */
    uint64_t heavy;           /* load that presses on its memory, groups excluded */
    uint64_t unmet;           /* the part of the capacity that groups want in vain; permille of a CPU */
    /* Where some demand is in vain: the demand, cut as demands are, that keeps half of its CPUs busy */
    uint64_t busy;
    uint64_t per_capacity; /* 2^32 / capacity */
    uint64_t size;         /* capacity including what others use */
    uint64_t fed;          /* MB/s up to which its memory answers in time; PACK_UNFED: not known yet */
    uint64_t memory_kib;   /* memory that all groups together may have here; 0: not counted */
    uint64_t per_memory;   /* permille of CPUs that one KiB too much stands for, times 2^32 */
} PackSite;

/* The part of a site that a cpuset has. */
typedef struct PackSlice {
    uint64_t capacity, limit; /* as those of a site; PACK_WHOLE: the cpuset has all of it */
} PackSlice;

typedef struct PackSliceLoad {
    uint64_t cpu, steady;
} PackSliceLoad;

typedef struct PackLoad {
    uint64_t cpu, heavy, memory, variance;
    uint64_t most;   /* CPU demand if no thread paused */
    uint64_t steady; /* CPU demand of threads that never pause */
    uint64_t thirst; /* CPU demand that waits for memory if `traffic` is too much */
    uint64_t traffic;
} PackLoad;

typedef struct PackItem {
    uint32_t index; /* into PackProblem.groups */
    uint64_t id;
    uint64_t demand, weight; /* permille */
    uint64_t pull;           /* permille of its weight that counts for being near its memory */
    uint64_t stalls;         /* permille of its weight that counts for its threads being near each other */
    uint64_t variance;
    uint64_t strays; /* standard deviation of its demand; permille */
    uint64_t most;   /* demand without pauses; permille */
    uint64_t steady; /* as in PackGroup, and so traffic, few and sorted */
    uint64_t traffic;
    /* The part of the demand that presses on memory that threads use alone, and its permille of the demand */
    uint64_t heavy;
    uint32_t alone;
    uint32_t few;
    uint32_t sorted;
    uint64_t memory_kib; /* memory that follows it */
    uint64_t move_cost;
    uint32_t max_nodes;
    uint32_t cpuset;         /* as in PackGroup */
    PackNodes home, allowed; /* bit i: sites[i] */
    bool wishes;             /* it is not in its home yet */
    PackNodes set;           /* current set; 0: not placed */
    bool stays, roams, young, spreads, lone;
    /* Several nodes can be better for it than one, even without other groups */
    bool may_split;
} PackItem;

typedef struct Pack {
    const PackProblem *problem;
    uint32_t n_sites, n_items;
    PackSite sites[PACK_NODES_MAX];
    uint32_t *excess; /* [n_sites * n_sites]: distance above local, sum of both directions */
    uint64_t far, allowed_imbalance;
    uint64_t heavy, unpressed; /* sums: of all load that presses on memory, and of pack_unpressed() */
    PackItem *items;
    uint64_t *remote;                /* [n_items * n_sites] */
    uint32_t *here;                  /* [n_items * n_sites]: permille of its memory that is there */
    PackLoad single[PACK_NODES_MAX]; /* loads of groups with one node */
    uint64_t single_cost[PACK_NODES_MAX], single_sum; /* what these alone cost */
    uint64_t empty_cost;                              /* what sites cost without any group */
    PackLoad booked[PACK_NODES_MAX];                  /* what pack_book() put there */
    PackSlice *slices;                                /* [n_slices]: n_cpusets * n_sites */
    size_t n_slices;
    PackSliceLoad *sliced, *booked_slices; /* [n_slices]: groups of one node, and what pack_book() put
                                            * there */
    PackSliceLoad *poured;                 /* [n_slices]: all groups, while a cost is computed */
    uint32_t *wide;                        /* items with several nodes, by size, then by index */
    uint32_t n_wide;
    uint64_t own;   /* sum of pack_own() over all items */
    uint64_t least; /* lower bound of pack_load_cost() for any packing of these items */
    uint64_t steps; /* of work done */
} Pack;

/* Opens the problem without any sets; only items that stay have theirs. Errors as pack_solve(). */
int pack_open(const PackProblem *problem, Pack *ret);
void pack_close(Pack *p);

/* For pack_open(): computes the costs of sites without items. The sites must be known. */
void pack_start(Pack *p);

/* Converts from the caller's numbering of nodes to the sites, and back. */
PackNodes pack_nodes_in(const Pack *p, PackNodes nodes);
PackNodes pack_nodes_out(const Pack *p, PackNodes sites);

/* Gives an item another set, 0: none. */
void pack_assign(Pack *p, uint32_t item, PackNodes set);

/* What an item itself pays for these sites: remote, split, move and pressed, and what the costs of sites
 * leave out for a group on several of them. */
uint64_t pack_own(const Pack *p, uint32_t item, PackNodes set);

/* Adds the same, term by term. */
void pack_own_add(const Pack *p, uint32_t item, PackNodes set, PackCost *ret);

/* The slice of a site that the item is kept on; NULL: it may use the whole site. */
static inline const PackSlice *pack_slice(const Pack *p, const PackItem *item, uint32_t site)
{
    return item->cpuset > 0 ? &p->slices[(size_t)(item->cpuset - 1) * p->n_sites + site] : NULL;
}

/* The capacity of a site that an item may use. */
static inline uint64_t pack_capacity(const Pack *p, const PackItem *item, uint32_t site)
{
    const PackSlice *slice = pack_slice(p, item, site);

    return slice && slice->capacity < p->sites[site].capacity ? slice->capacity : p->sites[site].capacity;
}

/* The same for its cores. */
static inline uint64_t pack_cores(const Pack *p, const PackItem *item, uint32_t site)
{
    const PackSlice *slice = pack_slice(p, item, site);

    return slice && slice->capacity < p->sites[site].cores ? slice->capacity : p->sites[site].cores;
}

/* The square of a load, divided by the capacity of the site. */
static inline uint64_t pack_square(const PackSite *site, uint64_t load)
{
    uint64_t x = load < PACK_CUT * site->capacity ? load : PACK_CUT * site->capacity;

    return ((x * site->per_capacity >> 16) * x) >> 16;
}

/* The load that may press on the memory of a site before `pressed` counts. */
static inline uint64_t pack_unpressed(const Pack *p, const PackSite *site)
{
    return site->capacity / 2 > p->allowed_imbalance ? site->capacity / 2 : p->allowed_imbalance;
}

/* The cost at a site of `heavy` permille that press on its memory. */
static inline uint64_t pack_crowd(const Pack *p, const PackSite *site, uint64_t heavy)
{
    return heavy > p->allowed_imbalance
               ? pack_square(site, heavy - p->allowed_imbalance) * site->capacity / site->size *
                     PACK_CROWD * PACK_SCALE * p->far
               : 0;
}

/* What all sites together pay. Adds the work it took to p->steps. */
uint64_t pack_load_cost(Pack *p);

/* Computes p->least. */
uint64_t pack_load_least(const Pack *p);

/* Booking is a rougher account for the construction, in which each group meets what the groups before it took: wide
 * groups are divided by capacity and never yield. pack_book_all() begins an account with the current sets. */
void pack_book_all(Pack *p);
void pack_book(Pack *p, uint32_t item);

/* What an item would pay itself with this set, plus what it would add to the costs of sites. */
uint64_t pack_booking_cost(Pack *p, uint32_t item, PackNodes set);

/* A search: pack/search.c */

typedef struct PackSearch {
    Pack *p;
    uint32_t *order;  /* items that may be placed, by decreasing demand */
    uint32_t *regret; /* the same, by decreasing regret */
    uint32_t *shaken; /* the same, in random order */
    uint32_t n;       /* of each */
    uint64_t *key;    /* [n_items]: sort keys */
    PackNodes *saved; /* [n_items]: sets before the current move */
    PackNodes *best;  /* [n_items]: best sets of the starts so far */
    uint64_t random;
    uint64_t until; /* p->steps at which the search ends */
} PackSearch;

/* Whether the item may have this set. */
bool pack_fits(const PackItem *item, PackNodes set);

/* Gives a set to each of these items that has none, in this order. */
void pack_place_all(PackSearch *s, const uint32_t *order);

/* Improves the packing until nothing helps or the steps are used up. Returns its cost. */
uint64_t pack_improve(PackSearch *s);
