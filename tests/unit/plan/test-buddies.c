/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sets of threads that share memory (P14). */

#include "fixture.h"
#include "plan/buddies.h"

/* Two nodes of four CPUs, two to a core. */
#define SMT "numa:2 l3:1 core:2 pu:2 distances=10,20,20,10"

static void use(Fixture *f, pid_t tid, uint32_t private_permille, pid_t buddy)
{
    TaskKey key = buddy > 0 ? world_task_key(f->world, fixture_find(f, 10, buddy)) : (TaskKey){0};

    fixture_use(f, 10, tid, (uint64_t[]){1000, 0}, private_permille, key);
}

/* Sets up one process with six busy threads, tids 10 to 15. */
static void init(Fixture *f)
{
    fixture_init_with(f, SMT, "");
    fixture_threads(f, 10, 6);
    fixture_cpus(f, 0, 7, 1000, 0);
}

static void assert_sets(Fixture *f, BuddyMay *may, const size_t *firsts, const uint64_t *demands)
{
    BuddySet sets[6];

    buddies_sets(f->world, world_process(f->world, 10), may, NULL, sets);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(sets[i].first, firsts[i]);
        assert_int_equal(sets[i].demand, demands[i]);
    }
}

static bool may_not(void *userdata, const Task *task)
{
    return task->tid != 14;
}

/* Buddies: 11 -> 10, 13 -> 12, 14 -> 12, 15 -> 14. */
static void test_sets(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    init(&f);
    use(&f, 11, 0, 10);
    use(&f, 13, 749, 12);
    use(&f, 14, 0, 12);
    use(&f, 15, 0, 14);
    assert_sets(&f, NULL, (size_t[]){0, 0, 2, 2, 2, 2}, (uint64_t[]){2000, 2000, 4000, 4000, 4000, 4000});
    /* A thread that may not be in a set separates those tied through it. */
    assert_sets(&f, may_not, (size_t[]){0, 0, 2, 2, 4, 5}, (uint64_t[]){2000, 2000, 2000, 2000, 1000, 1000});
    /* One that is gone ties the others together, and wants nothing. */
    fixture_find(&f, 10, 14)->gone = true;
    assert_sets(&f, may_not, (size_t[]){0, 0, 2, 2, 2, 2}, (uint64_t[]){2000, 2000, 3000, 3000, 3000, 3000});
    /* A thread with mostly private memory needs no buddy. */
    use(&f, 13, 750, 12);
    assert_sets(&f, NULL, (size_t[]){0, 0, 2, 3, 2, 2}, (uint64_t[]){2000, 2000, 2000, 1000, 2000, 2000});
}

/* Counts cores until a third more is wanted than there are, then CPUs; only usable ones. */
static void test_largest(void **state)
{
    CLEANUP(fixture_done) Fixture f;
    CpuMask both, one;

    init(&f);
    both = fixture_mask(&f, "0-1");
    one = fixture_mask(&f, "1");
    assert_int_equal(buddies_largest(f.world, both, 5333), 2000);
    assert_int_equal(buddies_largest(f.world, both, 5334), 4000);
    assert_int_equal(buddies_largest(f.world, one, 2666), 2000);
    assert_int_equal(buddies_largest(f.world, one, 2667), 4000);
    f.world->cpus[4].usable = f.world->cpus[5].usable = false;
    assert_int_equal(buddies_largest(f.world, one, 1333), 1000);
    assert_int_equal(buddies_largest(f.world, one, 1334), 2000);
    assert_int_equal(buddies_largest(f.world, NULL, 1), 0);
    f.world->ablated = 1ULL << ABLATION_SIBLINGS;
    assert_int_equal(buddies_largest(f.world, both, 1000), 4000);
    assert_true(buddies_fit(2125, 2000));
    assert_false(buddies_fit(2126, 2000));
}

/* Siblings with distant numbers, as on most machines: CPU 0 is not usable, but its core is. */
static void test_siblings_apart(void **state)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, "numa:2 l3:1 core:2 pu:2(indexes=0,4,1,5,2,6,3,7) distances=10,20,20,10");
    fixture_cpus(&f, 0, 7, 0, 0);
    f.world->cpus[0].usable = false;
    assert_int_equal(f.world->topology->cpus[0].core.i, f.world->topology->cpus[4].core.i);
    assert_int_equal(buddies_largest(f.world, fixture_mask(&f, "0"), 2666), 2000);
    assert_int_equal(buddies_largest(f.world, fixture_mask(&f, "0"), 2667), 3000);
}

TEST_MAIN(NULL, NULL, test_sets, test_largest, test_siblings_apart)
