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

    address_map_init(&f.map, &f.config);
    assert_int_equal(model_new(&f.config, &f.map, &f.model), 0);
    return f;
}

static void fixture_done(Fixture *f)
{
    f->model = model_free(f->model);
}

/* Accesses a line at equal virtual and physical addresses. Returns nanoseconds. */
static uint64_t touch(Fixture *f, unsigned cpu, uint64_t line, bool is_store, bool user)
{
    const ModelAccess a = {.virtual_address = line * 64,
                           .physical_address = line * 64,
                           .line = line,
                           .store = is_store,
                           .user = user};

    return model_access(f->model, cpu, &a, 0) / 1000;
}

static uint64_t load(Fixture *f, unsigned cpu, uint64_t line)
{
    return touch(f, cpu, line, false, true);
}

static uint64_t store(Fixture *f, unsigned cpu, uint64_t line)
{
    return touch(f, cpu, line, true, true);
}

/* Evicts the line's copies at `cpu` and in its LLC by loading three times the LLC's size. */
static void flush(Fixture *f, unsigned cpu, uint64_t first)
{
    for (uint64_t i = 0; i < 3 * 1024 * 1024 / 64; i++)
        (void)load(f, cpu, first + i);
}

static void test_memory(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(load(&f, 0, 0), LOCAL);
    assert_int_equal(load(&f, 0, 0), 0);
    assert_int_equal(load(&f, 0, NODE1_LINE), REMOTE);
    assert_int_equal(load(&f, 0, NODE1_LINE - 1), LOCAL);
    assert_int_equal(load(&f, 2, NODE1_LINE), LOCAL);
    assert_int_equal(touch(&f, 0, NODE1_LINE + 1, false, false), REMOTE);
    assert_int_equal(touch(&f, 0, NODE1_LINE + 1, false, false), 0);
    assert_int_equal(touch(&f, 0, 1, false, false), LOCAL);

    assert_int_equal(model_counters(f.model, 0)->user_local, 2);
    assert_int_equal(model_counters(f.model, 0)->user_remote, 1);
    assert_int_equal(model_counters(f.model, 0)->kernel_local, 1);
    assert_int_equal(model_counters(f.model, 0)->kernel_remote, 1);
    assert_int_equal(model_counters(f.model, 0)->charged_psec, 1000 * (3 * LOCAL + 2 * REMOTE));
    assert_int_equal(model_counters(f.model, 2)->user_local, 1);
    assert_int_equal(model_counters(f.model, 1)->charged_psec, 0);
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

/* Four CPUs of node 0 behind two LLCs, and two of node 1. The numbers of nodes and CPUs need not correspond. */
static void test_several_llcs(void **state)
{
    Fixture f = fixture_of("nodes=64:64 cpus=0:1:0:0:1:0 dist=10:20/20:10 local=100 remote=200 llclat=20 "
                           "scale=1 seq=1000 bw=0 walk=0 llcs=2");

    /* 0 and 2 are behind one LLC, 3 and 5 behind the other. */
    assert_int_equal(load(&f, 0, 5), LOCAL);
    assert_int_equal(load(&f, 2, 5), LLC);
    assert_int_equal(load(&f, 3, 5), LOCAL);
    assert_int_equal(load(&f, 5, 5), LLC);
    assert_int_equal(load(&f, 1, 5), REMOTE);
    assert_int_equal(load(&f, 4, 5), REMOTE);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    assert_int_equal(load(&f, 2, 9), LINE_NEAR);
    assert_int_equal(store(&f, 0, 9), 0);
    assert_int_equal(load(&f, 3, 9), LOCAL);
    assert_int_equal(model_counters(f.model, 3)->line_local, 1);
    assert_int_equal(load(&f, 1, 9), REMOTE);

    /* A dirty line goes to memory when it leaves the LLC of its writer. What passes through the other LLC
     * does not matter. */
    assert_int_equal(store(&f, 0, 11), LOCAL);
    flush(&f, 3, 1000 * 64);
    assert_int_equal(model_counters(f.model, 0)->written_back, 0);
    flush(&f, 2, 1000 * 64);
    assert_int_equal(model_counters(f.model, 0)->written_back, 0); /* CPU 0 still has it */
    flush(&f, 0, 1000 * 64);
    assert_int_equal(model_counters(f.model, 0)->written_back, 1);
    fixture_done(&f);
}

static void test_sizes(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);
    uint64_t sum = 0;

    /* Half the private cache fits, except for a few sets that have more than two of its 32 pages. */
    for (uint64_t i = 0; i < 128 * 1024 / 64; i++)
        (void)load(&f, 0, i);
    for (uint64_t i = 0; i < 128 * 1024 / 64; i++)
        sum += load(&f, 0, i) > 0;
    assert_true(sum < 128 * 1024 / 64 / 4);

    /* A pass over eight times the LLC leaves nothing of the pass before. */
    for (uint64_t i = 0; i < 8 * 1024 * 1024 / 64; i++)
        (void)load(&f, 2, i);
    sum = 0;
    for (uint64_t i = 0; i < 8 * 1024 * 1024 / 64; i++)
        sum += load(&f, 2, i) != REMOTE;
    assert_true(sum < 8 * 1024 * 1024 / 64 / 100);
    fixture_done(&f);
}

