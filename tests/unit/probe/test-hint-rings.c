/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rings of CPUs, with the real perf_event_open(2). */

#include "probe/hints/rings.h"
#include "unit-test.h"

#include <fcntl.h>
#include <sys/resource.h>

#define N_CPUS 2U

static const pid_t tids[] = {1, 2};

/* More threads than may have a ring each. */
static HintRings *make(void)
{
    const HintRingsOptions options = {
        .n_cpus = N_CPUS, .cgroup_fd = -1, .max_threads = 1, .exclude_kernel = true};
    HintRings *rings;

    assert_int_equal(hint_rings_new(&options, &rings), 0);
    return rings;
}

/* Whether this machine has as many CPUs, and lets them be sampled. */
static bool can_sample(void)
{
    CLEANUP(hint_rings_free_p) HintRings *rings = make();

    return hint_rings_follow(rings, tids, ARRAY_SIZE(tids)) == 0 && hint_rings_n(rings) == N_CPUS;
}

/* The CPUs for which there was no descriptor get their rings when there is one. */
static void test_no_descriptors(void **state)
{
    CLEANUP(hint_rings_free_p) HintRings *rings = make();
    struct rlimit limit, one;
    int fd, r;

    if (!can_sample())
        skip();
    fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    one = limit;
    one.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
    r = hint_rings_follow(rings, tids, ARRAY_SIZE(tids));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, -EMFILE);
    assert_int_equal(hint_rings_scope(rings), HINT_RINGS_MACHINE);
    assert_int_equal(hint_rings_n(rings), 1);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(hint_rings_follow(rings, tids, ARRAY_SIZE(tids)), 0);
        assert_int_equal(hint_rings_n(rings), N_CPUS);
    }
}

/* What is to be spared stays free, but half of a low limit may be used. */
static void test_spared_descriptors(void **state)
{
    static const uint32_t spared[] = {1, 1000};
    struct rlimit limit, low;
    int fd;

    if (!can_sample())
        skip();
    fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < ARRAY_SIZE(spared); i++) {
        const HintRingsOptions options = {.n_cpus = N_CPUS,
                                          .cgroup_fd = -1,
                                          .max_threads = 1,
                                          .exclude_kernel = true,
                                          .n_spared = spared[i]};
        CLEANUP(hint_rings_free_p) HintRings *rings = NULL;
        int r;

        assert_int_equal(hint_rings_new(&options, &rings), 0);
        low = limit;
        low.rlim_cur = (rlim_t)fd + 1 + MIN(spared[i], (uint32_t)fd + 1);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        r = hint_rings_follow(rings, tids, ARRAY_SIZE(tids));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(r, -EMFILE);
        assert_int_equal(hint_rings_n(rings), 1);
        assert_int_equal(hint_rings_follow(rings, tids, ARRAY_SIZE(tids)), 0);
        assert_int_equal(hint_rings_n(rings), N_CPUS);
    }
}

TEST_MAIN(NULL, NULL, test_no_descriptors, test_spared_descriptors)
