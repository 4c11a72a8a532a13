/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Random histories from fixed seeds: whatever is added, removed and compacted in any order, the invariants
 * hold, the sums equal a naive count, and the text form is complete. */

#include "sample.h"

#define SEEDS 40
#define STEPS 300

static int pick(uint64_t *seed, int n)
{
    return (int)lcg_below(seed, (uint64_t)n);
}

static void step_add(World *world, uint64_t *seed)
{
    char key[32];
    int group, r;
    pid_t pid = 1 + pick(seed, 60) * 100;

    switch (pick(seed, 4)) {
    case 0:
        (void)snprintf(key, sizeof(key), "%d", pick(seed, 1000));
        if (world->n_groups < 12)
            assert_true(world_add_group(world, (WorkloadIx){pick(seed, 3)}, key) >= 0);
        break;
    case 1:
        group = pick(seed, (int)world->n_groups + 1) - 1;
        r = sample_process(world, pid, group < 0 ? pick(seed, 4) - 1 : world->groups[group].workload.i,
                           group);
        assert_true(r >= 0 || r == -EEXIST);
        break;
    default:
        if (!world_process(world, pid))
            break;
        r = sample_task(world, pid, pid + pick(seed, 20), (uint16_t)pick(seed, 1001),
                        (uint16_t)pick(seed, 1001));
        assert_true(r >= 0 || r == -EEXIST);
        break;
    }
}

static void step_lease(World *world, uint64_t *seed)
{
    const Task *task;
    TaskKey key;
    int r;

    if (world->n_leases > 0 && pick(seed, 3) == 0) {
        world_remove_lease(world, (size_t)pick(seed, (int)world->n_leases));
        return;
    }
    if (world->n_tasks == 0 || world->next_group_id == 1)
        return;
    task = &world->tasks[pick(seed, (int)world->n_tasks)];
    key = world_task_key(world, task);
    r = sample_lease(world, key.pid, key.tid, pick(seed, 8), 1 + lcg_below(seed, world->next_group_id - 1));
    assert_true(r >= 0 || r == -EEXIST);
}

static void step_memory(World *world, uint64_t *seed)
{
    const uint64_t bytes[] = {lcg_below(seed, UINT64_MAX), lcg_below(seed, UINT64_MAX)};

    world->nodes[pick(seed, 2)] = (NodeLoad){.free_bytes = bytes[0], .free_known = true};
    if (world->n_processes > 0)
        assert_int_equal(world_set_process_memory(world,
                                                  &world->processes[pick(seed, (int)world->n_processes)],
                                                  pick(seed, 4) ? bytes : NULL, world->now_usec),
                         0);
}

static void step_gone(World *world, uint64_t *seed)
{
    if (world->n_tasks > 0)
        world->tasks[pick(seed, (int)world->n_tasks)].gone = true;
    if (world->n_processes > 0 && pick(seed, 4) == 0)
        world->processes[pick(seed, (int)world->n_processes)].gone = true;
    if (world->n_groups > 0 && pick(seed, 8) == 0)
        world->groups[pick(seed, (int)world->n_groups)].gone = true;
}

static void compare_sums(const World *world)
{
    for (size_t g = 0; g < world->n_groups; g++) {
        uint32_t n = 0, run = 0, wait = 0, leases = 0;

        for (size_t i = 0; i < world->n_tasks; i++) {
            const Task *t = &world->tasks[i];
            const Process *p = &world->processes[t->process.i];

            if (p->group.i != (int32_t)g || p->gone || t->gone)
                continue;
            n++;
            run += t->run_permille;
            wait += t->wait_permille;
        }
        for (size_t i = 0; i < world->n_leases; i++)
            leases += world->leases[i].group_id == world->groups[g].id;
        assert_int_equal(world->groups[g].n_tasks, n);
        assert_int_equal(world->groups[g].run_permille, run);
        assert_int_equal(world->groups[g].wait_permille, wait);
        assert_int_equal(world->groups[g].n_leases, leases);
    }
    for (size_t w = 0; w < world->n_workloads; w++) {
        uint32_t n = 0, run = 0, processes = 0;

        for (size_t i = 0; i < world->n_processes; i++)
            processes += world->processes[i].workload.i == (int32_t)w && !world->processes[i].gone;
        for (size_t i = 0; i < world->n_tasks; i++) {
            const Task *t = &world->tasks[i];
            const Process *p = &world->processes[t->process.i];

            if (p->workload.i != (int32_t)w || p->gone || t->gone)
                continue;
            n++;
            run += t->run_permille;
        }
        assert_int_equal(world->workloads[w].n_processes, processes);
        assert_int_equal(world->workloads[w].n_tasks, n);
        assert_int_equal(world->workloads[w].run_permille, run);
    }
}

static void compare_text(const World *world)
{
    CLEANUP_FREE char *text = world_dump(world), *again = NULL, *error = NULL;
    CLEANUP(world_free_p) World *copy = NULL;

    assert_non_null(text);
    if (world_load(text, strlen(text), &copy, &error) < 0)
        fail_msg("%s", error);
    again = world_dump(copy);
    assert_non_null(again);
    assert_string_equal(again, text);
}

static void history(uint64_t seed)
{
    CLEANUP(world_free_p) World *world = sample_empty();

    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"a", "b", "c"};

        assert_int_equal(world_add_workload(world, names[i], (uint32_t)i), i);
    }
    for (int step = 0; step < STEPS; step++) {
        int what = pick(&seed, 22);

        if (what < 14)
            step_add(world, &seed);
        else if (what < 17)
            step_lease(world, &seed);
        else if (what < 19)
            step_gone(world, &seed);
        else if (what < 21)
            step_memory(world, &seed);
        else
            assert_int_equal(world_compact(world), 0);
        sample_check(world);
        if (step % 10 == 0) {
            world_sum(world);
            compare_sums(world);
            compare_text(world);
            sample_check(world);
        }
    }

    assert_int_equal(world_compact(world), 0);
    compare_sums(world); /* compacting recomputed them */
    for (size_t i = 0; i < world->n_tasks; i++)
        assert_false(world->tasks[i].gone || world->processes[world->tasks[i].process.i].gone);

    /* When everything is gone, only the names of the workloads are left. */
    for (size_t i = 0; i < world->n_processes; i++)
        world->processes[i].gone = true;
    assert_int_equal(world_compact(world), 0);
    sample_check(world);
    assert_int_equal(world->n_tasks + world->n_processes + world->n_groups + world->n_leases, 0);
    assert_int_equal(intern_pool_size(world->pool), 3);
}

static void test_histories(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        history(seed);
}

TEST_MAIN(NULL, NULL, test_histories)
