/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The random numbers are drawn in the same order however the nodes are named, so that a renamed World differs
 * in nothing else. */

#include "random-world.h"
#include "random-memory.h"

#include "base/parse.h"

static const char *const machines[] = {
    TWO_SHARDS,
    "numa:1 l3:2 core:2 pu:2",
    "numa:2 l3:2 core:2 pu:2 distances=10,32,32,10",
    "numa:3 l3:1 core:2 pu:2 distances=10,20,30,20,10,20,30,20,10",
    "numa:4 l3:2 core:1 pu:2 distances=10,16,22,28,16,10,28,22,22,28,10,16,28,22,16,10",
    "numa:8 l3:1 core:2 pu:1",
};

const Renaming random_no_renaming = {.to = {0, 1, 2, 3, 4, 5, 6, 7}};

uint32_t random_roll(Random *r, uint32_t below)
{
    return fixture_random(&r->state, below);
}

bool random_chance(Random *r, uint32_t percent)
{
    return random_roll(r, 100) < percent;
}

/* Renames node i to to[i]; everything else about the machine stays. */
static void rename_nodes(Topology *t, const Renaming *renaming)
{
    TopologyNode nodes[RANDOM_NODES_MAX];
    uint32_t distances[RANDOM_NODES_MAX * RANDOM_NODES_MAX];

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        nodes[renaming->to[i]] = t->nodes[i];
        nodes[renaming->to[i]].os_index = renaming->to[i];
        for (uint32_t j = 0; j < t->n_nodes; j++)
            distances[renaming->to[i] * t->n_nodes + renaming->to[j]] = t->distances[i * t->n_nodes + j];
    }
    memcpy(t->nodes, nodes, t->n_nodes * sizeof(*nodes));
    memcpy(t->distances, distances, (size_t)t->n_nodes * t->n_nodes * sizeof(*distances));
    for (uint32_t cpu = 0; cpu < t->cpu_limit; cpu++)
        t->cpus[cpu].node.i = (int32_t)renaming->to[t->cpus[cpu].node.i];
    for (uint32_t i = 0; i < t->n_llcs; i++) {
        hwloc_bitmap_zero(t->llcs[i].nodes);
        for (int cpu = hwloc_bitmap_first(t->llcs[i].cpus); cpu >= 0;
             cpu = hwloc_bitmap_next(t->llcs[i].cpus, cpu))
            assert_int_equal(hwloc_bitmap_set(t->llcs[i].nodes, (unsigned)t->cpus[cpu].node.i), 0);
    }
    assert_int_equal(topology_check(t), 0);
}

CpuMask random_intern(Fixture *f, hwloc_bitmap_t set)
{
    CpuMask mask = intern_mask(f->world->pool, set);

    assert_non_null(mask);
    hwloc_bitmap_free(set);
    return mask;
}

/* A random set of CPUs, never empty. */
static CpuMask random_mask(Fixture *f, Random *r, uint32_t percent)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    uint32_t limit = f->world->topology->cpu_limit;

    assert_non_null(set);
    for (uint32_t cpu = 0; cpu < limit; cpu++)
        if (random_chance(r, percent))
            assert_int_equal(hwloc_bitmap_set(set, cpu), 0);
    if (hwloc_bitmap_iszero(set))
        assert_int_equal(hwloc_bitmap_set(set, random_roll(r, limit)), 0);
    return random_intern(f, set);
}

void random_nodes(const Topology *t, Random *r, const Renaming *renaming, hwloc_bitmap_t ret)
{
    hwloc_bitmap_zero(ret);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (random_chance(r, 40))
            assert_int_equal(hwloc_bitmap_set(ret, renaming->to[i]), 0);
    if (hwloc_bitmap_iszero(ret))
        assert_int_equal(hwloc_bitmap_set(ret, renaming->to[random_roll(r, t->n_nodes)]), 0);
}

