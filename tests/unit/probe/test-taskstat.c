/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* schedstat and status of a thread. */

#include "base/util.h"
#include "kernel/taskstat.h"
#include "unit-test.h"

static void test_schedstat(void **state)
{
    uint64_t run = 1, wait = 2;

    assert_true(taskstat_parse_schedstat("123456789 42 7\n", &run, &wait));
    assert_int_equal(run, 123456789);
    assert_int_equal(wait, 42);
    assert_true(taskstat_parse_schedstat("18446744073709551615 0 0\n", &run, &wait));
    assert_true(run == UINT64_MAX);
    assert_int_equal(wait, 0);
}

static void test_schedstat_bad(void **state)
{
    static const char *const bad[] = {
        "",      "\n",       "1",        "1 2",      "1 2 ",      "1 2 3",
        "1 2\n", "1  2 3\n", " 1 2 3\n", "-1 2 3\n", "1 2 3 4\n", "18446744073709551616 2 3\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t run = 1, wait = 2;

        if (taskstat_parse_schedstat(bad[i], &run, &wait))
            fail_msg("taken: '%s'", bad[i]);
        assert_int_equal(run, 1);
        assert_int_equal(wait, 2);
    }
}

static void test_status(void **state)
{
    char text[] = "Name:\tx\\nUid:\t5\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nCpus_allowed:\tf\n"
                  "Cpus_allowed_list:\t0-3,8\nMems_allowed:\t1\n";
    TaskStatus status;

    assert_int_equal(taskstat_parse_status(text, &status), 0);
    assert_int_equal(status.uid, 1000);
    assert_string_equal(status.cpus_allowed, "0-3,8");
}

static void test_status_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "Uid:\t0\t0\t0\t0\n",
        "Cpus_allowed_list:\t0\n",
        "Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-",
        "Uid:\t0\nCpus_allowed_list:\t0\n",
        "Uid:\tx\t0\t0\t0\nCpus_allowed_list:\t0\n",
        "Uid:\t4294967296\t0\t0\t0\nCpus_allowed_list:\t0\n",
        "Name:\tUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        TaskStatus status;
        char text[128];

        (void)strcpy(text, bad[i]);
        if (taskstat_parse_status(text, &status) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);
    }
}

TEST_MAIN(NULL, NULL, test_schedstat, test_schedstat_bad, test_status, test_status_bad)
