/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Invariants over thousands of random Worlds, most of them odder than any machine. The seeds are fixed: what fails once
 * fails again. */

#include "fixture.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#define N_WORLDS    3000U
#define N_SEQUENCES 60U
#define N_TICKS     200U
#define NODES_MAX   8U

static const char *const machines[] = {
    TWO_SHARDS,
    "numa:1 l3:2 core:2 pu:2",
    "numa:2 l3:2 core:2 pu:2 distances=10,32,32,10",
    "numa:3 l3:1 core:2 pu:2 distances=10,20,30,20,10,20,30,20,10",
    "numa:4 l3:2 core:1 pu:2 distances=10,16,22,28,16,10,28,22,22,28,10,16,28,22,16,10",
    "numa:8 l3:1 core:2 pu:1",
};

/* Where each node goes when nodes are renamed; the identity otherwise. */
typedef struct Renaming {
    uint32_t to[NODES_MAX];
} Renaming;

typedef struct Random {
    uint64_t state;
} Random;

static uint32_t roll(Random *r, uint32_t below)
{
    return fixture_random(&r->state, below);
}

static bool chance(Random *r, uint32_t percent)
{
    return roll(r, 100) < percent;
}

/* Node i becomes node to[i]: everything else about the machine stays. */
static void rename_nodes(Topology *t, const Renaming *renaming)
{
    TopologyNode nodes[NODES_MAX];
    uint32_t distances[NODES_MAX * NODES_MAX];

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

static CpuMask intern(Fixture *f, hwloc_bitmap_t set)
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
        if (chance(r, percent))
            assert_int_equal(hwloc_bitmap_set(set, cpu), 0);
    if (hwloc_bitmap_iszero(set))
        assert_int_equal(hwloc_bitmap_set(set, roll(r, limit)), 0);
    return intern(f, set);
}

static void random_nodes(const Topology *t, Random *r, const Renaming *renaming, hwloc_bitmap_t ret)
{
    hwloc_bitmap_zero(ret);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (chance(r, 40))
            assert_int_equal(hwloc_bitmap_set(ret, renaming->to[i]), 0);
    if (hwloc_bitmap_iszero(ret))
        assert_int_equal(hwloc_bitmap_set(ret, renaming->to[roll(r, t->n_nodes)]), 0);
}

static void random_policy(Fixture *f, Random *r, const Renaming *renaming, unsigned number)
{
    static const char *const group_by[] = {"workload", "cgroup", "process"};
    char name[16], text[256];
    Policy *p;

    (void)snprintf(name, sizeof(name), "w%u", number);
    (void)snprintf(text, sizeof(text), "[Workload]\nGroupBy=%s\n[Placement]\nMode=fixed\nNodes=0\n",
                   group_by[roll(r, 3)]);
    p = fixture_policy(f, name, text);
    random_nodes(f->world->topology, r, renaming, p->nodes);
    if (chance(r, 30))
        p->mode = (int)(POLICY_MODE_AUTO + roll(r, POLICY_MODE_FIXED - POLICY_MODE_AUTO));
    if (p->mode != POLICY_MODE_FIXED && chance(r, 60))
        assert_int_equal(hwloc_bitmap_set_range(p->nodes, 0, (int)f->world->topology->n_nodes - 1), 0);
    p->expect_width = chance(r, 10) ? roll(r, 20) : 0;
    p->max_nodes = chance(r, 20) ? 1 + roll(r, 3) : 0;
    p->settle_usec = 1000000ULL * roll(r, 5);
    p->ping_pong_usec = 10000000ULL * roll(r, 3);
    if (chance(r, 5))
        p->act = (int)(chance(r, 50) ? POLICY_ACT_OBSERVE : POLICY_ACT_CPUSET);
    p->foreign_affinity = chance(r, 20) ? POLICY_FOREIGN_OVERRIDE : POLICY_FOREIGN_RESPECT;
    p->min_age_usec = chance(r, 20) ? 8000000 : 0;
    p->min_residency_usec = 500000ULL * roll(r, 3);
    p->steal = chance(r, 90);
    p->scope = (int)(chance(r, 70) ? POLICY_SCOPE_MACHINE : roll(r, POLICY_SCOPE_MAX));
    p->node_limit = chance(r, 60) ? 8 : 2;
    p->max_distance = chance(r, 60) ? 254 : 15 + roll(r, 20);
    p->wait_permille = 100 + roll(r, 400);
    p->idle_cost_ratio = chance(r, 80) ? 10 : 100000;
    p->lease_usec = 1000000 + 1000000ULL * roll(r, 3);
    p->cross_node_moves_per_sec = 1 + roll(r, 8);
    p->cross_node_burst = 1 + roll(r, 8);
    p->nice_tries = roll(r, 3);
    p->backoff_max = roll(r, 5) * 8;
}