static void random_policy(Fixture *f, Random *r, const Renaming *renaming, unsigned number)
{
    static const char *const group_by[] = {"workload", "cgroup", "process"};
    char name[16], text[256];
    Policy *p;

    (void)snprintf(name, sizeof(name), "w%u", number);
    (void)snprintf(text, sizeof(text), "[Workload]\nGroupBy=%s\n[Placement]\nMode=fixed\nNodes=0\n",
                   group_by[random_roll(r, 3)]);
    p = fixture_policy(f, name, text);
    random_nodes(f->world->topology, r, renaming, p->nodes);
    if (random_chance(r, 30))
        p->mode = (int)(POLICY_MODE_AUTO + random_roll(r, POLICY_MODE_FIXED - POLICY_MODE_AUTO));
    if (p->mode != POLICY_MODE_FIXED && random_chance(r, 60))
        assert_int_equal(hwloc_bitmap_set_range(p->nodes, 0, (int)f->world->topology->n_nodes - 1), 0);
    p->expect_width = random_chance(r, 10) ? random_roll(r, 20) : 0;
    p->max_nodes = random_chance(r, 20) ? 1 + random_roll(r, 3) : 0;
    p->settle_usec = 1000000ULL * random_roll(r, 5);
    p->ping_pong_usec = 10000000ULL * random_roll(r, 3);
    if (random_chance(r, 5))
        p->act = (int)(random_chance(r, 50) ? POLICY_ACT_OBSERVE : POLICY_ACT_CPUSET);
    p->foreign_affinity = random_chance(r, 20) ? POLICY_FOREIGN_OVERRIDE : POLICY_FOREIGN_RESPECT;
    p->min_age_usec = random_chance(r, 20) ? 8000000 : 0;
    p->min_residency_usec = 500000ULL * random_roll(r, 3);
    p->steal = random_chance(r, 90);
    p->scope = (int)(random_chance(r, 70) ? POLICY_SCOPE_MACHINE : random_roll(r, POLICY_SCOPE_MAX));
    p->node_limit = random_chance(r, 60) ? 8 : 2;
    p->max_distance = random_chance(r, 60) ? 254 : 15 + random_roll(r, 20);
    p->wait_permille = 100 + random_roll(r, 400);
    p->idle_cost_ratio = random_chance(r, 80) ? 10 : 100000;
    p->lease_usec = 1000000 + 1000000ULL * random_roll(r, 3);
    p->cross_node_moves_per_sec = 1 + random_roll(r, 8);
    p->cross_node_burst = 1 + random_roll(r, 8);
    p->nice_tries = random_roll(r, 3);
    p->backoff_max = random_roll(r, 5) * 8;
}

typedef enum Mood {
    MOOD_MIXED,
    MOOD_CROWDED,
    MOOD_IDLE,
    MOOD_OFF,
} Mood;

static void random_cpu(Fixture *f, Random *r, CpuLoad *c, Mood mood)
{
    c->online = mood != MOOD_OFF && random_chance(r, 97);
    c->usable = c->online && random_chance(r, 97);
    c->wait_known = random_chance(r, 90);
    c->busy_permille = (uint16_t)(mood == MOOD_CROWDED ? 1000
                                  : mood == MOOD_IDLE  ? random_roll(r, 49)
                                                       : random_roll(r, 1001));
    c->busy_before_permille = (uint16_t)(random_chance(r, 97) ? c->busy_permille : random_roll(r, 1001));
    c->wait_permille = (uint16_t)(random_chance(r, 90) ? 0 : random_roll(r, 2000));
    c->wait_before_permille = (uint16_t)random_roll(r, 2000);
    c->idle_since_usec = c->busy_permille < 50 ? f->world->now_usec - random_roll(r, 10000000) : 0;
    c->idle_ewma_usec = random_roll(r, 1000000);
    if (random_chance(r, 5)) {
        c->cooldown_until_usec = f->world->now_usec - 500000 + random_roll(r, 1000000);
        c->cooldown_ticks = random_roll(r, 5);
    }
}

static bool is_wanted(const Fixture *f, uint32_t node)
{
    for (size_t i = 0; i < f->policies->n_policies; i++)
        if (f->policies->policies[i]->mode == POLICY_MODE_FIXED &&
            hwloc_bitmap_isset(f->policies->policies[i]->nodes, node))
            return true;
    return false;
}

