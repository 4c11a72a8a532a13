/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Named machines: those measured in the texts, and the guests of the lab. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimPreset {
    const char *name;  /* "zen3-nps2": the value of Preset= */
    const char *text;  /* one line: the machine, and the text that measured it */
    const char *hwloc; /* hwloc's synthetic description, without distances */
    uint32_t n_nodes;
    /* Distances: `near` between linked nodes, `far` between others. Nodes of one block of `block` nodes are
     * linked; in a ring, each node with the next, the previous and the opposite one. */
    bool ring;
    uint32_t block, near, far;
} SimPreset;

/* All of them, in the order to list them. */
const SimPreset *preset_list(size_t *ret_n);

/* Returns NULL if there is no such machine. */
const SimPreset *preset_find(const char *name);

/* The description with " distances=" appended, as TopologyOptions.synthetic takes it. Malloc'd; NULL when out
 * of memory. */
char *preset_describe(const SimPreset *preset);

/* Loads the machine. Returns 0, or -ENOMEM with a malloc'd sentence in *ret_error. */
int preset_load(const SimPreset *preset, Topology **ret, char **ret_error);
