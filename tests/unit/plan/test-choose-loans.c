/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When a group that needs more than a node gets another node, and when it gets only lends of single CPUs. */

#include "choose-test.h"

#define WIDE    EACH "MinAgeSec=0\n[Placement]\nMode=auto\n[Steal]\n"
#define BORROWS WIDE "Scope=machine\n"

/* A group that keeps borrowing gets a second node, if that is free: what it runs on lent CPUs counts as
 * wanted. If its policy allows no second node, it goes on borrowing. */
static void test_loans(void **state)
{
    for (int may_spread = 0; may_spread < 2; may_spread++) {
        uint16_t demand[10];
        size_t most = 0;
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, FOUR,
                          "[Placement]\nMode=auto\n[Steal]\nScope=machine\nNodeLimit=4\nLeaseSec=1min\n");
        f.policies->policies[0]->max_nodes = may_spread ? 0 : 1;
        add_job(&f, 100, 10, 0, 1);
        set_memory(&f, 100, (uint64_t[]){1000, 0, 0, 0});
        set_demand(&f, 100, 700, 0);
        fixture_home(&f);
        assert_nodes(&f, 100, "0");
        for (unsigned tick = 1; tick <= 200; tick++) {
            for (size_t i = 0; i < ARRAY_SIZE(demand); i++)
                demand[i] = tick < 20 ? 700 : 1000;
            fixture_model(&f, demand);
            fixture_plan(&f, tick % 10 == 0);
            fixture_commit(&f, NULL);
            most = MAX(most, f.world->n_leases);
        }
        assert_int_equal(most, 2);
        assert_int_equal(f.world->n_leases, may_spread ? 0 : 2);
        assert_int_equal(hwloc_bitmap_weight(group_of(&f, 100)->home_nodes), may_spread ? 2 : 1);
    }
}

/* Beside a group that leaves CPUs idle it borrows those. */
static void test_beside_others(void **state)
{
    static const struct {
        const char *policy;
        unsigned threads[2];
        uint64_t mib[2];  /* of the larger group; the smaller one has its memory on the second node */
        const char *home; /* NULL: both nodes, so it roams */
    } cases[] = {
        {BORROWS, {3, 1}, {100, 0}, "0"},
        {BORROWS, {3, 1}, {0, 100}, "1"},  /* the smaller group makes room for it */
        {BORROWS, {3, 0}, {100, 0}, NULL}, /* no other group is there */
        {BORROWS, {4, 1}, {100, 0}, NULL}, /* the other leaves fewer CPUs than it wants */
        {BORROWS "Steal=no\n", {3, 1}, {100, 0}, NULL},
        {BORROWS "NodeLimit=1\n", {3, 1}, {100, 0}, NULL},
        {BORROWS "MaxDistance=10\n", {3, 1}, {100, 0}, NULL},
        {WIDE "Scope=node\n", {3, 1}, {100, 0}, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(fixture_done) Fixture f;

        fixture_init_with(&f, SMALL, cases[i].policy);
        add_job(&f, 100, cases[i].threads[0], 0, 1);
        set_memory(&f, 100, cases[i].mib);
        if (cases[i].threads[1] > 0) {
            add_job(&f, 200, cases[i].threads[1], 2, 1);
            set_memory(&f, 200, (uint64_t[]){0, 100});
            set_demand(&f, 200, 1000, 0);
        }
        set_demand(&f, 100, 1000, 0);
        fixture_place(&f);
        assert_nodes(&f, 100, cases[i].home);
        assert_true(group_of(&f, 100)->roams == !cases[i].home);
        fixture_assert_settled(&f, true);
        if (cases[i].home) { /* and so it stays */
            seconds(&f, 60);
            fixture_place(&f);
            assert_nodes(&f, 100, cases[i].home);
        }
    }
}

TEST_MAIN(NULL, NULL, test_loans, test_beside_others)