/* Nodes that belong to a home are mostly crowded, others mostly idle. */
static void random_cpus(Fixture *f, Random *r, const Renaming *renaming)
{
    for (uint32_t i = 0; i < f->world->topology->n_nodes; i++) {
        hwloc_const_bitmap_t cpus = f->world->topology->nodes[renaming->to[i]].cpus;
        Mood mood = random_chance(r, 75) ? is_wanted(f, renaming->to[i]) ? MOOD_CROWDED : MOOD_IDLE
                                         : (Mood)random_roll(r, 4);

        for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
            random_cpu(f, r, &f->world->cpus[cpu], mood);
    }
}

/* Gives groups homes: mostly those their policy allows now, sometimes others it may have allowed before. */
static void random_homes(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (size_t i = 0; i < w->n_groups; i++) {
        Group *g = &w->groups[i];
        CLEANUP_BITMAP hwloc_bitmap_t nodes = hwloc_bitmap_alloc(), cpus = hwloc_bitmap_alloc();

        assert_true(nodes && cpus);
        if (random_chance(r, 75)) {
            if (random_chance(r, 80))
                assert_int_equal(hwloc_bitmap_copy(
                                     nodes, f->policies->policies[w->workloads[g->workload.i].policy]->nodes),
                                 0);
            else
                random_nodes(w->topology, r, renaming, nodes);
            assert_int_equal(topology_nodes_to_cpus(w->topology, nodes, cpus), 0);
            g->home_nodes = random_intern(f, TAKE_PTR(nodes));
            g->home = random_intern(f, TAKE_PTR(cpus));
            g->last_home_usec = w->now_usec - 1000000ULL * (1 + random_roll(r, 20));
            g->judge_usec = random_chance(r, 70) ? w->now_usec - 1000000 + random_roll(r, 2000000) : 0;
            g->before_wait_permille = random_roll(r, 500);
            g->frozen_until_usec = random_chance(r, 10) ? w->now_usec + 1000000 : 0;
            g->converged = g->id % 3 == 0;
            g->n_vetoes = random_roll(r, 3);
            g->backoff_ticks = random_roll(r, 4);
            g->backoff_until_tick = w->tick - 2 + random_roll(r, 5);
        }
        g->roams = !g->home && random_chance(r, 40);
        if (g->roams)
            g->last_home_usec = w->now_usec - 1000000ULL * (1 + random_roll(r, 20));
        if (random_chance(r, 50)) {
            hwloc_bitmap_t before = hwloc_bitmap_alloc();

            assert_non_null(before);
            random_nodes(w->topology, r, renaming, before);
            g->before_nodes = random_intern(f, before);
        }
    }
}

/* Returns home and cpuset, without CPUs that are not usable; NULL when nothing is left. */
static CpuMask due_of(Fixture *f, const Process *p, int extra)
{
    hwloc_bitmap_t set;

    if (p->group.i < 0 || !f->world->groups[p->group.i].home)
        return NULL;
    set = hwloc_bitmap_alloc();
    assert_non_null(set);
    assert_int_equal(hwloc_bitmap_and(set, f->world->groups[p->group.i].home, p->cpuset), 0);
    for (uint32_t cpu = 0; cpu < f->world->topology->cpu_limit; cpu++)
        if (!f->world->cpus[cpu].usable)
            assert_int_equal(hwloc_bitmap_clr(set, cpu), 0);
    if (hwloc_bitmap_iszero(set)) {
        hwloc_bitmap_free(set);
        return NULL;
    }
    if (extra >= 0)
        assert_int_equal(hwloc_bitmap_set(set, (unsigned)extra), 0);
    return random_intern(f, set);
}

static void random_lease(Fixture *f, Random *r, Process *p, Task *task)
{
    World *w = f->world;
    uint32_t cpu = random_roll(r, w->topology->cpu_limit);
    Lease lease = {
        .task = world_task_key(w, task),
        .group_id = w->groups[p->group.i].id,
        .cpu = {(int32_t)cpu},
        .since_usec = w->now_usec - random_roll(r, 3000000),
        .until_usec = w->now_usec - 200000 + random_roll(r, 3000000),
        .since_tick = w->tick - 1 - random_roll(r, 20),
    };

    if (hwloc_bitmap_isset(w->groups[p->group.i].home, cpu) || !hwloc_bitmap_isset(p->cpuset, cpu))
        return;
    lease.since_usec = MIN(lease.since_usec, lease.until_usec);
    lease.cross_node =
        !hwloc_bitmap_isset(w->groups[p->group.i].home_nodes, (unsigned)w->topology->cpus[cpu].node.i);
    if (world_add_lease(w, &lease) < 0)
        return;
    task->allowed = due_of(f, p, (int)cpu);
    task->last_move_usec = lease.since_usec;
    if (random_chance(r, 60))
        task->last_cpu = lease.cpu;
}

