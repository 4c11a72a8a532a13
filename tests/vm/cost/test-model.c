/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cost-test.h"
#include "model.h"

#define NODE1_LINE ((64ULL << 20) / 64)
#define LOCAL      100U
#define REMOTE     200U
#define LLC        20U
#define LINE_NEAR  60U
#define LINE_FAR   220U

typedef struct Fixture {
    Config config;
    AddressMap map;
    Model *model;
} Fixture;

static Fixture fixture_of(const char *words)
{
    Fixture f = {.config = config_of(words)};

    address_map_init(&f.map, &f.config, true);
    assert_int_equal(model_new(&f.config, &f.map, &f.model), 0);
    return f;
}

static void fixture_done(Fixture *f)
{
    f->model = model_free(f->model);
}

static uint64_t load(Fixture *f, unsigned cpu, uint64_t line)
{
    int node;

    return model_access(f->model, cpu, line, false, true, &node);
}

static uint64_t store(Fixture *f, unsigned cpu, uint64_t line)
{
    int node;

    return model_access(f->model, cpu, line, true, true, &node);
}

/* The line's cached copies at `cpu` and in its LLC are pushed out: three times the LLC's size passes through. */
static void flush(Fixture *f, unsigned cpu, uint64_t first)
{
    for (uint64_t i = 0; i < 3 * 1024 * 1024 / 64; i++)
        (void)load(f, cpu, first + i);
}

static void test_memory(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);
    int node;

    assert_int_equal(load(&f, 0, 0), LOCAL);
    assert_int_equal(load(&f, 0, 0), 0);
    assert_int_equal(load(&f, 0, NODE1_LINE), REMOTE);
    assert_int_equal(load(&f, 0, NODE1_LINE - 1), LOCAL);
    assert_int_equal(load(&f, 2, NODE1_LINE), LOCAL);
    assert_int_equal(model_access(f.model, 0, NODE1_LINE + 1, false, false, &node), REMOTE);
    assert_int_equal(node, 1);
    assert_int_equal(model_access(f.model, 0, NODE1_LINE + 1, false, false, &node), 0);
    assert_int_equal(node, -1);
    assert_int_equal(model_access(f.model, 0, 1, false, false, &node), LOCAL);
    assert_int_equal(node, 0);

    assert_int_equal(model_counters(f.model, 0)->user_local, 2);
    assert_int_equal(model_counters(f.model, 0)->user_remote, 1);
    assert_int_equal(model_counters(f.model, 0)->kernel_local, 1);
    assert_int_equal(model_counters(f.model, 0)->kernel_remote, 1);
    assert_int_equal(model_counters(f.model, 0)->charged_nsec, 3 * LOCAL + 2 * REMOTE);
    assert_int_equal(model_counters(f.model, 2)->user_local, 1);
    assert_int_equal(model_counters(f.model, 1)->charged_nsec, 0);
    fixture_done(&f);
}

static void test_shared_llc(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(load(&f, 0, 5), LOCAL);
    assert_int_equal(load(&f, 1, 5), LLC);
    assert_int_equal(load(&f, 1, 5), 0);
    assert_int_equal(load(&f, 2, 5), REMOTE);
    assert_int_equal(load(&f, 3, 5), LLC);
    assert_int_equal(model_counters(f.model, 1)->llc, 1);
    fixture_done(&f);

    f = fixture_of(COST_TEST_2X2 " llc=0");
    assert_int_equal(load(&f, 0, 5), LOCAL);
    assert_int_equal(load(&f, 1, 5), LOCAL);
    fixture_done(&f);
}

static void test_sizes(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);
    uint64_t sum = 0;

    /* Half the private cache fits but for a few sets that more than two of its 32 pages fall into. */
    for (uint64_t i = 0; i < 128 * 1024 / 64; i++)
        (void)load(&f, 0, i);
    for (uint64_t i = 0; i < 128 * 1024 / 64; i++)
        sum += load(&f, 0, i) > 0;
    assert_true(sum < 128 * 1024 / 64 / 4);

    /* Eight times the LLC leaves nothing of the last round. */
    for (uint64_t i = 0; i < 8 * 1024 * 1024 / 64; i++)
        (void)load(&f, 2, i);
    sum = 0;
    for (uint64_t i = 0; i < 8 * 1024 * 1024 / 64; i++)
        sum += load(&f, 2, i) != REMOTE;
    assert_true(sum < 8 * 1024 * 1024 / 64 / 100);
    fixture_done(&f);
}

