/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pressure files and their triggers. Relied on by kernel/psi.c.
 *
 *                                  before Linux 6.4        since
 *     shortest window              500 ms                  more than 0
 *     without CAP_SYS_RESOURCE     windows of whole 2 s    the same (6.1 has it from its stable series) */

#include "groups.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#define SYSTEM_FILE "/proc/pressure/cpu"
#define POLL_MSEC   60000

static void need_pressure(void)
{
    if (!file_read(SYSTEM_FILE))
        contract_skip("no pressure files (CONFIG_PSI, psi=1)");
}

/* Opens a file and writes a trigger of `size` bytes. Returns the descriptor or -errno. */
static int arm(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), r;

    if (fd < 0)
        return -errno;
    r = write(fd, text, size) < 0 ? -errno : fd;
    if (r < 0)
        (void)close(fd);
    return r;
}

static int arm_text(const char *path, const char *text)
{
    return arm(path, text, strlen(text) + 1);
}

static void assert_arms(const char *path, const char *text, int expected)
{
    int r = arm_text(path, text);

    if (r >= 0)
        (void)close(r);
    assert_int_equal(r < 0 ? r : 0, expected);
}

static void test_form(void **state)
{
    unsigned long long total;
    const char *text, *full;
    float a, b, c;

    need_pressure();
    text = file_read(SYSTEM_FILE);
    assert_int_equal(sscanf(text, "some avg10=%f avg60=%f avg300=%f total=%llu\n", &a, &b, &c, &total), 4);
    full = strchr(text, '\n') + 1;
    assert_int_equal(sscanf(full, "full avg10=%f avg60=%f avg300=%f total=%llu\n", &a, &b, &c, &total), 4);
    /* "full" has no meaning for the whole system, and is always zero. */
    assert_string_equal(full, "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
}

static void test_windows(void **state)
{
    bool any = kernel_since(6, 4);

    need_guest();
    need_pressure();
    assert_arms(SYSTEM_FILE, "some 150000 1000000", 0);
    assert_arms(SYSTEM_FILE, "some 150000 10000000", 0);
    assert_arms(SYSTEM_FILE, "some 150000 10000001", -EINVAL);
    assert_arms(SYSTEM_FILE, "some 150000 500000", 0);
    assert_arms(SYSTEM_FILE, "some 150000 499999", any ? 0 : -EINVAL);
    assert_arms(SYSTEM_FILE, "some 0 1000000", -EINVAL);
    assert_arms(SYSTEM_FILE, "some 1000001 1000000", -EINVAL);
    assert_arms(SYSTEM_FILE, "any 150000 1000000", -EINVAL);
}

/* The kernel overwrites the last byte, which must therefore be the terminator: without one, 20 s lose a digit
 * and pass. */
static void test_last_byte_is_lost(void **state)
{
    static const char text[] = "some 150000 20000000";
    int fd;

    need_guest();
    need_pressure();
    assert_int_equal(arm(SYSTEM_FILE, text, sizeof(text)), -EINVAL);
    fd = arm(SYSTEM_FILE, text, sizeof(text) - 1);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void test_one_trigger_each(void **state)
{
    static const char text[] = "some 150000 1000000";
    int fd;

    need_guest();
    need_pressure();
    fd = arm(SYSTEM_FILE, text, sizeof(text));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text)), -1);
    assert_int_equal(errno, EBUSY);
    (void)close(fd);
}

static void assert_fires(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLPRI};

    assert_true(fd >= 0);
    assert_int_equal(poll(&p, 1, POLL_MSEC), 1);
    assert_int_equal(p.revents, POLLPRI);
}

/* Two tasks on one CPU, in a group unless it is NULL. */
static void two_on_one(const char *group)
{
    uint64_t all = mask_get(0);

    for (unsigned i = 0; i < 2; i++) {
        pid_t pid = child_spin(all);

        if (group)
            assert_int_equal(group_join(group, pid), 0);
        /* After joining: before Linux 6.2 they forget the mask when they join. */
        assert_int_equal(mask_set(pid, BIT(bit_last(all))), 0);
    }
}

/* Two tasks on one CPU are pressure. It is reported again in the next window. */
static void test_system_fires(void **state)
{
    int fd;

    need_guest();
    need_pressure();
    two_on_one(NULL);
    fd = arm_text(SYSTEM_FILE, "some 50000 500000");
    assert_fires(fd);
    assert_fires(fd);
    (void)close(fd);
}

/* A group's file reports only its own tasks. */
static void test_group_fires(void **state)
{
    const char *path = GROUPS_ROOT "/busy/cpu.pressure", *quiet = GROUPS_ROOT "/quiet/cpu.pressure";
    struct pollfd p = {.events = POLLPRI};
    int fd;

    need_guest();
    need_pressure();
    groups_begin();
    group_make("busy");
    group_make("quiet");
    two_on_one("busy");
    p.fd = arm_text(quiet, "some 50000 500000");
    assert_true(p.fd >= 0);
    fd = arm_text(path, "some 50000 500000");
    assert_fires(fd);
    assert_fires(fd);
    assert_int_equal(poll(&p, 1, 0), 0);
    (void)close(fd);
    (void)close(p.fd);
}

/* A trigger whose group was removed always polls as an error, never as an event. */
static void test_group_goes(void **state)
{
    struct pollfd p = {.events = POLLPRI};

    need_guest();
    need_pressure();
    groups_begin();
    group_make("gone");
    p.fd = arm_text(GROUPS_ROOT "/gone/cpu.pressure", "some 50000 500000");
    assert_true(p.fd >= 0);
    assert_int_equal(groups_teardown(NULL), 0);
    assert_int_equal(poll(&p, 1, POLL_MSEC), 1);
    assert_true(p.revents & POLLERR);
    (void)close(p.fd);
}

typedef struct Poor {
    volatile int one_second, two_seconds;
} Poor;

static void poor_main(void *userdata)
{
    Poor *poor = userdata;
    int r = setuid(65534);

    poor->one_second = r < 0 ? -errno : arm_text(SYSTEM_FILE, "some 150000 1000000");
    poor->two_seconds = r < 0 ? -errno : arm_text(SYSTEM_FILE, "some 150000 2000000");
}

static void test_without_privilege(void **state)
{
    bool may = kernel_since(6, 5) || !kernel_since(6, 2);
    Poor *poor = shared_alloc(sizeof(*poor));
    pid_t pid;

    need_guest();
    need_pressure();
    pid = child_start(poor_main, poor);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(poor->one_second, may ? -EINVAL : -EPERM);
    assert_true(may ? poor->two_seconds >= 0 : poor->two_seconds == -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_last_byte_is_lost),
        cmocka_unit_test(test_one_trigger_each),
        cmocka_unit_test_teardown(test_system_fires, children_teardown),
        cmocka_unit_test_teardown(test_group_fires, groups_teardown),
        cmocka_unit_test(test_group_goes),
        cmocka_unit_test_teardown(test_without_privilege, children_teardown),
    };

    return cmocka_run_group_tests_name("contract-psi", tests, NULL, NULL);
}
