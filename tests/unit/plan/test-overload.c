/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P1: which CPUs are idle and which are overloaded. */

#include "fixture.h"
#include "world/load.h"

#define MSEC_NSEC 1000000ULL

/* One tick of `n` spinning threads that stay on their CPUs, 20 in all. Each CPU runs all the time, and each
 * further thread on it waits. */
static void spin(Fixture *f, unsigned n)
{
    fixture_tick(f);
    for (unsigned cpu = 0; cpu < 20; cpu++) {
        unsigned here = n / 20 + (cpu < n % 20);

        load_cpu(&f->world->cpus[cpu], f->world->now_usec, here > 0 ? 100 * MSEC_NSEC : 0,
                 here > 0 ? 100 * MSEC_NSEC * (here - 1) : 0, true, 100 * MSEC_NSEC, f->world->idle_permille);
    }
    fixture_plan(f, false);
}

static void test_s_ovl(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, "numa:1 l3:1 core:20 pu:1");
    spin(&f, 25);
    assert_int_equal(f.plan.n_overloaded, 0); /* one tick is not enough */
    spin(&f, 25);
    assert_int_equal(f.plan.n_overloaded, 5);
    assert_int_equal(f.plan.n_idle, 0);
    spin(&f, 20);
    assert_int_equal(f.plan.n_overloaded, 0);
    spin(&f, 20);
    assert_int_equal(f.plan.n_overloaded, 0);
    spin(&f, 25);
    spin(&f, 25);
    spin(&f, 25);
    assert_int_equal(f.plan.n_overloaded, 5);
}

static void test_idle_needs_two_ticks(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, "numa:1 l3:1 core:20 pu:1");
    spin(&f, 20);
    assert_int_equal(f.plan.n_idle, 0);
    spin(&f, 17);
    assert_int_equal(f.plan.n_idle, 0);
    spin(&f, 17);
    assert_int_equal(f.plan.n_idle, 3);
    spin(&f, 18);
    assert_int_equal(f.plan.n_idle, 2);
}

static void test_bounds(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, "numa:1 l3:1 core:4 pu:1");
    fixture_cpu(&f, 0, 49, 0);
    fixture_cpu(&f, 1, 50, 0);
    fixture_cpu(&f, 2, 1000, 250);
    fixture_cpu(&f, 3, 1000, 249);
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_idle, 1);
    assert_int_equal(f.plan.n_overloaded, 1);

    /* Not measured: not overloaded. Not usable: not idle. */
    f.world->cpus[2].wait_known = false;
    f.world->cpus[0].usable = false;
    fixture_plan(&f, false);
    assert_int_equal(f.plan.n_idle, 0);
    assert_int_equal(f.plan.n_overloaded, 0);
}

TEST_MAIN(NULL, NULL, test_s_ovl, test_idle_needs_two_ticks, test_bounds)
