/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fixture.h"

#include "../cpu-list.h"
#include "../machine.h"
#include "base/time.h"
#include "world/load.h"

void fixture_init(Fixture *f, const char *synthetic)
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine(synthetic);

    *f = (Fixture){.limits = {.cross_node_moves_per_sec = 1000, .cross_node_burst = 1000}};
    assert_int_equal(world_new(topology, &f->world), 0);
    f->world->now_usec = 1000000000;
    f->world->tick = 1000;
    f->world->interval_usec = FIXTURE_TICK_USEC;
    fixture_cpus(f, 0, (int)topology->cpu_limit - 1, 0, 0);

    f->policies = calloc(1, sizeof(*f->policies));
    assert_non_null(f->policies);
}

void fixture_init_with(Fixture *f, const char *synthetic, const char *policy)
{
    fixture_init(f, synthetic);
    fixture_policy(f, "a", policy);
}

void fixture_done(Fixture *f)
{
    plan_done(&f->plan);
    f->world = world_free(f->world);
    f->policies = policy_set_free(f->policies);
}

Policy *fixture_policy(Fixture *f, const char *name, const char *text)
{
    PolicySet *set = f->policies;
    ConfReport report = {0};
    char all[1024];

    (void)snprintf(all, sizeof(all), "[Match]\nComm=*\n%s", text);
    assert_true(GROW(set->policies, set->capacity, set->n_policies + 1));
    set->policies[set->n_policies] = NULL;
    if (policy_parse(name, all, strlen(all), name, NULL, &set->policies[set->n_policies], &report) < 0)
        fail_msg("%s", report.n_messages > 0 ? report.messages[0].text : "policy");
    conf_report_done(&report);
    set->n_policies++;
    assert_int_equal(group_sync_workloads(f->world, set), 0);
    return set->policies[set->n_policies - 1];
}

CpuMask fixture_mask(Fixture *f, const char *list)
{
    CpuMask mask;

    if (list)
        return test_mask(f->world->pool, list);
    mask = intern_mask(f->world->pool, f->world->topology->all_cpus);
    assert_non_null(mask);
    return mask;
}

void fixture_memory(Fixture *f)
{
    for (uint32_t i = 0; i < f->world->topology->n_nodes; i++) {
        f->world->topology->nodes[i].memory_bytes = 8ULL << 30;
        f->world->nodes[i].free_bytes = 4ULL << 30;
        f->world->nodes[i].free_known = true;
    }
}

void fixture_bytes(Fixture *f, pid_t pid, const uint64_t *bytes)
{
    Process *process = world_process(f->world, pid);

    assert_int_equal(world_set_process_memory(f->world, process, bytes, f->world->now_usec), 0);
}

void fixture_use(Fixture *f, pid_t pid, pid_t tid, const uint64_t *pages, uint32_t private_permille,
                 TaskKey buddy)
{
    Task *task = fixture_find(f, pid, tid);

    assert_int_equal(world_set_task_use(f->world, task, pages, private_permille, buddy, f->world->now_usec),
                     0);
}

size_t fixture_process(Fixture *f, pid_t pid, const char *policy, const char *cpuset)
{
    Process process = {
        .pid = pid,
        .parent = 1,
        .start_ticks = (uint64_t)pid * 10,
        .started_usec = f->world->now_usec - 10000000,
        .first_seen_usec = f->world->now_usec - 10000000,
        .comm = intern_string(f->world->pool, "job"),
        .cgroup = intern_string(f->world->pool, "/job.slice"),
        .cpuset = fixture_mask(f, cpuset),
        .workload = WORKLOAD_NONE,
        .group = GROUP_NONE,
    };
    int index;

    for (size_t i = 0; i < f->policies->n_policies; i++)
        if (strcmp(f->policies->policies[i]->name, policy) == 0)
            assert_int_equal(group_assign(f->world, f->policies, &process, i), 0);
    index = world_add_process(f->world, &process);
    assert_true(index >= 0);
    return (size_t)index;
}

Task *fixture_task(Fixture *f, pid_t pid, pid_t tid, uint16_t wait)
{
    const Process *process = world_process(f->world, pid);
    Task task = {
        .tid = tid,
        .process = {(int32_t)(process - f->world->processes)},
        .start_ticks = (uint64_t)tid * 10,
        .comm = "job",
        .last_cpu = CPU_NONE,
        .run_permille = (uint16_t)(1000 - wait),
        .run_before_permille = (uint16_t)(1000 - wait),
        .run_ewma_permille = (uint16_t)(1000 - wait),
        .wait_permille = wait,
        .wait_before_permille = wait,
        .wait_ewma_permille = wait,
        .allowed = process->cpuset,
        .lease = -1,
    };
    int index = world_add_task(f->world, &task);

    assert_true(index >= 0);
    return &f->world->tasks[index];
}

void fixture_threads(Fixture *f, pid_t pid, unsigned n)
{
    fixture_process(f, pid, "a", NULL);
    for (unsigned i = 0; i < n; i++)
        fixture_task(f, pid, pid + (pid_t)i, 0);
}

void fixture_cpu(Fixture *f, int cpu, uint16_t busy, uint16_t wait)
{
    CpuLoad *load = &f->world->cpus[cpu];
    bool present = f->world->topology->cpus[cpu].present;

    load->online = load->usable = present;
    load->wait_known = true;
    load->busy_permille = load->busy_before_permille = busy;
    load->wait_permille = load->wait_before_permille = wait;
    load->idle_since_usec = busy < 50 ? f->world->now_usec - 5000000 : 0;
}

