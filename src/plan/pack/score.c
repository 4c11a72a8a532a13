/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The scores of P11. Memory is worth most on the own node. If distances differ, memory on a near node is worth
 * something too. Otherwise a group wider than a node would be torn apart: two halves at opposite ends have the same
 * share on their own node as two halves side by side.
 *
 * A group's table takes precedence over a task's: members that each follow their own accesses chase each other's
 * memory.
 *
 * In a mesh a node at distance d counts (max - d) / (max - 10): with 10, 21, 31 the middle distance counts 10/21 =
 * 0.476. On a backplane the preferred node is found by descent: of all clusters within the largest distance the one
 * with most accesses is taken, of its nodes those within the next smaller distance, and so on.
 *
 * Three differences from the kernel make renaming the nodes rename the answer (I12). The kernel looks at one pair of
 * furthest nodes to tell a mesh from a backplane; here all pairs must agree. The kernel cuts the nodes into clusters in
 * the order of their numbers; here a cluster is whatever is near any of its members, which is the same where nearness
 * is transitive. And a tie leaves the preferred node as it is, or goes to the node that has most itself. */

#include "plan/pack/score.h"

#define DISTANCE_LOCAL 10U

static bool has_cpus(const ScoreMachine *m, uint32_t node)
{
    return m->topology->nodes[node].n_cpus > 0;
}

static uint32_t distance(const ScoreMachine *m, uint32_t a, uint32_t b)
{
    return topology_distance(m->topology, (NodeIx){(int32_t)a}, (NodeIx){(int32_t)b});
}

/* The largest distance below `below` between nodes with CPUs; 0 when there is none. */
static uint32_t next_distance(const ScoreMachine *m, uint32_t below)
{
    uint32_t found = 0;

    for (uint32_t a = 0; a < m->topology->n_nodes; a++)
        for (uint32_t b = 0; b < m->topology->n_nodes; b++)
            if (has_cpus(m, a) && has_cpus(m, b) && distance(m, a, b) < below)
                found = MAX(found, distance(m, a, b));
    return found;
}

static bool is_joined(const ScoreMachine *m, uint32_t a, uint32_t b)
{
    for (uint32_t c = 0; c < m->topology->n_nodes; c++)
        if (has_cpus(m, c) && distance(m, a, c) < m->max_distance && distance(m, b, c) < m->max_distance)
            return true;
    return false;
}

static bool is_mesh(const ScoreMachine *m)
{
    for (uint32_t a = 0; a < m->topology->n_nodes; a++)
        for (uint32_t b = 0; b < m->topology->n_nodes; b++)
            if (has_cpus(m, a) && has_cpus(m, b) && distance(m, a, b) == m->max_distance &&
                !is_joined(m, a, b))
                return false;
    return true;
}

ScoreMachine score_machine(const Topology *topology)
{
    ScoreMachine m = {.topology = topology};
    uint32_t middle;

    m.max_distance = MAX(next_distance(&m, UINT32_MAX), DISTANCE_LOCAL);
    middle = next_distance(&m, m.max_distance);
    if (middle <= DISTANCE_LOCAL)
        m.shape = SCORE_SHAPE_DIRECT;
    else
        m.shape = is_mesh(&m) ? SCORE_SHAPE_GLUELESS_MESH : SCORE_SHAPE_BACKPLANE;
    return m;
}

uint64_t score_nearby(const ScoreMachine *m, const Faults *f, NodeIx node, uint32_t limit_distance)
{
    uint64_t score = 0;

    if (m->shape == SCORE_SHAPE_DIRECT)
        return 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        uint32_t d = distance(m, (uint32_t)node.i, i);
        uint64_t faults = faults_memory(f, (NodeIx){(int32_t)i});

        if (i == (uint32_t)node.i || d >= m->max_distance)
            continue;
        if (m->shape == SCORE_SHAPE_GLUELESS_MESH)
            score += faults * (m->max_distance - MAX(d, DISTANCE_LOCAL)) / (m->max_distance - DISTANCE_LOCAL);
        else if (d < limit_distance)
            score += faults;
    }
    return score;
}

uint32_t score_weight(const ScoreMachine *m, const Faults *f, NodeIx node, uint32_t limit_distance)
{
    uint64_t total = faults_total(f);

    if (total == 0)
        return 0;
    return (uint32_t)(1000 * (faults_memory(f, node) + score_nearby(m, f, node, limit_distance)) / total);
}

