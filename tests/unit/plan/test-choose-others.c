/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes chosen beside load that is not placed. */

#include "choose-test.h"

#include "plan/ablation.h"
#include "plan/planner.h"
#include "world/load.h"

/* A CPU that an unplaced task uses all the time is not available; load of less than half a CPU does not count. */
static void test_others(void **state)
{
    for (unsigned others = 300; others <= 1000; others += 700) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR, "[Placement]\nMode=auto\n[Workload]\nMinAgeSec=0\n");
        add_job(&f, 100, 8, 8, 1);
        for (uint32_t i = 0; i < 4; i++)
            f.world->nodes[i].others_permille = others;
        fixture_home(&f);
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), others < 500 ? 1 : 2);
    }
}

/* A group that cannot get a home is part of the unplaced load. */
static void test_never_placed(void **state)
{
    static const char *const policies[] = {AUTO "Nodes=0\n", AUTO "[Workload]\nAct=observe\n"};

    for (size_t k = 0; k < ARRAY_SIZE(policies); k++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, policies[k]);
        fixture_policy(&f, "b", AUTO);
        fixture_process(&f, 100, "a", k == 0 ? "2-3" : NULL);
        for (int i = 0; i < 2; i++)
            fixture_task(&f, 100, 100 + i, 0)->last_cpu.i = 2 + i;
        fixture_process(&f, 200, "b", NULL);
        fixture_task(&f, 200, 200, 0)->last_cpu.i = 2;
        set_memory(&f, 200, (uint64_t[]){0, 100});
        /* Three threads on two CPUs. */
        fixture_cpus(&f, 0, 1, 0, 0);
        fixture_cpus(&f, 2, 3, 1000, 500);
        for (size_t i = 0; i < f.world->n_tasks; i++) {
            Task *task = &f.world->tasks[i];

            task->run_permille = task->run_ewma_permille = 667;
            task->wait_permille = task->wait_ewma_permille = 333;
        }
        fixture_place(&f);
        assert_nodes(&f, 200, "0");
    }
}

TEST_MAIN(NULL, NULL, test_others, test_never_placed)