void fixture_cpus(Fixture *f, int first, int last, uint16_t busy, uint16_t wait)
{
    for (int cpu = first; cpu <= last; cpu++)
        fixture_cpu(f, cpu, busy, wait);
}

static void assert_world(const World *world)
{
    CLEANUP_FREE char *what = NULL;

    if (world_check(world, &what) < 0)
        fail_msg("world: %s", what);
}

void fixture_plan(Fixture *f, bool slow)
{
    CLEANUP_FREE char *what = NULL;

    world_sum(f->world);
    assert_world(f->world);
    f->limits.slow_tick = slow;
    assert_int_equal(plan_compute(f->world, f->policies, &f->limits, &f->plan), 0);
    if (plan_check(f->world, f->policies, &f->limits, &f->plan, &what) < 0) {
        CLEANUP_FREE char *text = plan_format(f->world, &f->plan);

        fail_msg("plan: %s\n%s", what, text);
    }
}

void fixture_commit(Fixture *f, const PlanOutcome *outcomes)
{
    assert_int_equal(plan_commit(f->world, f->policies, &f->limits, &f->plan, outcomes), 0);
    assert_world(f->world);
}

void fixture_place(Fixture *f)
{
    fixture_plan(f, true);
    fixture_commit(f, NULL);
}

void fixture_assert_settled(Fixture *f, bool slow)
{
    fixture_plan(f, slow);
    if (f->plan.n_actions > 0) {
        CLEANUP_FREE char *text = plan_format(f->world, &f->plan);

        fail_msg("I9: not settled\n%s", text);
    }
}

void fixture_wait(Fixture *f, uint64_t usec)
{
    f->world->now_usec += usec;
    f->world->tick++;
}

void fixture_tick(Fixture *f)
{
    fixture_wait(f, FIXTURE_TICK_USEC);
}

void fixture_home(Fixture *f)
{
    fixture_plan(f, true);
    fixture_commit(f, NULL);
    /* The loads that follow are measured under the new masks. */
    for (size_t i = 0; i < f->world->n_tasks; i++)
        f->world->tasks[i].wait_before_permille = f->world->tasks[i].wait_permille;
    fixture_tick(f);
}

size_t fixture_count(const Fixture *f, PlanKind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < f->plan.n_actions; i++)
        n += f->plan.actions[i].kind == kind;
    return n;
}

const PlanAction *fixture_action(const Fixture *f, PlanKind kind, size_t nth)
{
    for (size_t i = 0; i < f->plan.n_actions; i++)
        if (f->plan.actions[i].kind == kind && nth-- == 0)
            return &f->plan.actions[i];
    fail_msg("no such action");
    return NULL;
}

Task *fixture_find(Fixture *f, pid_t pid, pid_t tid)
{
    Task *task = world_task_by_tid(f->world, pid, tid);

    assert_non_null(task);
    return task;
}

static CpuIx model_cpu(const Fixture *f, const Task *task, const uint32_t *wanted)
{
    CpuIx best = CPU_NONE;

    for (int cpu = hwloc_bitmap_first(task->allowed); cpu >= 0; cpu = hwloc_bitmap_next(task->allowed, cpu))
        if (f->world->cpus[cpu].online && (best.i < 0 || wanted[cpu] < wanted[best.i]))
            best.i = cpu;
    return best;
}

void fixture_model(Fixture *f, const uint16_t *demand)
{
    World *w = f->world;
    CLEANUP_FREE uint32_t *wanted = calloc(w->topology->cpu_limit, sizeof(*wanted));
    const uint64_t tick_nsec = FIXTURE_TICK_USEC * NSEC_PER_USEC;

    assert_non_null(wanted);
    fixture_tick(f);
    for (int lent = 0; lent < 2; lent++)
        for (size_t i = 0; i < w->n_tasks; i++) {
            size_t k = (i + w->tick) % w->n_tasks;
            Task *task = &w->tasks[k];

            if ((task->lease >= 0) != (lent == 1))
                continue;
            task->last_cpu = model_cpu(f, task, wanted);
            if (task->last_cpu.i >= 0)
                wanted[task->last_cpu.i] += demand[k];
        }

    for (size_t i = 0; i < w->n_tasks; i++) {
        int32_t cpu = w->tasks[i].last_cpu.i;
        uint64_t run = cpu >= 0 ? tick_nsec * demand[i] / MAX(wanted[cpu], 1000U) : 0;

        load_task(&w->tasks[i], run, tick_nsec * demand[i] / 1000 - run, tick_nsec);
    }
    for (uint32_t cpu = 0; cpu < w->topology->cpu_limit; cpu++)
        load_cpu(&w->cpus[cpu], w->now_usec, tick_nsec * MIN(wanted[cpu], 1000U) / 1000,
                 tick_nsec * (MAX(wanted[cpu], 1000U) - 1000) / 1000, true, tick_nsec, w->idle_permille);
}

uint32_t fixture_run(Fixture *f, pid_t pid)
{
    uint32_t run = 0;

    for (size_t i = 0; i < f->world->n_tasks; i++)
        if (f->world->processes[f->world->tasks[i].process.i].pid == pid)
            run += f->world->tasks[i].run_permille;
    return run;
}

uint32_t fixture_random(uint64_t *state, uint32_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 2685821657736338717ULL) >> 33) % below;
}
