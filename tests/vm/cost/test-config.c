/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cost-test.h"

#include <errno.h>

#define SHAPE "nodes=64:64 cpus=0:0:1:1 dist=10:20/20:10 "

static void test_defaults(void **state)
{
    Config c = config_of(SHAPE);

    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.n_cpus, 4);
    assert_int_equal(c.node_mib[1], 64);
    assert_int_equal(c.cpu_node[1], 0);
    assert_int_equal(c.cpu_node[2], 1);
    assert_int_equal(c.distance[0][0], 10);
    assert_int_equal(c.distance[1][0], 20);
    assert_int_equal(c.local_nsec, 90);
    assert_int_equal(c.remote_nsec, 180);
    assert_int_equal(c.insn_psec, 300);
    assert_int_equal(c.sequence_permille, 80);
    assert_int_equal(c.walk_nsec, 10);
    assert_int_equal(c.wake_nsec, 1000);
    assert_int_equal(c.pause_nsec, 45);
    assert_int_equal(c.scale_permille, 4000);
    assert_int_equal(c.cache_kib, 256);
    assert_int_equal(c.llc_kib, 1024);
    assert_int_equal(c.n_llcs, 1);
    assert_int_equal(c.bandwidth_mbs, 12000);
    assert_int_equal(c.slice_nsec, 1000);
    assert_false(c.start);
    assert_null(c.out);
}

static void test_all_words(void **state)
{
    char text[] =
        "nodes=64:0:128 cpus=2:0 dist=10:20:30/20:10:40/30:40:10 local=80 remote=200 llclat=7 walk=3 "
        "wake=500 pause=11 insn=250 seq=125 scale=2.5 bw=12.125 cache=64 llc=0 slice=900 llcs=1 start=1 out=/a/b.json";
    char error[256];
    Config c;

    assert_int_equal(parse_words(text, &c, error, sizeof(error)), 0);
    assert_int_equal(c.n_nodes, 3);
    assert_int_equal(c.node_mib[1], 0);
    assert_int_equal(c.n_cpus, 2);
    assert_int_equal(c.cpu_node[0], 2);
    assert_int_equal(c.distance[1][2], 40);
    assert_int_equal(c.local_nsec, 80);
    assert_int_equal(c.remote_nsec, 200);
    assert_int_equal(c.llc_nsec, 7);
    assert_int_equal(c.walk_nsec, 3);
    assert_int_equal(c.wake_nsec, 500);
    assert_int_equal(c.pause_nsec, 11);
    assert_int_equal(c.insn_psec, 250);
    assert_int_equal(c.sequence_permille, 125);
    assert_int_equal(c.scale_permille, 2500);
    assert_int_equal(c.bandwidth_mbs, 12125);
    assert_int_equal(c.cache_kib, 64);
    assert_int_equal(c.llc_kib, 0);
    assert_int_equal(c.slice_nsec, 900);
    assert_true(c.start);
    assert_int_equal(config_scaled_psec(&c, 11), 27500);
    assert_string_equal(c.out, "/a/b.json");
}

static void test_latency(void **state)
{
    Config twice = config_of(SHAPE "local=90 remote=180 scale=1");
    Config flat = config_of(SHAPE "local=100 remote=170 scale=5");

    assert_int_equal(config_latency_nsec(&twice, 10), 90);
    assert_int_equal(config_latency_nsec(&twice, 17), 153);
    assert_int_equal(config_latency_nsec(&twice, 20), 180);
    assert_int_equal(config_latency_nsec(&twice, 254), 90 * 254 / 10);
    assert_int_equal(config_latency_nsec(&flat, 10), 500);
    assert_int_equal(config_latency_nsec(&flat, 20), 850);
    assert_int_equal(config_latency_nsec(&flat, 30), 1200);
}

typedef struct Bad {
    const char *words;
    const char *said; /* part of the message */
} Bad;

