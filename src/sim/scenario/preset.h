/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Named machines: those on which the texts were measured, and the guests of the lab. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimPreset {
    const char *name;  /* "zen3-nps2": what a scenario says in Preset= */
    const char *text;  /* one line: what it is, and which text was measured on it */
    const char *hwloc; /* hwloc's synthetic description, without distances */
    uint32_t n_nodes;
    /* Distances: `near` between nodes that are linked, `far` between others. Linked are those of one block of
     * `block` nodes; in a ring, each with the next, the previous and the opposite one. */
    bool ring;
    uint32_t block, near, far;
} SimPreset;

/* All of them, in the order to be listed. */
const SimPreset *preset_list(size_t *ret_n);

/* NULL when there is no such machine. */
const SimPreset *preset_find(const char *name);

/* The description with " distances=" at its end, as TopologyOptions.synthetic takes it. Malloc'd, NULL when memory
 * is out. */
char *preset_describe(const SimPreset *preset);

/* Makes the machine. 0, or -ENOMEM with a malloc'd sentence in *ret_error. */
int preset_load(const SimPreset *preset, Topology **ret, char **ret_error);