static void random_task(Fixture *f, Random *r, Process *p, pid_t tid)
{
    Task *task = fixture_task(f, p->pid, tid, (uint16_t)(random_chance(r, 30) ? 0 : random_roll(r, 1001)));
    CpuMask due = due_of(f, p, -1);

    task->run_permille = (uint16_t)random_roll(r, 1001);
    if (random_chance(r, 30))
        task->wait_before_permille = (uint16_t)random_roll(r, 1001);
    if (random_chance(r, 10))
        task->run_permille = task->run_before_permille = task->run_ewma_permille = task->wait_permille =
            task->wait_before_permille = task->wait_ewma_permille = 0;
    task->last_cpu.i = (int32_t)random_roll(r, f->world->topology->cpu_limit + 1) - 1;
    task->fresh = random_chance(r, 5);
    task->task_class = (uint8_t)(random_chance(r, 95) ? TASK_CLASS_NORMAL : random_roll(r, TASK_CLASS_MAX));
    if (random_chance(r, 10))
        task->last_move_usec = f->world->now_usec - random_roll(r, 2000000);

    if (due && random_chance(r, 80)) {
        task->allowed = due;
        if (random_chance(r, 95))
            task->original = p->cpuset;
        if (task->original && random_chance(r, 25))
            random_lease(f, r, p, task);
    } else if (random_chance(r, 30)) {
        task->allowed = random_mask(f, r, 20);
        task->hands = TASK_HANDS_FOREIGN;
    }
    if (random_chance(r, 8))
        task->hands = (uint8_t)random_roll(r, TASK_HANDS_MAX);
    if (task->hands == TASK_HANDS_REPINNED)
        p->yielded = true;
}

/* Some processes without a home are pinned by somebody else, with all their threads; some have bound memory. */
static void random_pins(Fixture *f, Random *r)
{
    World *w = f->world;

    for (size_t i = 0; i < w->n_processes; i++) {
        CpuMask mask = random_mask(f, r, 10);
        bool homeless = w->processes[i].group.i < 0 || !w->groups[w->processes[i].group.i].home;
        size_t n, first = world_process_tasks(w, &w->processes[i], &n);

        if (w->processes[i].node_bytes && random_chance(r, 10))
            w->processes[i].bound_bytes = (uint64_t)random_roll(r, 2000) << 20;
        if (!homeless || !random_chance(r, 50))
            continue;
        for (size_t k = first; k < first + n; k++) {
            w->tasks[k].allowed = mask;
            w->tasks[k].original = NULL;
            w->tasks[k].hands = TASK_HANDS_FOREIGN;
        }
    }
}

/* The use of memory by threads is known in a third of the Worlds; some threads have a home node there. */
static void random_uses(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;
    bool known = random_chance(r, 35);

    for (size_t i = 0; i < w->n_tasks; i++) {
        Task *task = &w->tasks[i];
        uint64_t pages[RANDOM_NODES_MAX];
        uint32_t node = renaming->to[random_roll(r, w->topology->n_nodes)];
        bool paired = i > 0 && task[-1].process.i == task->process.i && random_chance(r, 20);
        TaskKey buddy = paired ? world_task_key(w, &task[-1]) : (TaskKey){0};
        hwloc_bitmap_t set = hwloc_bitmap_alloc();

        assert_non_null(set);
        for (uint32_t n = 0; n < w->topology->n_nodes; n++)
            pages[renaming->to[n]] = 1 + random_roll(r, 1000000);
        if (known && random_chance(r, 80))
            assert_int_equal(world_set_task_use(w, task, pages, random_roll(r, 1001), buddy, w->now_usec), 0);
        if (!known || !task->original || task->lease >= 0 || random_chance(r, 50) ||
            !hwloc_bitmap_isset(w->groups[w->processes[task->process.i].group.i].home_nodes, node)) {
            hwloc_bitmap_free(set);
            continue;
        }
        assert_int_equal(hwloc_bitmap_and(set, task->allowed, w->topology->nodes[node].cpus), 0);
        task->home_node.i = (int32_t)node;
        if (hwloc_bitmap_iszero(set))
            hwloc_bitmap_free(set);
        else
            task->allowed = random_intern(f, set);
    }
    for (size_t i = 0; i < w->n_groups; i++) {
        w->groups[i].apart_usec = random_chance(r, 50) ? 0 : w->now_usec - random_roll(r, 3000000);
        if (random_chance(r, 60))
            continue;
        w->groups[i].pool_until_usec = w->now_usec + 2000000 - random_roll(r, 4000000);
        w->groups[i].pool_next_usec = random_chance(r, 50) ? 0 : w->now_usec + random_roll(r, 3000000);
        w->groups[i].pool_before_permille = random_chance(r, 50) ? 0 : random_roll(r, 1000);
        w->groups[i].pool_others_permille = random_roll(r, 1000);
        w->groups[i].pool_progress = random_chance(r, 50) ? 0 : random_roll(r, 20000);
    }
}