typedef enum Mood {
    MOOD_MIXED,
    MOOD_CROWDED,
    MOOD_IDLE,
    MOOD_OFF,
} Mood;

static void random_cpu(Fixture *f, Random *r, CpuLoad *c, Mood mood)
{
    c->online = mood != MOOD_OFF && chance(r, 97);
    c->usable = c->online && chance(r, 97);
    c->wait_known = chance(r, 90);
    c->busy_permille = (uint16_t)(mood == MOOD_CROWDED ? 1000
                                  : mood == MOOD_IDLE  ? roll(r, 49)
                                                       : roll(r, 1001));
    c->busy_before_permille = (uint16_t)(chance(r, 97) ? c->busy_permille : roll(r, 1001));
    c->wait_permille = (uint16_t)(chance(r, 90) ? 0 : roll(r, 2000));
    c->wait_before_permille = (uint16_t)roll(r, 2000);
    c->idle_since_usec = c->busy_permille < 50 ? f->world->now_usec - roll(r, 10000000) : 0;
    c->idle_ewma_usec = roll(r, 1000000);
    if (chance(r, 5)) {
        c->cooldown_until_usec = f->world->now_usec - 500000 + roll(r, 1000000);
        c->cooldown_ticks = roll(r, 5);
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

/* Nodes that are somebody's home are mostly crowded, the others mostly idle. */
static void random_cpus(Fixture *f, Random *r, const Renaming *renaming)
{
    for (uint32_t i = 0; i < f->world->topology->n_nodes; i++) {
        hwloc_const_bitmap_t cpus = f->world->topology->nodes[renaming->to[i]].cpus;
        Mood mood =
            chance(r, 75) ? is_wanted(f, renaming->to[i]) ? MOOD_CROWDED : MOOD_IDLE : (Mood)roll(r, 4);

        for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
            random_cpu(f, r, &f->world->cpus[cpu], mood);
    }
}

/* The home a group may have: mostly what its policy says now, sometimes what it said before. */
static void random_homes(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (size_t i = 0; i < w->n_groups; i++) {
        Group *g = &w->groups[i];
        hwloc_bitmap_t nodes = hwloc_bitmap_alloc(), cpus = hwloc_bitmap_alloc();

        assert_true(nodes && cpus);
        if (chance(r, 75)) {
            if (chance(r, 80))
                assert_int_equal(hwloc_bitmap_copy(
                                     nodes, f->policies->policies[w->workloads[g->workload.i].policy]->nodes),
                                 0);
            else
                random_nodes(w->topology, r, renaming, nodes);
            assert_int_equal(topology_nodes_to_cpus(w->topology, nodes, cpus), 0);
            g->home_nodes = intern(f, TAKE_PTR(nodes));
            g->home = intern(f, TAKE_PTR(cpus));
            g->last_home_usec = w->now_usec - 1000000ULL * roll(r, 20);
            g->judge_usec = chance(r, 70) ? w->now_usec - 1000000 + roll(r, 2000000) : 0;
            g->before_wait_permille = roll(r, 500);
            g->frozen_until_usec = chance(r, 10) ? w->now_usec + 1000000 : 0;
            g->converged = g->id % 3 == 0;
            g->n_vetoes = roll(r, 3);
            g->backoff_ticks = roll(r, 4);
            g->backoff_until_tick = w->tick - 2 + roll(r, 5);
        }
        g->roams = !g->home && chance(r, 40);
        if (chance(r, 50)) {
            hwloc_bitmap_t before = hwloc_bitmap_alloc();

            assert_non_null(before);
            random_nodes(w->topology, r, renaming, before);
            g->before_nodes = intern(f, before);
        }
        hwloc_bitmap_free(nodes);
        hwloc_bitmap_free(cpus);
    }
}

/* Of half of the processes; and of some nodes it is known how much is free. */
static void random_memory(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        w->nodes[renaming->to[i]] =
            (NodeLoad){.free_known = chance(r, 80), .free_bytes = (uint64_t)roll(r, 4000) << 20};
    for (uint32_t i = 0; i < w->topology->n_nodes; i++)
        w->nodes[i].free_bytes = w->nodes[i].free_known ? w->nodes[i].free_bytes : 0;
    for (size_t i = 0; i < w->n_processes; i++) {
        uint64_t bytes[NODES_MAX] = {0};

        for (uint32_t n = 0; n < w->topology->n_nodes; n++)
            bytes[renaming->to[n]] = chance(r, 50) ? (uint64_t)roll(r, 2000) << 20 : 0;
        if (chance(r, 50))
            assert_int_equal(world_set_process_memory(w, &w->processes[i], bytes, w->now_usec), 0);
    }
}

/* Some of it is, or was, on its way. After homes and processes. */
static void random_moves(Fixture *f, Random *r, const Renaming *renaming)
{
    World *w = f->world;

    for (size_t i = 0; i < f->policies->n_policies; i++) {
        Policy *p = f->policies->policies[i];

        p->follow = chance(r, 90);
        p->evidence = chance(r, 95) ? POLICY_EVIDENCE_AUTO : POLICY_EVIDENCE_WRITE;
        p->rate_limit_bytes = chance(r, 30) ? 1000000 : 0;
    }
    w->kernel_balances = chance(r, 5);
    w->memory_pressure_permille = chance(r, 90) ? 0 : roll(r, 200);
    for (size_t i = 0; i < w->n_processes; i++) {
        Process *p = &w->processes[i];
        hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
        bool moves = chance(r, 6);

        assert_non_null(nodes);
        random_nodes(w->topology, r, renaming, nodes);
        p->memory.last = intern(f, nodes);
        p->memory.to = moves ? p->memory.last : NULL;
        p->memory.todo_bytes = moves ? (uint64_t)roll(r, 500) << 20 : 0;
        p->memory.over_usec = chance(r, 10) ? w->now_usec - 1000000 + roll(r, 1000000) : 0;
        p->memory.until_usec = chance(r, 10) ? w->now_usec - 500000 + roll(r, 1000000) : 0;
        p->memory.stuck_bytes = chance(r, 10) ? (uint64_t)roll(r, 2000) << 20 : 0;
        p->node_bytes_usec -= p->node_bytes && chance(r, 5) ? 3000000 : 0;
        p->grown_bytes = p->node_bytes && chance(r, 20) ? (uint64_t)roll(r, 500) << 20 : 0;
    }
}

/* Home and cpuset, cut to what is usable; NULL when nothing is left. */
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
    return intern(f, set);
}

static void random_lease(Fixture *f, Random *r, Process *p, Task *task)
{
    World *w = f->world;
    uint32_t cpu = roll(r, w->topology->cpu_limit);
    Lease lease = {
        .task = world_task_key(w, task),
        .group_id = w->groups[p->group.i].id,
        .cpu = {(int32_t)cpu},
        .since_usec = w->now_usec - roll(r, 3000000),
        .until_usec = w->now_usec - 200000 + roll(r, 3000000),
        .since_tick = w->tick - roll(r, 20),
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
    if (chance(r, 60))
        task->last_cpu = lease.cpu;
}

static void random_task(Fixture *f, Random *r, Process *p, pid_t tid)
{
    Task *task = fixture_task(f, p->pid, tid, (uint16_t)(chance(r, 30) ? 0 : roll(r, 1001)));
    CpuMask due = due_of(f, p, -1);

    task->run_permille = (uint16_t)roll(r, 1001);
    if (chance(r, 30))
        task->wait_before_permille = (uint16_t)roll(r, 1001);
    if (chance(r, 10))
        task->run_permille = task->run_before_permille = task->run_ewma_permille = task->wait_permille =
            task->wait_before_permille = task->wait_ewma_permille = 0;
    task->last_cpu.i = (int32_t)roll(r, f->world->topology->cpu_limit + 1) - 1;
    task->fresh = chance(r, 5);
    task->task_class = (uint8_t)(chance(r, 95) ? TASK_CLASS_NORMAL : roll(r, TASK_CLASS_MAX));
    if (chance(r, 10))
        task->last_move_usec = f->world->now_usec - roll(r, 2000000);

    if (due && chance(r, 80)) {
        task->allowed = due;
        if (chance(r, 95))
            task->original = p->cpuset;
        if (task->original && chance(r, 25))
            random_lease(f, r, p, task);
    } else if (chance(r, 30)) {
        task->allowed = random_mask(f, r, 20);
        task->hands = TASK_HANDS_FOREIGN;
    }
    if (chance(r, 8))
        task->hands = (uint8_t)roll(r, TASK_HANDS_MAX);
    if (task->hands == TASK_HANDS_REPINNED)
        p->yielded = true;
}

static void random_world(Fixture *f, uint64_t seed, const Renaming *renaming)
{
    Random r = {.state = seed * 0x9E3779B97F4A7C15ULL + 1};
    unsigned n_policies, n_processes;

    fixture_init(f, machines[roll(&r, ARRAY_SIZE(machines))]);
    rename_nodes(f->world->topology, renaming);
    f->limits.cross_node_moves_per_sec = 1 + roll(&r, 10);
    f->limits.cross_node_burst = 1 + roll(&r, 10);
    f->world->action_cost_usec = roll(&r, 30);
    f->world->partial = chance(&r, 3);

    n_policies = 1 + roll(&r, 3);
    for (unsigned i = 0; i < n_policies; i++)
        random_policy(f, &r, renaming, i);
    random_cpus(f, &r, renaming);
    n_processes = 1 + roll(&r, 6);
    for (unsigned i = 0; i < n_processes; i++) {
        char name[16];
        size_t at;

        (void)snprintf(name, sizeof(name), "w%u", roll(&r, n_policies + (chance(&r, 10) ? 1 : 0)));
        at = fixture_process(f, (pid_t)(100 * (i + 1)), name, NULL);
        if (chance(&r, 30))
            f->world->processes[at].cpuset = random_mask(f, &r, 70);
        f->world->processes[at].first_seen_usec += 1000000ULL * roll(&r, 10);
    }
    random_homes(f, &r, renaming);
    random_memory(f, &r, renaming);
    random_moves(f, &(Random){.state = seed * 0x2545F4914F6CDD1DULL + 1}, renaming);
    for (unsigned i = 0; i < n_processes; i++) {
        unsigned n = 1 + roll(&r, 12);

        for (unsigned k = 0; k < n; k++)
            random_task(f, &r, &f->world->processes[i], (pid_t)(100 * (i + 1) + k));
    }
    for (size_t i = 0; i < f->world->n_workloads; i++)
        f->world->workloads[i].paused = chance(&r, 4);
    f->limits.slow_tick = chance(&r, 50);
}

static const Renaming same = {.to = {0, 1, 2, 3, 4, 5, 6, 7}};

/* plan_check(), I9, I12 (the same bytes), I11. */
static void test_worlds(void **state)
{
    uint64_t n_kind[PLAN_KIND_MAX] = {0}, n_rule[PLAN_RULE_MAX] = {0}, n_refused[PLAN_REASON_MAX] = {0};

    for (uint64_t seed = 1; seed <= N_WORLDS; seed++) {
        CLEANUP_FREE char *once = NULL, *twice = NULL;
        Plan again = {0};
        bool cut;
        Fixture f;

        random_world(&f, seed, &same);
        fixture_plan(&f, f.limits.slow_tick);
        for (size_t i = 0; i < f.plan.n_actions; i++) {
            n_kind[f.plan.actions[i].kind]++;
            n_rule[f.plan.actions[i].rule]++;
        }
        for (size_t i = 0; i < PLAN_REASON_MAX; i++)
            n_refused[i] += f.plan.n_refused[i];

        once = plan_format(f.world, &f.plan);
        assert_int_equal(plan_compute(f.world, f.policies, &f.limits, &again), 0);
        twice = plan_format(f.world, &again);
        assert_string_equal(once, twice);
        plan_done(&again);

        cut = f.plan.n_refused[PLAN_REASON_BUDGET] > 0;
        fixture_commit(&f, NULL);
        fixture_plan(&f, f.limits.slow_tick);
        if (!cut && f.plan.n_actions + f.plan.n_homes > 0) {
            CLEANUP_FREE char *text = plan_format(f.world, &f.plan);

            (void)fprintf(stderr, "# again:\n%s# after:\n%s", text,
                          once); /* longer than what cmocka prints */
            fail_msg("I9: world %u is not settled", (unsigned)seed);
        }

        f.limits.observe = true;
        fixture_plan(&f, true);
        assert_int_equal(f.plan.n_actions, 0);
        fixture_done(&f);
    }

    /* The worlds are worth something: nearly everything happens in them. */
    for (int i = 0; i < PLAN_KIND_MAX; i++)
        assert_in_range(n_kind[i], 100, UINT64_MAX);
    for (int i = 0; i <= PLAN_RULE_HOME_GONE; i++) /* those behind are given to plan_release() */
        assert_in_range(n_rule[i], 10, UINT64_MAX);
    for (int i = 0; i < PLAN_REASON_MAX; i++)
        if (n_refused[i] == 0 && i != PLAN_REASON_REHEARSAL && i != PLAN_REASON_NO_POLICY &&
            i != PLAN_REASON_MODE_NONE && i != PLAN_REASON_NO_HOME && i != PLAN_REASON_BUDGET)
            fail_msg("no world in which something is refused for %s", plan_reason_name((PlanReason)i));
}

static void assert_same_nodes(const Topology *t, const Renaming *renaming, CpuMask a, CpuMask b)
{
    assert_int_equal(!a, !b);
    for (uint32_t i = 0; a && i < t->n_nodes; i++)
        assert_int_equal(hwloc_bitmap_isset(a, i), hwloc_bitmap_isset(b, renaming->to[i]));
}

/* I12: renaming nodes renames the plan and changes nothing else. */
static void assert_same_action(const Topology *t, const Renaming *renaming, const PlanAction *a,
                               const PlanAction *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->rule, b->rule);
    assert_int_equal(a->subject.pid, b->subject.pid);
    assert_int_equal(a->subject.tid, b->subject.tid);
    assert_int_equal(!a->from, !b->from);
    assert_int_equal(!a->to, !b->to);
    assert_true(!a->from || hwloc_bitmap_isequal(a->from, b->from));
    assert_true(!a->to || hwloc_bitmap_isequal(a->to, b->to));
    assert_int_equal(a->cpu.i, b->cpu.i);
    assert_int_equal(a->cross_node, b->cross_node);
    assert_int_equal(a->distance, b->distance);
    assert_int_equal(a->value, b->value);
    assert_same_nodes(t, renaming, a->home_nodes, b->home_nodes);
    assert_same_nodes(t, renaming, a->memory.from, b->memory.from);
    assert_same_nodes(t, renaming, a->memory.to, b->memory.to);
    assert_int_equal(a->memory.bytes, b->memory.bytes);
    assert_int_equal(a->memory.reserve_bytes, b->memory.reserve_bytes);
}

static void test_renaming(void **state)
{
    Random r = {.state = 99};

    for (uint64_t seed = 1; seed <= N_WORLDS; seed++) {
        Renaming renaming = same;
        Fixture f, g;
        uint32_t n;

        random_world(&f, seed, &same);
        n = f.world->topology->n_nodes;
        for (uint32_t i = n; i > 1; i--) {
            uint32_t k = roll(&r, i), t = renaming.to[k];

            renaming.to[k] = renaming.to[i - 1];
            renaming.to[i - 1] = t;
        }
        random_world(&g, seed, &renaming);
        fixture_plan(&f, f.limits.slow_tick);
        fixture_plan(&g, g.limits.slow_tick);
        assert_int_equal(f.plan.n_actions, g.plan.n_actions);
        for (size_t i = 0; i < f.plan.n_actions; i++)
            assert_same_action(f.world->topology, &renaming, &f.plan.actions[i], &g.plan.actions[i]);
        for (size_t i = 0; i < PLAN_REASON_MAX; i++)
            assert_int_equal(f.plan.n_refused[i], g.plan.n_refused[i]);
        fixture_done(&f);
        fixture_done(&g);
    }
}

/* Sequences: a random World lives on for a while, with random demands, outcomes and accidents. */

typedef struct History {
    uint64_t lends[4][PLAN_ACTIONS_PER_TICK * N_TICKS]; /* instants, by workload */
    size_t n_lends[4];
} History;

static void accidents(Fixture *f, Random *r)
{
    World *w = f->world;
    Task *task = &w->tasks[roll(r, (uint32_t)w->n_tasks)];
    CpuLoad *cpu = &w->cpus[roll(r, w->topology->cpu_limit)];

    if (chance(r, 2))
        cpu->online = cpu->usable = !cpu->online;
    if (chance(r, 1))
        w->workloads[roll(r, (uint32_t)w->n_workloads)].paused ^= true;
    if (roll(r, 1000) == 0) {
        task->hands = TASK_HANDS_REPINNED;
        w->processes[task->process.i].yielded = true;
    }
    /* Read again after a mask that was not ours. */
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i].hands == TASK_HANDS_UNKNOWN && chance(r, 20))
            w->tasks[i].hands = TASK_HANDS_FREE;
    if (roll(r, 1000) < 3 && w->n_tasks > 3) {
        task->gone = true;
        assert_int_equal(world_compact(w), 0);
    }
}

