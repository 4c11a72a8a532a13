/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Homes chosen beside fixed homes: the demand of the others is the same before they go there and after. */

#include "choose-test.h"

/* A group that Mode=fixed sends elsewhere takes its room in the same plan: half on each node, not all on one. */
static void test_fixed_neighbour(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    fixture_policy(&f, "b", EACH "ExpectWidth=6\n[Placement]\nMode=fixed\nNodes=0-1\n");
    add_job(&f, 100, 5, 0, 1);
    set_memory(&f, 100, (uint64_t[]){64, 0});
    add_job(&f, 300, 5, 8, 1);
    set_memory(&f, 300, (uint64_t[]){0, 64});
    fixture_process(&f, 200, "b", NULL);
    fixture_task(&f, 200, 200, 0); /* as a single thread it would count on one node only */
    set_memory(&f, 200, (uint64_t[]){512, 0});
    seconds(&f, 11);
    fixture_place(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 300, "1");
    fixture_assert_settled(&f, true);
}

/* A group that began a moment ago and is sent to another home wants no more afterwards than before, so no
 * other group has to make room in a plan of the same instant (I9). */
static void test_moved_young(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    Group *g;

    fixture_init_with(&f, TWO_SHARDS, AUTO);
    fixture_policy(&f, "b", EACH "[Placement]\nMode=fixed\nNodes=1\n");
    add_job(&f, 100, 6, 0, 1);
    set_memory(&f, 100, (uint64_t[]){64, 0});
    fixture_process(&f, 200, "b", NULL);
    for (pid_t tid = 200; tid < 208; tid++)
        fixture_task(&f, 200, tid, 0)->run_ewma_permille = 250;
    fixture_place(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, "1");

    g = &f.world->groups[world_process(f.world, 200)->group.i];
    seconds(&f, 11);
    g->first_seen_usec = f.world->now_usec - 1000000;
    hwloc_bitmap_only(f.policies->policies[1]->nodes, 0);
    fixture_place(&f);
    assert_nodes(&f, 100, "0");
    assert_nodes(&f, 200, "0");
    fixture_assert_settled(&f, true);
}

TEST_MAIN(NULL, NULL, test_fixed_neighbour, test_moved_young)
