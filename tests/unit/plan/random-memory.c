/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The memory of a random World: where it lies and goes, and what is measured of it. */

#include "random-memory.h"

/* Places the memory of half of the processes; the free memory of some nodes is known. */
void random_memory(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        w->nodes[renaming->to[i]] = (NodeLoad){.free_known = random_chance(r, 80),
                                               .free_bytes = (uint64_t)random_roll(r, 4000) << 20};
    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        w->nodes[i].free_bytes = w->nodes[i].free_known ? w->nodes[i].free_bytes : 0;
    for (size_t i = 0; i < w->n_processes; i++) {
        uint64_t bytes[RANDOM_NODES_MAX] = {0};

        for (uint32_t n = 0; n < w->topology->n_nodes; n++)
            bytes[renaming->to[n]] = random_chance(r, 50) ? (uint64_t)random_roll(r, 2000) << 20 : 0;
        if (random_chance(r, 50))
            assert_int_equal(world_set_process_memory(w, &w->processes[i], bytes, w->now_usec), 0);
    }
}

/* Unplaced load on some nodes, on most of them a little. */
void random_others(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++) {
        NodeLoad *node = &w->nodes[renaming->to[i]];

        node->others_permille = random_chance(r, 30) ? random_roll(r, 4000) : 0;
        if (random_chance(r, 60))
            node->others_permille = MIN(node->others_permille, random_roll(r, 4000));
    }
}

/* Some memory is, or was, being moved. Call after homes and processes. */
void random_moves(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (size_t i = 0; i < f->policies->n_policies; i++) {
        Policy *p = f->policies->policies[i];

        p->follow = random_chance(r, 90);
        p->even_out = random_chance(r, 70);
        p->evidence = random_chance(r, 95) ? POLICY_EVIDENCE_AUTO : POLICY_EVIDENCE_WRITE;
        p->rate_limit_bytes = random_chance(r, 30) ? 1000000 : 0;
    }
    w->kernel_balances = random_chance(r, 5);
    w->use_hidden = random_chance(r, 50);
    w->memory_pressure_permille = random_chance(r, 90) ? 0 : random_roll(r, 200);
    for (size_t i = 0; i < w->n_processes; i++) {
        Process *p = &w->processes[i];
        hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
        bool moves = random_chance(r, 6);

        assert_non_null(nodes);
        random_nodes(w->topology, r, renaming, nodes);
        p->memory.last = random_intern(f, nodes);
        p->memory.to = moves ? p->memory.last : NULL;
        p->memory.todo_bytes = moves ? (uint64_t)random_roll(r, 500) << 20 : 0;
        p->memory.over_usec = random_chance(r, 10) ? w->now_usec - 1000000 + random_roll(r, 1000000) : 0;
        p->memory.until_usec = random_chance(r, 10) ? w->now_usec - 500000 + random_roll(r, 1000000) : 0;
        p->use_awaited = random_chance(r, 3);
        p->use_hidden = p->write_fails = random_chance(r, 3);
        p->memory.stuck_bytes = random_chance(r, 10) ? (uint64_t)random_roll(r, 2000) << 20 : 0;
        p->memory.stripe = random_chance(r, 20);
        p->node_bytes_usec -= p->node_bytes && random_chance(r, 5) ? 3000000 : 0;
        p->stall_usec = random_chance(r, 50) ? w->now_usec - random_roll(r, 20000000) : 0;
        p->ipc_permille = p->stall_usec > 0 ? (uint16_t)random_roll(r, 4000) : 0;
        p->stall_permille =
            p->stall_usec > 0 ? (uint16_t)random_roll(r, random_chance(r, 50) ? 100 : 1001) : 0;
        p->grown_bytes = p->node_bytes && random_chance(r, 20) ? (uint64_t)random_roll(r, 500) << 20 : 0;
    }
}

/* Some memory lies, or is to lie, where it was before it was gathered. */
void random_gathers(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (size_t i = 0; i < w->n_processes; i++) {
        MemoryGather *gather = &w->processes[i].gather;
        hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

        assert_non_null(nodes);
        random_nodes(w->topology, r, renaming, nodes);
        if (random_chance(r, 20)) {
            gather->nodes = random_intern(f, nodes);
            gather->cpuset = w->processes[i].cpuset;
            gather->progress = random_roll(r, 4000);
            gather->since_usec = w->now_usec - random_roll(r, 10000000);
            gather->until_usec = random_chance(r, 80) ? w->now_usec - 1000000 + random_roll(r, 5000000) : 0;
            gather->slower = random_chance(r, 50);
            gather->trial = gather->until_usec > 0 && random_chance(r, 50);
            w->processes[i].cpu_permille += 500;
        } else {
            hwloc_bitmap_free(nodes);
        }
    }
}

/* Traffic between memory and caches; and, on some machines, the bandwidth of nodes. */
void random_traffic(Fixture *f, Random *r, const Renaming *renaming)
{
    Topology *t = f->world->topology;
    bool told = random_chance(r, 50), same = random_chance(r, 80), some = random_chance(r, 10);
    uint32_t first = 7000 + random_roll(r, 60000);

    for (uint32_t i = 0; i < t->n_nodes; i++)
        t->nodes[renaming->to[i]].bandwidth_mb = !told || (some && i == 0) ? 0
                                                 : same                    ? first
                                                                           : 7000 + random_roll(r, 60000);
    for (size_t i = 0; i < f->world->n_processes; i++) {
        uint32_t mb = random_roll(r, random_chance(r, 50) ? 20000 : 200);

        f->world->processes[i].traffic_mb = f->world->processes[i].stall_usec > 0 ? mb : 0;
        f->world->processes[i].cpu_permille = random_roll(r, 8000);
    }
}
