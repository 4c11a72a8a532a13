/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Control groups: paths, unit names, layouts and cpusets. */

#include "../cpu-list.h"
#include "../temp-tree.h"
#include "probe/tasks/cgroup.h"

static void expect_paths(const char *text, const char *main, const char *cpuset)
{
    CLEANUP_FREE char *copy = strdup(text);
    CgroupPaths paths;

    assert_int_equal(cgroup_parse(copy, &paths), 0);
    assert_string_equal(paths.main, main);
    assert_string_equal(paths.cpuset, cpuset);
}

static void test_parse(void **state)
{
    expect_paths("0::/system.slice/x.service\n", "/system.slice/x.service", "/system.slice/x.service");
    expect_paths("0::/\n", "/", "/");
    expect_paths("0::/a:b/c\n", "/a:b/c", "/a:b/c");
    expect_paths("0::/gone.service (deleted)\n", "/gone.service", "/gone.service");

    /* Version 1: systemd's name hierarchy, and the controllers may share a mount. */
    expect_paths("11:cpuset:/batch\n4:cpuacct,cpu:/c\n1:name=systemd:/s\n", "/s", "/batch");
    expect_paths("11:cpuset:/batch\n4:cpuacct,cpu:/c\n1:name=systemd:/\n", "/c", "/batch");
    expect_paths("4:cpuacct:/no\n3:xcpuset:/no\n2:cpusets:/no\n", "/", "/");

    /* Hybrid: with systemd, names are in the unified tree; without a manager that tree is empty. */
    expect_paths("3:cpuset:/\n1:name=systemd:/u.service\n0::/u.service\n", "/u.service", "/");
    expect_paths("9:name=systemd:/\n3:cpuset:/half\n1:cpu:/worker\n0::/\n", "/worker", "/half");
    expect_paths("9:name=systemd:/\n0::/\n", "/", "/");
}

static void test_parse_bad(void **state)
{
    static const char *const bad[] = {
        "", "\n", "0::/x", "0::x\n", "0:/x\n", "0::\n", "/x\n", "0::/x\n\n", "0::/x\n1:cpu:/y",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_FREE char *copy = strdup(bad[i]);
        CgroupPaths paths;

        if (cgroup_parse(copy, &paths) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);
    }
}

