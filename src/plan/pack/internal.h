/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A packing in work: the problem in an order that does not depend on the caller's, and sets that can be changed one by
 * one. Private to this folder.
 *
 * Nodes without CPUs are left out, the others sorted by key; groups are sorted by id. So any walk over nodes or groups
 * from first to last that keeps the first of the best is independent of names (I12). */

#include "plan/pack/pack.h"

#define PACK_SCALE    64U                  /* units of cost per permille and unit of distance */
#define PACK_OVERLOAD 32U                  /* weights of nodes, and of groups that have several; reasons in pack.h */
#define PACK_FOLLOWS  250U /* permille of its pull: memory that is to follow its users (pack.h) */
#define PACK_EXCHANGE 125U /* permille of a split: what threads exchange though they never wait for memory */
#define PACK_CROWDED  (PACK_SCALE * 3 / 4)
#define PACK_CROWD    8U
#define PACK_PRESSED  (PACK_SCALE * 2)
#define PACK_CUT      16U /* times the capacity: more of a load is cut (cost.c) */

#define PACK_UNFED UINT64_MAX
#define PACK_WHOLE UINT64_MAX

typedef struct PackSite {
    uint32_t index; /* into PackProblem.nodes */
    uint32_t key;
    uint64_t capacity, limit; /* permille; limit: above it, it is overloaded */
    uint64_t cores;           /* permille; above it, threads share cores */
    uint64_t heavy;           /* what presses on its memory besides groups */
    uint64_t unmet;           /* of the capacity, what groups want in vain; permille of a CPU */
    uint64_t busy;            /* where some want in vain: demands, which are cut, that keep half of its CPUs busy */
    uint64_t per_capacity;    /* 2^32 / capacity */
    uint64_t size;            /* the capacity with what others use of it */
    uint64_t fed;             /* MB/s that its memory gives and are no more than it can; PACK_UNFED: not known */
    uint64_t memory_kib;      /* that all groups together may have here; 0: not counted */
    uint64_t per_memory;      /* permille of CPUs that stand for a KiB too much, times 2^32 */
} PackSite;

/* What a cpuset has of a site. */
typedef struct PackSlice {
    uint64_t capacity, limit; /* as those of a site; PACK_WHOLE: it has all of it */
} PackSlice;

typedef struct PackSliceLoad {
    uint64_t cpu, steady;
} PackSliceLoad;

typedef struct PackLoad {
    uint64_t cpu, heavy, memory, variance;
    uint64_t most;   /* CPU, when nobody pauses */
    uint64_t steady; /* CPU, of threads that never do */
    uint64_t thirst; /* CPU, that waits for memory if there is too much of: */
    uint64_t traffic;
} PackLoad;

typedef struct PackItem {
    uint32_t index; /* into PackProblem.groups */
    uint64_t id;
    uint64_t demand, weight; /* permille */
    uint64_t pull;           /* of its weight, what being near its memory counts; permille */
    uint64_t stalls;         /* and being near each other */
    uint64_t variance;       /* of its demand, in permille of a CPU squared */
    uint64_t strays;         /* the standard deviation of its demand, permille */
    uint64_t most;           /* its demand without pauses */
    uint64_t steady;         /* of its demand, that of threads that run all the time */
    uint64_t traffic;        /* what it wants of memory; MB/s */
    uint64_t heavy;          /* of its demand, what presses on memory that threads use alone */
    uint32_t alone;          /* the same in permille */
    uint32_t few;            /* of what its threads use, what few of them share whom a node holds; permille */
    uint32_t sorted;         /* of what its threads use, what lies beside them if they are where it lies; permille */
    uint64_t memory_kib;     /* that follows it */
    uint64_t move_cost;
    uint32_t max_nodes;
    uint32_t cpuset;         /* as in PackGroup */
    PackNodes home, allowed; /* bit i: sites[i] */
    bool wishes;             /* home is where it is not yet */
    PackNodes set;           /* now; 0: not placed */
    bool stays, roams, young, spreads, lone;
    bool may_split; /* several nodes can be better for it than one even if nobody else were there */
} PackItem;

typedef struct Pack {
    const PackProblem *problem;
    uint32_t n_sites, n_items;
    PackSite sites[PACK_NODES_MAX];
    uint32_t *excess; /* [n_sites * n_sites]: both ways together, above local */
    uint64_t far, allowed_imbalance;
    uint64_t heavy, unpressed; /* sums: of all that presses on memory, and of pack_unpressed() */
    PackItem *items;
    uint64_t *remote;                /* [n_items * n_sites] */
    uint32_t *here;                  /* [n_items * n_sites]: of its memory, what is there; permille */
    PackLoad single[PACK_NODES_MAX]; /* groups of one node */
    uint64_t single_cost[PACK_NODES_MAX], single_sum; /* what they alone cost */
    uint64_t empty_cost;                              /* what sites cost without any */
    PackLoad booked[PACK_NODES_MAX];                  /* what pack_book() put there */
    PackSlice *slices;                                /* [n_slices]: n_cpusets * n_sites */
    size_t n_slices;
    PackSliceLoad *sliced, *booked_slices; /* the same: groups of one node, and what pack_book() put there */
    PackSliceLoad *poured;                 /* the same: all groups, while a cost is computed */
    uint32_t *wide;                                   /* items of several nodes, by size, then index */
    uint32_t n_wide;
    uint64_t own;   /* sum of pack_own() over all items */
    uint64_t least; /* no packing of these items has a lower pack_load_cost() */
    uint64_t steps; /* of work done */
} Pack;