/* Threads enough to need several nodes. */
#define WIDE_THREADS 40U

/* Makes the first process need several nodes, with nearly all of its memory on one (P17). */
static void random_wide(Fixture *f, Random *r, const Renaming *renaming)
{
    Process *p = &f->world->processes[0];
    uint64_t bytes[RANDOM_NODES_MAX] = {0};

    for (size_t i = 0; i < f->policies->n_policies; i++)
        f->policies->policies[i]->mode = POLICY_MODE_AUTO;
    for (uint32_t n = 0; n < f->world->topology->n_nodes; n++)
        bytes[renaming->to[n]] = (uint64_t)random_roll(r, 50) << 20;
    bytes[renaming->to[random_roll(r, f->world->topology->n_nodes)]] += (uint64_t)2000 << 20;
    assert_int_equal(world_set_process_memory(f->world, p, bytes, f->world->now_usec), 0);
    if (p->group.i >= 0 && !f->world->groups[p->group.i].home) {
        f->world->groups[p->group.i].roams = true;
        f->world->groups[p->group.i].last_home_usec =
            f->world->now_usec - 1000000ULL * (1 + random_roll(r, 20));
    }
}

/* Policies for random_full(). Call before there are groups. */
static void policies_full(Fixture *f)
{
    for (size_t i = 0; i < f->policies->n_policies; i++) {
        Policy *p = f->policies->policies[i];

        p->mode = POLICY_MODE_AUTO;
        p->group_by = POLICY_GROUP_BY_PROCESS;
        p->act = POLICY_ACT_AFFINITY;
        p->max_nodes = 0;
    }
}

/* Adds two programs of one thread for each CPU, none of which is idle; most of them run beside their memory. */
static void random_full(Fixture *f, Random *r, const Renaming *renaming)
{
    const Topology *topology = f->world->topology;

    fixture_cpus(f, 0, (int)topology->cpu_limit - 1, 1000, 0);
    for (size_t i = 0; i < f->policies->n_policies; i++) {
        hwloc_bitmap_free(f->policies->policies[i]->nodes);
        f->policies->policies[i]->nodes = NULL;
    }
    for (uint32_t i = 0; i < 2 * topology->cpu_limit; i++) {
        const TopologyCpu *cpu = topology_cpu(topology, (CpuIx){(int32_t)(i / 2)});
        uint64_t bytes[RANDOM_NODES_MAX] = {0};
        pid_t pid = (pid_t)(10000 + i);
        size_t at;

        if (!cpu)
            continue;
        at = fixture_process(f, pid, "w0", NULL);
        f->world->processes[at].first_seen_usec += 1000000ULL * random_roll(r, 10);
        f->world->processes[at].started_usec = f->world->processes[at].first_seen_usec;
        fixture_task(f, pid, pid, 500)->last_cpu.i = (int32_t)(i / 2);
        bytes[random_chance(r, 80) ? (uint32_t)cpu->node.i
                                   : renaming->to[random_roll(r, topology->n_nodes)]] =
            (uint64_t)random_roll(r, 100) << 20;
        if (random_chance(r, 80))
            assert_int_equal(
                world_set_process_memory(f->world, &f->world->processes[at], bytes, f->world->now_usec), 0);
    }
}

