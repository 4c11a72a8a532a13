/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P11: the fault averages of tasks and groups. */

#include "base/util.h"
#include "world/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NODES 5U
#define TASKS 7U

static uint64_t random_below(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 33) % below;
}

static void test_decay(void **state)
{
    const uint64_t expected[] = {1000, 1500, 1750, 1875, 1938, 1969, 1985, 1993};
    Faults f;

    assert_int_equal(faults_init(&f, 2), 0);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        faults_accessed(&f, (NodeIx){1}, FAULTS_KIND_SHARED, 400);
        faults_accessed(&f, (NodeIx){1}, FAULTS_KIND_SHARED, 600);
        faults_fold(&f, 1000000, NULL);
        assert_int_equal(f.nodes[1].memory[FAULTS_KIND_SHARED], expected[i]);
        assert_int_equal(f.n_sequences, i + 1);
    }
    assert_int_equal(faults_memory(&f, (NodeIx){0}), 0);
    assert_int_equal(faults_memory(&f, (NodeIx){1}), 1993);
    assert_int_equal(faults_kind(&f, FAULTS_KIND_PRIVATE), 0);
    assert_int_equal(faults_kind(&f, FAULTS_KIND_SHARED), 1993);

    /* Nothing more: down to the 1 that stays. */
    faults_fold(&f, 1000000, NULL);
    assert_int_equal(faults_total(&f), 997);
    f.n_sequences = UINT32_MAX - 1;
    for (unsigned i = 0; i < 20; i++)
        faults_fold(&f, 1000000, NULL);
    assert_int_equal(faults_total(&f), 1);
    assert_int_equal(f.n_sequences, UINT32_MAX);
    faults_done(&f);
    assert_null(f.nodes);
}

/* Whatever came before, a steady rate shows as twice that rate; from above it may stay one over it. */
static void test_converges(void **state)
{
    uint64_t seed = 3;

    for (unsigned round = 0; round < 500; round++) {
        uint64_t rate = random_below(&seed, 1000000), start = random_below(&seed, 4000000);
        Faults f;

        assert_int_equal(faults_init(&f, 1), 0);
        faults_accessed(&f, (NodeIx){0}, FAULTS_KIND_PRIVATE, start);
        for (unsigned i = 0; i < 40; i++) {
            faults_fold(&f, 1000000, NULL);
            faults_accessed(&f, (NodeIx){0}, FAULTS_KIND_PRIVATE, rate);
        }
        assert_in_range(faults_total(&f), 2 * rate - (rate > 0), 2 * rate + 1);
        faults_done(&f);
    }
}

static void test_cpu(void **state)
{
    Faults f;

    /* The example of faults.c: 600 ms of a second, 450 of them on node 0. */
    assert_int_equal(faults_init(&f, 2), 0);
    faults_ran(&f, (NodeIx){0}, 450000);
    faults_ran(&f, (NodeIx){1}, 150000);
    faults_fold(&f, 1000000, NULL);
    assert_int_equal(f.nodes[0].cpu, 29490);
    assert_int_equal(f.nodes[1].cpu, 9830);

    /* Asleep: half is forgotten, nothing is added. */
    faults_fold(&f, 1000000, NULL);
    assert_int_equal(f.nodes[0].cpu, 14745);
    assert_int_equal(f.nodes[1].cpu, 4915);

    /* The ones that are added to the divisors show in small numbers. */
    faults_ran(&f, (NodeIx){1}, 100);
    faults_fold(&f, 100, NULL);
    assert_int_equal(f.nodes[0].cpu, 7373);
    assert_int_equal(f.nodes[1].cpu, 2458 + (100 * FAULTS_CPU_ONE / 101) * 100 / 101);
    assert_int_equal(f.nodes[1].run_usec, 0);

    /* A clock that ran more than the period says no more than all of it; a period of nothing says nothing. */
    faults_done(&f);
    assert_int_equal(faults_init(&f, 1), 0);
    faults_ran(&f, (NodeIx){0}, 3000000);
    faults_fold(&f, 1000000, NULL);
    assert_in_range(f.nodes[0].cpu, FAULTS_CPU_ONE - 2, FAULTS_CPU_ONE);
    faults_done(&f);
    assert_int_equal(faults_init(&f, 1), 0);
    faults_ran(&f, (NodeIx){0}, 3000000);
    faults_fold(&f, 0, NULL);
    assert_int_equal(f.nodes[0].cpu, 0);
    faults_done(&f);
}

static void assert_is_sum(const Faults *group, const Faults tasks[TASKS], const bool member[TASKS])
{
    for (uint32_t i = 0; i < NODES; i++) {
        FaultsNode sum = {0};

        for (unsigned t = 0; t < TASKS; t++) {
            if (!member[t])
                continue;
            sum.memory[FAULTS_KIND_PRIVATE] += tasks[t].nodes[i].memory[FAULTS_KIND_PRIVATE];
            sum.memory[FAULTS_KIND_SHARED] += tasks[t].nodes[i].memory[FAULTS_KIND_SHARED];
            sum.cpu += tasks[t].nodes[i].cpu;
        }
        assert_int_equal(group->nodes[i].memory[FAULTS_KIND_PRIVATE], sum.memory[FAULTS_KIND_PRIVATE]);
        assert_int_equal(group->nodes[i].memory[FAULTS_KIND_SHARED], sum.memory[FAULTS_KIND_SHARED]);
        assert_int_equal(group->nodes[i].cpu, sum.cpu);
    }
}

static void step(Faults *group, Faults *task, bool *member, uint64_t *seed)
{
    NodeIx node = {(int32_t)random_below(seed, NODES)};

    switch (random_below(seed, 6)) {
    case 0:
    case 1:
        faults_accessed(task, node, (FaultsKind)random_below(seed, FAULTS_KIND_MAX),
                        random_below(seed, 100000));
        break;
    case 2:
        faults_ran(task, node, random_below(seed, 1000000));
        break;
    case 3:
    case 4:
        faults_fold(task, 1000000, *member ? group : NULL);
        break;
    case 5:
        if (*member)
            faults_leave(group, task);
        else
            faults_join(group, task);
        *member = !*member;
        break;
    }
}

/* A group is the sum of its members after any history. */
static void test_group(void **state)
{
    uint64_t seed = 11;

    for (unsigned round = 0; round < 20; round++) {
        bool member[TASKS] = {false};
        Faults group, tasks[TASKS];

        assert_int_equal(faults_init(&group, NODES), 0);
        for (unsigned t = 0; t < TASKS; t++)
            assert_int_equal(faults_init(&tasks[t], NODES), 0);
        for (unsigned i = 0; i < 300; i++) {
            uint64_t t = random_below(&seed, TASKS);

            step(&group, &tasks[t], &member[t], &seed);
            assert_is_sum(&group, tasks, member);
        }
        for (unsigned t = 0; t < TASKS; t++) {
            if (member[t])
                faults_leave(&group, &tasks[t]);
            faults_done(&tasks[t]);
        }
        assert_int_equal(faults_total(&group), 0);
        faults_done(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decay),
        cmocka_unit_test(test_converges),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
