/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How good a node is for a task or a group, from its fault averages and the distances (P11).
 * Source: score_nearby_nodes(), task_weight(), group_weight() and preferred_group_nid() of Linux, restated. */

#include "topo/topology.h"
#include "world/faults.h"

typedef enum ScoreShape {
    SCORE_SHAPE_DIRECT,        /* at most two distances, 10 included: all other nodes are equally far */
    SCORE_SHAPE_GLUELESS_MESH, /* between any two nodes that are furthest apart is a third, nearer to both */
    SCORE_SHAPE_BACKPLANE,     /* clusters of near nodes, joined by something that is no node */
    SCORE_SHAPE_MAX,
    SCORE_SHAPE_INVALID = -EINVAL,
} ScoreShape;

/* What scoring has to know of a machine. Made once per plan: O(nodes^3). The Topology must outlive it. */
typedef struct ScoreMachine {
    const Topology *topology;
    ScoreShape shape;
    uint32_t max_distance; /* between nodes with CPUs, at least 10 */
} ScoreMachine;

ScoreMachine score_machine(const Topology *topology);

/* What accesses to other nodes are worth to someone on `node`: 0 on DIRECT; on a BACKPLANE all those nearer than
 * `limit_distance`; in a mesh weighted by nearness. The furthest nodes never count. */
uint64_t score_nearby(const ScoreMachine *m, const Faults *f, NodeIx node, uint32_t limit_distance);

/* The share of `f` on or near `node`, 0..1000 permille; 0 for a table without accesses. To compare two nodes, use the
 * distance between them as limit for both. */
uint32_t score_weight(const ScoreMachine *m, const Faults *f, NodeIx node, uint32_t limit_distance);

/* The node to prefer: where the group (NULL: the task, which has none) accesses most, and where with shapes other than
 * DIRECT most of it is near. Always one with CPUs. `current` (may be NODE_NONE) keeps a tie; then the node that has
 * most itself wins, and then the lowest.
 * A table without accesses leaves `current` as it is. */
NodeIx score_preferred(const ScoreMachine *m, const Faults *task, const Faults *group, NodeIx current);