static void random_outcomes(const Plan *plan, Random *r, PlanOutcome *outcomes)
{
    static const PlanOutcome odd[] = {PLAN_OUTCOME_FOREIGN, PLAN_OUTCOME_RETRY, PLAN_OUTCOME_REFUSED,
                                      PLAN_OUTCOME_UNJOURNALLED, PLAN_OUTCOME_SKIPPED};

    for (size_t i = 0; i < plan->n_actions; i++)
        outcomes[i] = chance(r, 90) ? PLAN_OUTCOME_DONE : odd[roll(r, ARRAY_SIZE(odd))];
}

static void remember(const Fixture *f, const PlanOutcome *outcomes, History *h)
{
    for (size_t i = 0; i < f->plan.n_actions; i++) {
        const PlanAction *a = &f->plan.actions[i];

        if (a->kind == PLAN_KIND_LEND && a->cross_node && outcomes[i] == PLAN_OUTCOME_DONE)
            h->lends[a->workload.i][h->n_lends[a->workload.i]++] = f->world->now_usec;
    }
}

/* I4 */
static void assert_capped(const Fixture *f, const History *h)
{
    for (size_t w = 0; w < f->world->n_workloads; w++) {
        const Policy *p = group_policy(f->world, f->policies, (WorkloadIx){(int32_t)w});

        for (size_t i = 0; i < h->n_lends[w]; i++)
            for (size_t k = i; k < h->n_lends[w]; k++)
                assert_true((k - i + 1) * 1000000 <=
                            p->cross_node_burst * 1000000ULL +
                                p->cross_node_moves_per_sec * (h->lends[w][k] - h->lends[w][i]));
    }
}