/* A page copy never evicts what it is about to use, wherever the two pages are. */
static void test_page_copy(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    for (uint64_t from = 0; from < 64; from++) {
        for (uint64_t i = 0; i < 64; i++) {
            uint64_t source = from * 64 + i, target = NODE1_LINE + i;

            (void)load(&f, 0, source);
            (void)store(&f, 0, target);
            assert_int_equal(load(&f, 0, source), 0);
            assert_int_equal(store(&f, 0, target), 0);
        }
    }
    fixture_done(&f);
}

/* The example of model.c. */
static void test_dirty_lines(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    assert_int_equal(store(&f, 0, 9), 0);
    assert_int_equal(load(&f, 0, 9), 0);
    assert_int_equal(load(&f, 2, 9), LINE_FAR);
    assert_int_equal(load(&f, 0, 9), 0);
    assert_int_equal(load(&f, 2, 9), 0);
    assert_int_equal(store(&f, 0, 9), 0);
    assert_int_equal(load(&f, 2, 9), LINE_FAR);
    assert_int_equal(model_counters(f.model, 2)->line_remote, 2);

    assert_int_equal(store(&f, 0, 10), LOCAL);
    assert_int_equal(load(&f, 1, 10), LINE_NEAR);
    assert_int_equal(model_counters(f.model, 1)->line_local, 1);
    fixture_done(&f);
}

static void test_ping_pong(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(store(&f, 2, 9), LINE_FAR);
        assert_int_equal(store(&f, 0, 9), LINE_FAR);
    }
    /* Held clean by two, last written by CPU 0: to write it CPU 2 has to fetch the right to. */
    assert_int_equal(load(&f, 2, 9), LINE_FAR);
    assert_int_equal(store(&f, 2, 9), LINE_FAR);
    assert_int_equal(load(&f, 0, 9), LINE_FAR);
    assert_int_equal(model_counters(f.model, 0)->line_remote, 101);
    assert_int_equal(model_counters(f.model, 2)->line_remote, 102);
    fixture_done(&f);
}

/* What was dirty in a cache and has left it comes from memory again. */
static void test_write_back(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    flush(&f, 0, 1000 * 64);
    assert_int_equal(load(&f, 2, 9), REMOTE);
    assert_int_equal(load(&f, 0, 9), LOCAL);
    fixture_done(&f);
}

static void test_versions_wrap(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    for (unsigned i = 0; i < 70000; i++) {
        assert_int_equal(store(&f, 1, 9), LINE_NEAR);
        assert_int_equal(store(&f, 0, 9), LINE_NEAR);
    }
    assert_int_equal(load(&f, 0, 10), LOCAL);
    assert_int_equal(load(&f, 0, 8), LOCAL);
    fixture_done(&f);
}

static void test_distances(void **state)
{
    Fixture f =
        fixture_of("nodes=64:0:64:0 cpus=1:3 dist=10:12:20:30/12:10:16:20/20:16:10:12/30:20:12:10 local=100 "
                   "remote=200 scale=2 llc=0");

    /* Nodes 1 and 3 have CPUs only, 0 and 2 memory only. */
    assert_int_equal(load(&f, 0, 0), 240);
    assert_int_equal(load(&f, 0, NODE1_LINE), 320);
    assert_int_equal(load(&f, 1, 1), 600);
    assert_int_equal(load(&f, 1, NODE1_LINE + 1), 240);
    assert_int_equal(model_counters(f.model, 0)->user_remote, 2);
    fixture_done(&f);
}

static void test_queue(void **state)
{
    /* 64 bytes at 1 GB/s take 64 ns; two quanta of 1 us are let pass. */
    Fixture f = fixture_of(COST_TEST_2X2 " bw=1 quantum=1");
    uint64_t now = 1000000, waited = 0;

    /* One CPU that takes a line every 100 ns never waits. */
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(model_queue(f.model, 0, 0, now + i * 100), 0);

    /* Four that ask for one each every 100 ns get a line every 64 ns: 1000 rounds take 256 us. */
    now = 2000000;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t wait = model_queue(f.model, i % 4, 1, now + waited / 4);

        waited += 100 + wait;
    }
    assert_in_range(waited / 4, 256000 - 3000, 256000 + 3000);
    assert_true(model_counters(f.model, 3)->queue_nsec > 0);
    /* Other nodes have queues of their own. */
    assert_int_equal(model_queue(f.model, 0, 0, now), 0);
    fixture_done(&f);

    f = fixture_of(COST_TEST_2X2);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(model_queue(f.model, 0, 0, 5), 0);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_shared_llc),
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_page_copy),
        cmocka_unit_test(test_dirty_lines), cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_write_back),  cmocka_unit_test(test_versions_wrap),
        cmocka_unit_test(test_distances),   cmocka_unit_test(test_queue),
    };

    return cmocka_run_group_tests_name("cost-model", tests, NULL, NULL);
}
