/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AllowedCPUs= and AllowedMemoryNodes= of a running unit, set through systemd: what reaches its control group,
 * what happens to masks and memory, what a reload of the configuration does to them, and how they are reset. */

#include "memory.h"

#include <sys/stat.h>

#define UNIT  "contract-unit.service"
#define OTHER "contract-other.service"
#define SLICE "/sys/fs/cgroup/system.slice"

static uint64_t all;

static int setup(void **state)
{
    all = mask_get(0);
    return 0;
}

/* The output of a command up to its first newline. Fails the test when the command fails. */
__attribute__((format(printf, 1, 2))) static const char *run(const char *format, ...)
{
    static char text[1024];
    char command[512];
    va_list args;
    FILE *pipe;

    va_start(args, format);
    (void)vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    pipe = popen(command, "re");
    assert_non_null(pipe);
    text[0] = '\0';
    if (!fgets(text, sizeof(text), pipe))
        text[0] = '\0';
    if (pclose(pipe) != 0)
        fail_msg("failed: %s", command);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void need_systemd(void)
{
    need_guest();
    if (!file_exists("/run/systemd/system") || !file_exists("/sys/fs/cgroup/cgroup.controllers"))
        contract_skip("no systemd with control groups of version 2");
    if ((all & 0xf) != 0xf)
        contract_skip("CPUs 0-3 are needed");
}

/* True when the program itself sleeps, not what systemd runs before it. */
static bool sleeps(void *userdata)
{
    const pid_t *pid = userdata;
    const char *comm = file_read("/proc/%d/comm", *pid);
    TaskStat stat;

    return comm && strncmp(comm, "sleep", strlen("sleep")) == 0 && task_stat(*pid, &stat) &&
           stat.state == 'S';
}

/* Starts a transient unit whose process sleeps, and waits until it does. Returns the process. */
static pid_t start(const char *unit)
{
    pid_t pid;

    (void)run("systemd-run --quiet --collect --unit=%s sleep 1000", unit);
    pid = (pid_t)strtol(run("systemctl show --value -p MainPID %s", unit), NULL, 10);
    assert_true(pid > 0);
    assert_true(eventually(sleeps, &pid));
    return pid;
}

static int stop(void **state)
{
    return system("systemctl stop " UNIT " " OTHER " 2> /dev/null") < 0 ? -1 : 0;
}

static void set_property(const char *unit, const char *value)
{
    (void)run("systemctl set-property --runtime %s '%s'", unit, value);
}

static uint64_t unit_list(const char *file)
{
    return file_list(SLICE "/" UNIT "/%s", file);
}

/* Before a property is set, units have no cpuset files. The list is there when systemctl returns, and masks
 * follow it. A reload keeps what --runtime set, and masks within it. */
static void test_cpus(void **state)
{
    pid_t pid;

    need_systemd();
    pid = start(UNIT);
    assert_false(file_exists(SLICE "/" UNIT "/cpuset.cpus"));
    assert_int_equal(mask_get(pid), all);
    set_property(UNIT, "AllowedCPUs=0-1");
    assert_int_equal(unit_list("cpuset.cpus"), 0x3);
    assert_int_equal(unit_list("cpuset.cpus.effective"), 0x3);
    assert_int_equal(mask_get(pid), 0x3);
    set_property(UNIT, "AllowedCPUs=1 2");
    assert_int_equal(unit_list("cpuset.cpus"), 0x6);
    assert_int_equal(mask_get(pid), 0x6);
    assert_int_equal(mask_set(pid, 0x2), 0);
    (void)run("systemctl daemon-reload");
    assert_int_equal(list_parse(run("systemctl show --value -p AllowedCPUs " UNIT)), 0x6);
    assert_int_equal(unit_list("cpuset.cpus"), 0x6);
    assert_int_equal(mask_get(pid), 0x2);
}

static unsigned version(void)
{
    return (unsigned)strtoul(run("systemctl --version") + strlen("systemd "), NULL, 10);
}

/* A list that somebody wrote directly into the file stays until systemd writes there again: with any property
 * of the unit, and before version 254 with any reload. */
static void test_foreign_write(void **state)
{
    pid_t pid;

    need_systemd();
    pid = start(UNIT);
    set_property(UNIT, "AllowedCPUs=0-1");
    assert_int_equal(file_write("2-3", SLICE "/" UNIT "/cpuset.cpus"), 0);
    assert_int_equal(mask_get(pid), 0xc);
    (void)run("systemctl daemon-reload");
    assert_int_equal(unit_list("cpuset.cpus"), version() < 254 ? 0x3 : 0xc);
    set_property(UNIT, "CPUWeight=200");
    assert_int_equal(unit_list("cpuset.cpus"), 0x3);
    set_property(UNIT, "AllowedCPUs=0-2");
    assert_int_equal(unit_list("cpuset.cpus"), 0x7);
}

static bool list_gone(void *userdata)
{
    return !file_exists(SLICE "/" UNIT "/cpuset.cpus");
}

/* An empty list removes the controller a moment later. From Linux 6.2 to some version after 6.12, masks then
 * stay as they are (contract-cpuset.c: there are other units), and a list of all CPUs does not widen them
 * afterwards, because it is no change. If all CPUs are listed first, threads get them and keep them. */
static void test_reset(void **state)
{
    bool stuck = kernel_since(6, 2) && !CPUSETS_NEWER;
    pid_t pid;

    need_systemd();
    pid = start(UNIT);
    set_property(UNIT, "AllowedCPUs=0-1");
    set_property(UNIT, "AllowedCPUs=");
    assert_true(eventually(list_gone, NULL));
    assert_int_equal(mask_get(pid), stuck ? 0x3 : all);
    set_property(UNIT, "AllowedCPUs=0-3");
    assert_int_equal(mask_get(pid), stuck ? 0x3 : 0xf);

    set_property(UNIT, "AllowedCPUs=0-1");
    set_property(UNIT, "AllowedCPUs=0-3");
    assert_int_equal(mask_get(pid), 0xf);
    set_property(UNIT, "AllowedCPUs=");
    assert_int_equal(mask_get(pid), all);
}

/* A property of one unit enables the controller for its neighbours, too. Older kernels then forget the masks
 * that the neighbours' threads asked for. */
static void test_neighbours(void **state)
{
    pid_t pid;

    need_systemd();
    (void)start(UNIT);
    pid = start(OTHER);
    assert_int_equal(mask_set(pid, 0x5), 0);
    set_property(UNIT, "AllowedCPUs=0-1");
    assert_int_equal(mask_get(pid), kernel_since(6, 2) ? 0x5 : all);
    assert_int_equal(file_list(SLICE "/" OTHER "/cpuset.cpus.effective"), all);
    /* Later changes affect only the unit itself. */
    assert_int_equal(mask_set(pid, 0x5), 0);
    set_property(UNIT, "AllowedCPUs=1-2");
    assert_int_equal(mask_get(pid), 0x5);
}

/* How many pages of a process's stack are on the node. */
static int64_t stack_pages(pid_t pid, unsigned node)
{
    const char *text = file_read("/proc/%d/numa_maps", pid), *line = text ? strstr(text, " stack ") : NULL,
               *count;
    char key[16];

    assert_non_null(line);
    (void)snprintf(key, sizeof(key), " N%u=", node);
    count = strstr(line, key);
    return count && count < strchr(line, '\n') ? strtoll(count + strlen(key), NULL, 10) : 0;
}

/* The first list of a unit that was already running moves nothing, except on newer kernels (contract-migrate-pages.c:
 * there are other units). With every later list, memory has moved when systemctl returns. */
static void test_memory_nodes(void **state)
{
    unsigned from, to;
    char value[64];
    pid_t pid;

    need_systemd();
    need_nodes(2);
    pid = start(UNIT);
    from = bit_first(memory_nodes());
    to = bit_last(memory_nodes());
    for (unsigned i = 0; i < 3; i++) {
        unsigned node = i % 2 ? from : to, other = i % 2 ? to : from;
        int64_t before = stack_pages(pid, other);

        (void)snprintf(value, sizeof(value), "AllowedMemoryNodes=%u", node);
        set_property(UNIT, value);
        assert_int_equal(unit_list("cpuset.mems"), BIT(node));
        assert_int_equal(stack_pages(pid, other), i == 0 && !CPUSETS_NEWER ? before : 0);
    }
    assert_true(stack_pages(pid, to) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_cpus, stop),
        cmocka_unit_test_teardown(test_foreign_write, stop),
        cmocka_unit_test_teardown(test_reset, stop),
        cmocka_unit_test_teardown(test_neighbours, stop),
        cmocka_unit_test_teardown(test_memory_nodes, stop),
    };

    return cmocka_run_group_tests_name("contract-systemd", tests, setup, NULL);
}