static void test_sequences(void **state)
{
    static History history;
    size_t n_lends = 0;

    for (uint64_t seed = 1; seed <= N_SEQUENCES; seed++) {
        Random r = {.state = seed * 77 + 5};
        PlanOutcome outcomes[1024];
        uint16_t demand[256];
        Fixture f;

        history = (History){0};
        random_world(&f, seed, &same);
        f.world->partial = false;
        for (size_t i = 0; i < ARRAY_SIZE(demand); i++)
            demand[i] = (uint16_t)(chance(&r, 40) ? 1000 : 0);
        for (unsigned tick = 0; tick < N_TICKS; tick++) {
            demand[roll(&r, ARRAY_SIZE(demand))] = (uint16_t)(chance(&r, 30) ? 1000 : roll(&r, 300));
            for (size_t i = 0; i < f.world->n_tasks; i++)
                f.world->tasks[i].fresh = false;
            fixture_plan(&f, tick % 10 == 0);
            assert_true(f.plan.n_actions <= ARRAY_SIZE(outcomes));
            random_outcomes(&f.plan, &r, outcomes);
            remember(&f, outcomes, &history);
            fixture_commit(&f, outcomes);
            accidents(&f, &r);
            fixture_model(&f, demand);
        }
        assert_capped(&f, &history);
        for (size_t i = 0; i < 4; i++)
            n_lends += history.n_lends[i];
        fixture_done(&f);
    }
    assert_in_range(n_lends, 100, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_renaming),
        cmocka_unit_test(test_sequences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