/* A page copy never evicts what it will use next, wherever the two pages are. */
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
    /* Two CPUs hold it clean, CPU 0 wrote it last: to write it, CPU 2 must invalidate that copy. */
    assert_int_equal(load(&f, 2, 9), LINE_FAR);
    assert_int_equal(store(&f, 2, 9), LINE_FAR);
    assert_int_equal(load(&f, 0, 9), LINE_FAR);
    assert_int_equal(model_counters(f.model, 0)->line_remote, 101);
    assert_int_equal(model_counters(f.model, 2)->line_remote, 102);
    fixture_done(&f);
}

/* A line that was dirty and has left the cache comes from memory again. */
static void test_write_back(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2);

    assert_int_equal(store(&f, 0, 9), LOCAL);
    flush(&f, 0, 1000 * 64);
    assert_int_equal(model_counters(f.model, 0)->written_back, 1);
    assert_int_equal(load(&f, 2, 9), REMOTE);
    assert_int_equal(load(&f, 0, 9), LOCAL);
    /* It is clean now, so it is not written back again. */
    flush(&f, 0, 1000 * 64);
    assert_int_equal(model_counters(f.model, 0)->written_back, 1);
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
                   "remote=200 scale=2 llc=0 seq=1000 bw=0 walk=0");

    /* Nodes 1 and 3 have CPUs only, 0 and 2 memory only. */
    assert_int_equal(load(&f, 0, 0), 240);
    assert_int_equal(load(&f, 0, NODE1_LINE), 320);
    assert_int_equal(load(&f, 1, 1), 600);
    assert_int_equal(load(&f, 1, NODE1_LINE + 1), 240);
    assert_int_equal(model_counters(f.model, 0)->user_remote, 2);
    fixture_done(&f);
}

/* Sixteen streams are followed at a time, whatever comes between two lines of a stream. */
static void test_streams(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2 " seq=80");

    for (uint64_t stream = 0; stream < 16; stream++)
        assert_int_equal(load(&f, 0, stream * 1000), LOCAL);
    for (uint64_t i = 1; i < 50; i++) {
        for (uint64_t stream = 0; stream < 16; stream++)
            assert_int_equal(load(&f, 0, stream * 1000 + i), i < 3 ? LOCAL : LOCAL * 8 / 100);
    }
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(load(&f, 1, NODE1_LINE + i), i < 3 ? REMOTE : REMOTE * 8 / 100);
    /* With one more, the oldest stream is forgotten. */
    assert_int_equal(load(&f, 0, 20000), LOCAL);
    assert_int_equal(load(&f, 0, 50), LOCAL);
    assert_int_equal(model_counters(f.model, 0)->sequential, 47 * 16);
    fixture_done(&f);
}

static uint64_t walk(Fixture *f, uint64_t virtual, uint64_t physical)
{
    const ModelAccess a = {
        .virtual_address = virtual, .physical_address = physical, .line = physical / 64, .user = true};

    return model_access(f->model, 0, &a, 0) / 1000 % 100;
}

static void test_translations(void **state)
{
    Fixture f = fixture_of(COST_TEST_2X2 " walk=10");
    uint64_t walks = 0;

    /* A small page, with addresses that differ below 2 MB. */
    assert_int_equal(walk(&f, 0x400000, 0x3000), 10);
    assert_int_equal(walk(&f, 0x400040, 0x3040), 0);
    assert_int_equal(walk(&f, 0x401000, 0x8000), 10);
    /* Another address space, or another page at the same address. */
    assert_int_equal(walk(&f, 0x400000, 0x9000), 10);
    /* A large page: one walk for 512 small ones. */
    assert_int_equal(walk(&f, 0x40000000, 0x200000), 10);
    for (uint64_t at = 0; at < 2 << 20; at += 4096)
        walks += walk(&f, 0x40000000 + at, 0x200000 + at);
    assert_int_equal(walks, 0);
    /* Sixteen thousand small pages do not fit. */
    for (uint64_t page = 0; page < 16384; page++)
        (void)walk(&f, 0x7f0000001000 + page * 4096, page * 4096);
    for (uint64_t page = 0; page < 16384; page++)
        walks += walk(&f, 0x7f0000001000 + page * 4096, page * 4096) > 0;
    assert_true(walks > 16000);
    fixture_done(&f);
}

/* Writing back dirty lines takes bandwidth from reads. */
static void test_bandwidth(void **state)
{
    /* 64 bytes at 1 GB/s take 64 ns. */
    Fixture f = fixture_of(COST_TEST_2X2 " bw=1 llc=0");
    ModelAccess a = {.user = true};
    uint64_t now_psec = 0, reading_psec;

    for (a.line = 0; a.line < 20000; a.line++)
        now_psec += model_access(f.model, 0, &a, now_psec);
    /* A CPU that waits 100 ns for each line does not use it up. */
    assert_int_equal(model_counters(f.model, 0)->queue_psec, 0);
    reading_psec = now_psec;
    a.store = true;
    for (a.line = 20000; a.line < 40000; a.line++)
        now_psec += model_access(f.model, 0, &a, now_psec);
    /* 128 ns for a line in and one out, except for lines still in the cache. */
    assert_in_range(model_counters(f.model, 0)->written_back, 15000, 20000);
    assert_in_range((now_psec - reading_psec) / 1000, 15500 * 128 + 4500 * 100, 20000 * 128);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_shared_llc),
        cmocka_unit_test(test_several_llcs),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_page_copy),     cmocka_unit_test(test_dirty_lines),
        cmocka_unit_test(test_ping_pong),     cmocka_unit_test(test_write_back),
        cmocka_unit_test(test_versions_wrap), cmocka_unit_test(test_distances),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_translations),
        cmocka_unit_test(test_bandwidth),
    };

    return cmocka_run_group_tests_name("cost-model", tests, NULL, NULL);
}