static const Bad bad[] = {
    {"", "nodes=, cpus= and dist= are needed"},
    {"nodes=64 cpus=0", "nodes=, cpus= and dist= are needed"},
    {SHAPE "local", "'local': expected key=value"},
    {SHAPE "loc=5", "'loc=5': no such argument"},
    {SHAPE "locals=5", "'locals=5': no such argument"},
    {SHAPE "=5", "'=5': no such argument"},
    {SHAPE "local=", "'local=': expected nanoseconds"},
    {SHAPE "local=0", "'local=0': expected nanoseconds"},
    {SHAPE "local=-5", "'local=-5': expected"},
    {SHAPE "local=90ns", "'local=90ns': expected"},
    {SHAPE "local=99999999999999999999", "expected nanoseconds, 1 to 100000"},
    {SHAPE "local=200 remote=100", "remote=100 is below local=200"},
    {SHAPE "scale=0", "'scale=0': expected a factor"},
    {SHAPE "scale=1.2345", "'scale=1.2345': expected a factor"},
    {SHAPE "scale=1,5", "'scale=1,5': expected a factor"},
    {SHAPE "scale=1000.001", "expected a factor"},
    {SHAPE "cache=100", "'cache=100': expected KiB, a power of two"},
    {SHAPE "cache=8", "a power of two from 16"},
    {SHAPE "llc=3", "'llc=3': expected KiB"},
    {SHAPE "llc=4", "'llc=4': expected KiB"},
    {SHAPE "start=yes", "'start=yes': expected 0 or 1"},
    {SHAPE "out=", "'out=': expected a file name"},
    {SHAPE "slice=99", "'slice=99': expected nanoseconds, 100 to 1000000"},
    {SHAPE "insn=0", "'insn=0': expected picoseconds, 1 to 1000000"},
    {SHAPE "seq=1001", "'seq=1001': expected thousandths of the price, 0 to 1000"},
    {"nodes=64:x cpus=0 dist=10", "'nodes=64:x': expected MiB of each node"},
    {"nodes=64: cpus=0 dist=10", "'nodes=64:': expected"},
    {"nodes=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1 cpus=0 dist=10", "expected MiB of each node"},
    {"nodes=0 cpus=0 dist=10", "nodes: no memory"},
    {"nodes=64:64 cpus=0:2 dist=10:20/20:10", "cpus: CPU 1 on node 2 of 2 nodes"},
    {"nodes=64:64 cpus=0 dist=10", "dist: 1 rows for 2 nodes"},
    {SHAPE "llcs=3", "llcs: 2 CPUs of node 0 for 3 caches"},
    {SHAPE "llcs=0", "'llcs=0': expected last-level caches"},
    {"nodes=64 cpus=0 dist=10:20/20:10", "dist: 2 rows for 1 nodes"},
    {"nodes=64:64 cpus=0 dist=10:20/20", "expected a square table"},
    {"nodes=64:64 cpus=0 dist=10:20", "expected a square table"},
    {"nodes=64:64 cpus=0 dist=10:20/20:10/", "expected a square table"},
    {"nodes=64:64 cpus=0 dist=10:255/20:10", "expected a square table"},
    {"nodes=64:64 cpus=0 dist=10:10/20:10", "dist: 10 from node 0 to 1"},
    {"nodes=64:64 cpus=0 dist=10:20/20:11", "dist: 11 from node 1 to 1"},
    {"nodes=64:64 cpus=0 dist=10:9/20:10", "dist: 9 from node 0 to 1"},
};

static void test_bad_words(void **state)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[256], error[256] = "";
        Config c = {.n_nodes = 77};

        (void)snprintf(text, sizeof(text), "%s", bad[i].words);
        assert_int_equal(parse_words(text, &c, error, sizeof(error)), -EINVAL);
        assert_int_equal(c.n_nodes, 77);
        if (!strstr(error, bad[i].said))
            fail_msg("'%s' says '%s', not '%s'", bad[i].words, error, bad[i].said);
        assert_null(strchr(error, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_words),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_bad_words),
    };

    return cmocka_run_group_tests_name("cost-config", tests, NULL, NULL);
}