/* Where most accesses are so far, of nodes offered in ascending order. */
typedef struct Best {
    const Faults *faults;
    NodeIx current; /* keeps a tie; then who has most itself does, and then the lowest */
    NodeIx node;
    uint64_t value;
} Best;

static Best best_of_none(const Faults *f, NodeIx current)
{
    return (Best){.faults = f, .current = current, .node = NODE_NONE};
}

/* Nothing is never the best. */
static void offer(Best *best, uint32_t node, uint64_t value)
{
    NodeIx ix = {(int32_t)node};

    if (value < best->value || value == 0)
        return;
    if (value == best->value && ix.i != best->current.i &&
        (best->node.i == best->current.i ||
         faults_memory(best->faults, ix) <= faults_memory(best->faults, best->node)))
        return;
    best->value = value;
    best->node = ix;
}

static NodeIx prefer_most(const Faults *f, NodeIx current)
{
    Best best = best_of_none(f, current);

    for (uint32_t i = 0; i < f->n_nodes; i++)
        offer(&best, i, faults_memory(f, (NodeIx){(int32_t)i}));
    return best.node;
}

/* The node with CPUs nearest to `node`, which may be memory only. */
static NodeIx nearest_with_cpus(const ScoreMachine *m, const Faults *f, NodeIx node, NodeIx current)
{
    Best best = best_of_none(f, current);

    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (has_cpus(m, i))
            offer(&best, i, UINT64_MAX - distance(m, (uint32_t)node.i, i));
    return best.node;
}

static NodeIx prefer_mesh(const ScoreMachine *m, const Faults *f, NodeIx current)
{
    Best best = best_of_none(f, current);

    for (uint32_t i = 0; i < f->n_nodes; i++) {
        NodeIx ix = {(int32_t)i};

        if (has_cpus(m, i))
            offer(&best, i, faults_memory(f, ix) + score_nearby(m, f, ix, m->max_distance));
    }
    return best.node;
}

/* What the descent has come to: the nodes nearer than `below[k]` to `centre[k]`, for every k. A distance is one
 * byte, so there are not more steps than that. */
typedef struct Descent {
    uint32_t n;
    uint32_t centre[UINT8_MAX];
    uint32_t below[UINT8_MAX];
} Descent;

static bool is_candidate(const ScoreMachine *m, const Descent *descent, uint32_t node)
{
    for (uint32_t k = 0; k < descent->n; k++)
        if (distance(m, descent->centre[k], node) >= descent->below[k])
            return false;
    return true;
}

static uint64_t cluster_faults(const ScoreMachine *m, const Faults *f, const Descent *descent,
                               uint32_t centre, uint32_t below)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (distance(m, centre, i) < below && is_candidate(m, descent, i))
            sum += faults_memory(f, (NodeIx){(int32_t)i});
    return sum;
}

/* At the smallest distance each node is a cluster of its own. */
static NodeIx prefer_backplane(const ScoreMachine *m, const Faults *f, NodeIx current)
{
    Best best = best_of_none(f, current);
    Descent descent = {0};

    for (uint32_t below = m->max_distance; below > DISTANCE_LOCAL && descent.n < UINT8_MAX;
         below = next_distance(m, below)) {
        Best step = best_of_none(f, current);

        for (uint32_t i = 0; i < f->n_nodes; i++)
            if (has_cpus(m, i) && is_candidate(m, &descent, i))
                offer(&step, i, cluster_faults(m, f, &descent, i, below));
        if (step.node.i < 0)
            break;
        best = step;
        descent.centre[descent.n] = (uint32_t)step.node.i;
        descent.below[descent.n++] = below;
    }
    return best.node;
}

NodeIx score_preferred(const ScoreMachine *m, const Faults *task, const Faults *group, NodeIx current)
{
    const Faults *f = group ? group : task;
    NodeIx node;

    switch (group ? m->shape : SCORE_SHAPE_DIRECT) {
    case SCORE_SHAPE_GLUELESS_MESH:
        node = prefer_mesh(m, f, current);
        break;
    case SCORE_SHAPE_BACKPLANE:
        node = prefer_backplane(m, f, current);
        break;
    default:
        node = prefer_most(f, current);
        break;
    }
    if (node.i < 0)
        return current;
    return has_cpus(m, (uint32_t)node.i) ? node : nearest_with_cpus(m, f, node, current);
}
