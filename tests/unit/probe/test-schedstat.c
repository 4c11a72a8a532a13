/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The fields of /proc/schedstat, per version and number of fields. */

#include "../temp-tree.h"
#include "base/util.h"
#include "kernel/schedstat.h"

static int parse(const char *text, Schedstat *ret)
{
    schedstat_done(ret);
    return schedstat_parse(text, ret);
}

static void test_fixtures(void **state)
{
    static const struct {
        const char *tree;
        uint32_t version;
    } trees[] = {{"linux-v14", 14}, {"debian12", 15}, {"linux-6.12", 16}, {"linux-6.17", 17}};

    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        CLEANUP_CLOSE int fd = test_fixture("probe", trees[i].tree);
        CLEANUP_FREE char *text = NULL;
        CLEANUP(schedstat_done) Schedstat s = {0};
        size_t len;

        assert_int_equal(root_read_alloc(fd, "proc/schedstat", 65536, &text, &len), 0);
        assert_int_equal(schedstat_parse(text, &s), 0);
        assert_int_equal(s.version, trees[i].version);
        assert_int_equal(s.n_cpus, 4);
        for (uint32_t c = 0; c < 4; c++) {
            assert_int_equal(s.cpus[c].cpu, c);
            assert_int_equal(s.cpus[c].run_nsec, 5000000000 + c);
            assert_int_equal(s.cpus[c].wait_nsec, 700000000 + c);
        }
    }
}

static void test_field_counts(void **state)
{
    CLEANUP(schedstat_done) Schedstat s = {0};

    /* A patched version 16 with seven more fields: the known fields stay in place. */
    assert_int_equal(parse("version 16\ntimestamp 1\ncpu3 1 2 3 4 5 6 77 88 9 10 11 12 13 14 15 16\n", &s),
                     0);
    assert_int_equal(s.cpus[0].cpu, 3);
    assert_int_equal(s.cpus[0].run_nsec, 77);
    assert_int_equal(s.cpus[0].wait_nsec, 88);

    assert_int_equal(parse("version 15\ncpu0 1 2 3 4 5 6 7 8\n", &s), -EINVAL);
    assert_int_equal(parse("version 14\ncpu0 1 2 3 4 5 6 7 8 9\n", &s), -EINVAL);
    assert_int_equal(parse("version 14\ncpu0 1 2 3 4 5 6 7 8 9 10 11 12 13\n", &s), -EINVAL);
}

static void test_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "version",
        "version 15",
        "version x\n",
        "version 15\n",
        "version 15\ntimestamp 1\n",
        "version 15\ncpu0 1 2 3 4 5 6 7 8 9",
        "version 15\ncpu0 1 2 3 4 5 6 7 8 -9\n",
        "version 15\ncpu0 1 2 3 4 5 6 7  8 9\n",
        "version 15\ncpu 1 2 3 4 5 6 7 8 9\n",
        "version 15\ncpu99999999 1 2 3 4 5 6 7 8 9\n",
        "version 15\ncpu0 1 2 3 4 5 6 99999999999999999999 8 9\n",
        "version 15\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 f 1 2",
    };
    CLEANUP(schedstat_done) Schedstat s = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (parse(bad[i], &s) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);

    assert_int_equal(parse("version 13\ncpu0 1 2 3 4 5 6 7 8 9\n", &s), -EPROTONOSUPPORT);
    assert_int_equal(parse("version 18\ncpu0 1 2 3 4 5 6 7 8 9\n", &s), -EPROTONOSUPPORT);
}

static void test_memory_is_used_again(void **state)
{
    CLEANUP(schedstat_done) Schedstat s = {0};

    assert_int_equal(schedstat_parse("version 15\ncpu0 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 7 8 9\n", &s), 0);
    assert_int_equal(s.n_cpus, 2);
    assert_int_equal(schedstat_parse("version 15\ncpu5 1 2 3 4 5 6 7 8 9\n", &s), 0);
    assert_int_equal(s.n_cpus, 1);
    assert_int_equal(s.cpus[0].cpu, 5);
}

TEST_MAIN(NULL, NULL, test_fixtures, test_field_counts, test_bad, test_memory_is_used_again)