/* Makes a thread not wait, and run all the time where it may. */
static void calm(Task *task)
{
    task->wait_permille = task->wait_before_permille = 0;
    task->run_permille = task->run_before_permille = (uint16_t)(900 + task->run_permille % 101);
    if (task->allowed && task->lease < 0 && !hwloc_bitmap_isset(task->allowed, (unsigned)task->last_cpu.i))
        task->last_cpu.i =
            task->tid % 2 ? hwloc_bitmap_first(task->allowed) : hwloc_bitmap_last(task->allowed);
}

static void make_world(Fixture *f, uint64_t seed, const Renaming *renaming, bool full)
{
    Random r = {.state = seed * 0x9E3779B97F4A7C15ULL + 1};
    unsigned n_policies, n_processes;
    bool wide = seed % 8 == 0;

    fixture_init(f, machines[random_roll(&r, ARRAY_SIZE(machines))]);
    rename_nodes(f->world->topology, renaming);
    f->limits.cross_node_moves_per_sec = 1 + random_roll(&r, 10);
    f->limits.cross_node_burst = 1 + random_roll(&r, 10);
    f->world->action_cost_usec = random_roll(&r, 30);
    f->world->partial = random_chance(&r, 3);

    n_policies = 1 + random_roll(&r, 3);
    for (unsigned i = 0; i < n_policies; i++)
        random_policy(f, &r, renaming, i);
    if (full)
        policies_full(f);
    random_cpus(f, &r, renaming);
    n_processes = 1 + random_roll(&r, 6);
    for (unsigned i = 0; i < n_processes; i++) {
        char name[16];
        size_t at;

        (void)snprintf(name, sizeof(name), "w%u",
                       random_roll(&r, n_policies + (random_chance(&r, 10) ? 1 : 0)));
        at = fixture_process(f, (pid_t)(100 * (i + 1)), name, NULL);
        if (random_chance(&r, 30))
            f->world->processes[at].cpuset = random_mask(f, &r, 70);
        f->world->processes[at].first_seen_usec += 1000000ULL * random_roll(&r, 10);
        f->world->processes[at].started_usec = f->world->processes[at].first_seen_usec;
    }
    random_homes(f, &r, renaming);
    random_memory(f, &r, renaming);
    if (wide)
        random_wide(f, &(Random){.state = seed * 0x9FB21C651E98DF25ULL + 1}, renaming);
    random_moves(f, &(Random){.state = seed * 0x2545F4914F6CDD1DULL + 1}, renaming);
    random_others(f, &(Random){.state = seed * 0xE7037ED1A0B428DBULL + 1}, renaming);
    random_traffic(f, &(Random){.state = seed * 0x8EBC6AF09C88C6E3ULL + 1}, renaming);
    random_gathers(f, &(Random){.state = seed * 0xD6E8FEB86659FD93ULL + 1}, renaming);
    for (unsigned i = 0; i < n_processes; i++) {
        unsigned n = i == 0 && wide ? 0 : 1 + random_roll(&r, 12);

        for (unsigned k = n; i == 0 && wide && k < WIDE_THREADS; k++)
            fixture_task(f, 100, (pid_t)(100 + k), 0);
        for (unsigned k = 0; k < n; k++)
            random_task(f, &r, &f->world->processes[i], (pid_t)(100 * (i + 1) + k));
    }
    if (full)
        random_full(f, &(Random){.state = seed * 0xC2B2AE3D27D4EB4FULL + 1}, renaming);
    for (size_t i = 0; i < f->world->n_tasks && seed % 3 == 2; i++)
        calm(&f->world->tasks[i]);
    random_pins(f, &(Random){.state = seed * 0xA24BAED4963EE407ULL + 1});
    random_uses(f, &(Random){.state = seed * 0xD1342543DE82EF95ULL + 1}, renaming);
    for (size_t i = 0; i < f->world->n_workloads; i++)
        f->world->workloads[i].paused = random_chance(&r, 4);
    f->limits.slow_tick = random_chance(&r, 50);
}

void random_world(Fixture *f, uint64_t seed, const Renaming *renaming)
{
    make_world(f, seed, renaming, false);
}

void random_full_world(Fixture *f, uint64_t seed, const Renaming *renaming)
{
    make_world(f, seed, renaming, true);
}