static void test_unit(void **state)
{
    static const struct {
        const char *path, *unit, *slice;
    } rows[] = {
        {"/", "", ""},
        {"", "", ""},
        {"/init.scope", "init.scope", ""},
        {"/system.slice", "", "system.slice"},
        {"/system.slice/x.service", "x.service", "system.slice"},
        {"/system.slice/x.service/worker/2", "x.service", "system.slice"},
        {"/system.slice/system-pg.slice/pg@15-main.service", "pg@15-main.service", "system-pg.slice"},
        {"/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "x.service", "app.slice"},
        {"/user.slice/user-1000.slice/user@1000.service/init.scope", "init.scope", "user-1000.slice"},
        {"/user.slice/user-1000.slice/session-2.scope", "session-2.scope", "user-1000.slice"},
        {"/machine.slice/libvirt-qemu\\x2dvm.scope/libvirt/vcpu0", "libvirt-qemu\\x2dvm.scope",
         "machine.slice"},
        {"/system.slice/_cpu.service", "cpu.service", "system.slice"},
        {"/system.slice/__x.service", "_x.service", "system.slice"},
        {"/system.slice/run-media.mount", "run-media.mount", "system.slice"},
        {"/docker/0123abcd", "", ""},
        {"/system.slice/.service", "", "system.slice"},
        {"/system.slice/@x.service", "", "system.slice"},
        {"/system.slice/a b.service", "", "system.slice"},
        {"/system.slice/x.servicex", "", "system.slice"},
        {"//system.slice//x.service/", "x.service", "system.slice"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CgroupUnit unit;

        cgroup_unit(rows[i].path, &unit);
        assert_string_equal(unit.unit, rows[i].unit);
        assert_string_equal(unit.slice, rows[i].slice);
    }
}

static void test_unit_too_long(void **state)
{
    char path[512] = "/system.slice/";
    CgroupUnit unit;

    memset(path + strlen(path), 'x', 260);
    (void)strcat(path, ".service");
    cgroup_unit(path, &unit);
    assert_string_equal(unit.unit, "");
    assert_string_equal(unit.slice, "system.slice");
}

static void test_layout(void **state)
{
    static const struct {
        const char *tree;
        ProbeCgroupLayout layout;
        CpusetsV1 v1;
    } rows[] = {
        {"debian12", PROBE_CGROUP_V2, CPUSETS_V1_NONE},    {"hybrid", PROBE_CGROUP_HYBRID, CPUSETS_V1_CGROUP},
        {"linux-v14", PROBE_CGROUP_V1, CPUSETS_V1_CGROUP}, {"cpusetfs", PROBE_CGROUP_V2, CPUSETS_V1_DEV},
        {"bare", PROBE_CGROUP_NONE, CPUSETS_V1_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_CLOSE int fd = test_fixture("probe", rows[i].tree);

        assert_int_equal(cgroup_layout(fd), rows[i].layout);
        assert_int_equal(cpusets_v1(fd), rows[i].v1);
    }
}

static void expect_cpuset(const char *tree, const char *path, const char *expected)
{
    CLEANUP_CLOSE int fd = test_fixture("probe", tree);
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int r = cgroup_cpuset(fd, cgroup_layout(fd), cpusets_v1(fd), path, NULL, set);

    if (expected) {
        assert_int_equal(r, 0);
        assert_list(set, expected);
    } else {
        assert_int_equal(r, -ENOENT);
    }
}

static void test_cpuset(void **state)
{
    expect_cpuset("debian12", "/", "0-3");
    expect_cpuset("debian12", "/system.slice/confined.service", "0-1");
    expect_cpuset("debian12", "/system.slice/confined.service/worker/x", "0-1"); /* found further up */
    expect_cpuset("debian12", "/not/there", "0-3");
    expect_cpuset("debian12", "/system.slice/confined.service/../..", "0-3"); /* not to be followed */
    expect_cpuset("debian12", "/../../..", "0-3");
    expect_cpuset("debian12", "/..", "0-3");
    expect_cpuset("hybrid", "/half/deeper", "0-1");
    expect_cpuset("hybrid", "/", "0-3");
    expect_cpuset("linux-v14", "/batch", "2-3"); /* without effective_cpus */
    expect_cpuset("cpusetfs", "/", "0-3");
    expect_cpuset("cpusetfs", "/batch", "2-3");
    expect_cpuset("cpusetfs", "/batch/job", "2-3"); /* found further up, from one without a list */
    expect_cpuset("cpusetfs", "/old", "1");
    expect_cpuset("bare", "/", NULL);
}

/* Which mounts are the cpuset file system, at the place where libcpuset looks for it. */
static void test_mounts(void **state)
{
    static const struct {
        const char *line;
        int r;
    } rows[] = {
        {"44 25 0:41 / /dev/cpuset rw,relatime - cgroup none rw,cpuset,noprefix", 1},
        {"44 25 0:41 / /dev/cpuset rw shared:31 master:2 - cgroup none rw,noprefix,cpuset,xattr", 1},
        {"44 25 0:41 / /dev/cpuset rw - cgroup none rw,cpuset", 0},
        {"44 25 0:41 / /dev/cpuset rw - cgroup none rw,noprefix,name=cpuset", 0},
        {"44 25 0:41 /batch /dev/cpuset rw - cgroup none rw,cpuset,noprefix", 0},
        {"44 25 0:41 / /dev/cpuset rw - tmpfs cpuset,noprefix rw", 0},
        {"44 25 0:41 / /dev/cpuset rw - cgroup", 0},
        {"44 25 0:41 / /dev/cpuset", 0},
        {"44 25 0:41 / /dev/cpuset/batch rw - cgroup none rw,cpuset,noprefix", -ENOENT},
        {"44 25 0:41 /dev/cpuset /mnt rw - cgroup none rw,cpuset,noprefix", -ENOENT},
        {"44", -ENOENT},
        {"", -ENOENT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(cpusets_parse_mount(rows[i].line), rows[i].r);
}

TEST_MAIN(NULL, NULL, test_parse, test_parse_bad, test_unit, test_unit_too_long, test_layout, test_cpuset,
          test_mounts)