/* The problem without any sets: only those that stay have theirs. Errors as pack_solve(). */
int pack_open(const PackProblem *problem, Pack *ret);
void pack_close(Pack *p);

/* For pack_open(): the sites are known, and nobody is on them. */
void pack_start(Pack *p);

/* From the caller's numbering of nodes to ours, and back. */
PackNodes pack_nodes_in(const Pack *p, PackNodes nodes);
PackNodes pack_nodes_out(const Pack *p, PackNodes sites);

/* Gives an item another set, 0: none. */
void pack_assign(Pack *p, uint32_t item, PackNodes set);

/* What an item pays itself on these sites: remote, split and move, and what sites do not say of a group on several of
 * them. */
uint64_t pack_own(const Pack *p, uint32_t item, PackNodes set);

/* Adds the same to each of its terms. */
void pack_own_add(const Pack *p, uint32_t item, PackNodes set, PackCost *ret);

/* The slice of a site that it is kept on; NULL: it may have all of it. */
static inline const PackSlice *pack_slice(const Pack *p, const PackItem *item, uint32_t site)
{
    return item->cpuset > 0 ? &p->slices[(size_t)(item->cpuset - 1) * p->n_sites + site] : NULL;
}

/* What an item may have of a site. */
static inline uint64_t pack_capacity(const Pack *p, const PackItem *item, uint32_t site)
{
    const PackSlice *slice = pack_slice(p, item, site);

    return slice && slice->capacity < p->sites[site].capacity ? slice->capacity : p->sites[site].capacity;
}

/* The same, of its cores. */
static inline uint64_t pack_cores(const Pack *p, const PackItem *item, uint32_t site)
{
    const PackSlice *slice = pack_slice(p, item, site);

    return slice && slice->capacity < p->sites[site].cores ? slice->capacity : p->sites[site].cores;
}

/* The square of a load by the capacity of the site. */
static inline uint64_t pack_square(const PackSite *site, uint64_t load)
{
    uint64_t x = load < PACK_CUT * site->capacity ? load : PACK_CUT * site->capacity;

    return ((x * site->per_capacity >> 16) * x) >> 16;
}

/* What may press on the memory of a site and leaves room there. */
static inline uint64_t pack_unpressed(const Pack *p, const PackSite *site)
{
    return site->capacity / 2 > p->allowed_imbalance ? site->capacity / 2 : p->allowed_imbalance;
}

/* What `heavy` permille that press on the memory of a site cost there. */
static inline uint64_t pack_crowd(const Pack *p, const PackSite *site, uint64_t heavy)
{
    return heavy > p->allowed_imbalance
               ? pack_square(site, heavy - p->allowed_imbalance) * site->capacity / site->size *
                     PACK_CROWD * PACK_SCALE * p->far
               : 0;
}

/* What all sites together pay; adds to p->steps what it took. */
uint64_t pack_load_cost(Pack *p);

/* The bound in p->least. */
uint64_t pack_load_least(const Pack *p);

/* Booking is a rougher account for construction, in which the next group meets what those before it took: wide
 * groups are divided by capacity and never yield. pack_book_all() begins one with the sets as they are. */
void pack_book_all(Pack *p);
void pack_book(Pack *p, uint32_t item);

/* What an item would pay with this set, and what it would add. */
uint64_t pack_booking_cost(Pack *p, uint32_t item, PackNodes set);

/* A search: pack/search.c */

typedef struct PackSearch {
    Pack *p;
    uint32_t *order;  /* items that may be placed, by decreasing demand */
    uint32_t *regret; /* the same, by decreasing regret */
    uint32_t *shaken; /* the same, in random order */
    uint32_t n;       /* of each */
    uint64_t *key;    /* [n_items]: of the sort in work */
    PackNodes *saved; /* [n_items]: before the move in work */
    PackNodes *best;  /* [n_items]: of the starts so far */
    uint64_t random;
    uint64_t until; /* p->steps at which it ends */
} PackSearch;

/* Whether the set is one that the item may have. */
bool pack_fits(const PackItem *item, PackNodes set);

/* Gives a set to each of these items that has none, in this order. */
void pack_place_all(PackSearch *s, const uint32_t *order);

/* Improves the packing until nothing helps or the steps are used up; returns what it costs. */
uint64_t pack_improve(PackSearch *s);
