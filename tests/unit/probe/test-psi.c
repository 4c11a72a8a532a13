/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pressure files, and a trigger where this kernel has them. */

#include "../temp-tree.h"
#include "base/util.h"
#include "kernel/psi.h"

static void test_parse(void **state)
{
    Psi psi;

    assert_int_equal(psi_parse("some avg10=12.39 avg60=2.26 avg300=100.00 total=12006809\n"
                               "full avg10=0.00 avg60=0.10 avg300=0.09 total=7\n",
                               &psi),
                     0);
    assert_int_equal(psi.some.avg10_permille, 123);
    assert_int_equal(psi.some.avg60_permille, 22);
    assert_int_equal(psi.some.avg300_permille, 1000);
    assert_int_equal(psi.some.total_usec, 12006809);
    assert_true(psi.has_full);
    assert_int_equal(psi.full.avg60_permille, 1);
    assert_int_equal(psi.full.avg300_permille, 0);
    assert_int_equal(psi.full.total_usec, 7);

    assert_int_equal(psi_parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", &psi), 0);
    assert_false(psi.has_full);
}

static void test_parse_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "some",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0",
        "some avg10=0.0 avg60=0.00 avg300=0.00 total=0\n",
        "some avg10=101.00 avg60=0.00 avg300=0.00 total=0\n",
        "some avg10=-1.00 avg60=0.00 avg300=0.00 total=0\n",
        "some avg60=0.00 avg10=0.00 avg300=0.00 total=0\n",
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=99999999999999999999\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        Psi psi = {.has_full = true};

        if (psi_parse(bad[i], &psi) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);
        assert_true(psi.has_full); /* unchanged */
    }
}

static void test_read(void **state)
{
    CLEANUP_CLOSE int fd = test_fixture("probe", "hybrid");
    Psi psi;

    assert_int_equal(psi_read(fd, "proc/pressure/cpu", &psi), 0);
    assert_int_equal(psi.some.avg10_permille, 12);
    assert_int_equal(psi_read(fd, "/proc/pressure/cpu", &psi), 0);
    assert_int_equal(psi_read(fd, "proc/pressure/none", &psi), -ENOENT);
    assert_int_equal(psi_read(fd, "proc/stat", &psi), -EINVAL);
}

static void test_trigger(void **state)
{
    CLEANUP_CLOSE int root_fd = root_open("/");
    CLEANUP_CLOSE int fd = -1;

    /* An unprivileged process gets only windows of whole 2 s (and none before Linux 6.5). */
    fd = psi_trigger(root_fd, "proc/pressure/cpu", 500000, 2000000);
    if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -EACCES || fd == -EPERM || fd == -EROFS ||
        fd == -EINVAL) {
        print_message("no usable /proc/pressure/cpu here\n");
        skip();
    }
    assert_true(fd >= 0);
    /* A stall longer than the window is refused: this is a trigger, not any file. */
    assert_int_equal(psi_trigger(root_fd, "proc/pressure/cpu", 3000000, 2000000), -EINVAL);
    assert_int_equal(psi_trigger(root_fd, "proc/pressure/none", 500000, 2000000), -ENOENT);
}

TEST_MAIN(NULL, NULL, test_parse, test_parse_bad, test_read, test_trigger)
