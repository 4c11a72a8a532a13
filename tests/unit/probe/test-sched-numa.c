/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the kernel's NUMA balancing reports for a thread. */

#include "base/util.h"
#include "kernel/sched-numa.h"
#include "unit-test.h"

#define HEAD                                                                \
    "numa02 (711, #threads: 5)\n"                                           \
    "-------------------------------------------------------------------\n" \
    "se.exec_start                                :          5321.421875\n" \
    "nr_switches                                  :                  123\n" \
    "policy                                       :                    0\n" \
    "prio                                         :                  120\n"
#define SEQUENCE  "mm->numa_scan_seq                            :                    4\n"
#define MIGRATED  "numa_pages_migrated                          :                  512\n"
#define PREFERRED "numa_preferred_nid                           :                    1\n"
#define TOTAL     "total_numa_faults                            :                 2048\n"
#define GROUP     "current_node=1, numa_group_id=711\n"
#define NODE0     "numa_faults node=0 task_private=3 task_shared=1 group_private=6 group_shared=2\n"
#define NODE2     "numa_faults node=2 task_private=2000 task_shared=44 group_private=4001 group_shared=88\n"

static SchedNuma numa;

static void test_file(void **state)
{
    assert_int_equal(sched_numa_parse(HEAD SEQUENCE MIGRATED PREFERRED TOTAL GROUP NODE0 NODE2, &numa), 0);
    assert_int_equal(numa.scan_sequence, 4);
    assert_int_equal(numa.preferred_node, 1);
    assert_int_equal(numa.total_faults, 2048);
    assert_int_equal(numa.group, 711);
    assert_int_equal(numa.n_nodes, 2);
    assert_int_equal(numa.nodes[0].node, 0);
    assert_int_equal(numa.nodes[0].task_private, 3);
    assert_int_equal(numa.nodes[0].task_shared, 1);
    assert_int_equal(numa.nodes[0].group_private, 6);
    assert_int_equal(numa.nodes[0].group_shared, 2);
    assert_int_equal(numa.nodes[1].node, 2);
    assert_int_equal(numa.nodes[1].task_private, 2000);
    assert_int_equal(numa.nodes[1].task_shared, 44);
    assert_int_equal(numa.nodes[1].group_private, 4001);
    assert_int_equal(numa.nodes[1].group_shared, 88);
}

/* A thread that has not been scanned yet, and balancing switched off. */
static void test_nothing_known(void **state)
{
    assert_int_equal(sched_numa_parse("x (1, #threads: 1)\nmm->numa_scan_seq  :  0\nnuma_pages_migrated : 0\n"
                                      "numa_preferred_nid : -1\ntotal_numa_faults : 0\n"
                                      "current_node=0, numa_group_id=0\n"
                                      "numa_faults node=0 task_private=0 task_shared=0 group_private=0 "
                                      "group_shared=0\n",
                                      &numa),
                     0);
    assert_int_equal(numa.preferred_node, -1);
    assert_int_equal(numa.total_faults, 0);
    assert_int_equal(numa.group, 0);
    assert_int_equal(numa.n_nodes, 1);
}

/* A kernel without balancing, and a kernel thread, report nothing. */
static void test_without(void **state)
{
    assert_int_equal(sched_numa_parse(HEAD, &numa), -ENOENT);
    assert_int_equal(sched_numa_parse("", &numa), -ENOENT);
    assert_int_equal(sched_numa_parse(HEAD MIGRATED PREFERRED TOTAL GROUP NODE0, &numa), -ENOENT);
}

static void test_bad(void **state)
{
    static const char *const bad[] = {
        HEAD SEQUENCE PREFERRED TOTAL GROUP NODE2 NODE0, /* not ascending */
        HEAD SEQUENCE PREFERRED TOTAL GROUP NODE0 NODE0,
        HEAD SEQUENCE PREFERRED TOTAL GROUP,
        HEAD SEQUENCE PREFERRED TOTAL NODE0,
        HEAD SEQUENCE PREFERRED GROUP NODE0,
        HEAD SEQUENCE TOTAL GROUP NODE0,
        HEAD SEQUENCE PREFERRED TOTAL GROUP NODE0 "numa_faults node=1 task_private=1",
        HEAD SEQUENCE PREFERRED TOTAL GROUP NODE0 "numa_faults node=1 task_private=1\n",
        HEAD SEQUENCE PREFERRED TOTAL GROUP
        "numa_faults node=1024 task_private=1 task_shared=0 group_private=1 group_shared=0\n",
        HEAD SEQUENCE PREFERRED TOTAL GROUP
        "numa_faults node=1 task_private=-1 task_shared=0 group_private=1 group_shared=0\n",
        HEAD SEQUENCE PREFERRED TOTAL GROUP
        "numa_faults node=1 task_private=18446744073709551616 task_shared=0 group_private=1 group_shared=0\n",
        HEAD SEQUENCE PREFERRED TOTAL "current_node=1, numa_group_id=-1\n" NODE0,
        HEAD SEQUENCE PREFERRED TOTAL "current_node=1\n" NODE0,
        HEAD SEQUENCE "numa_preferred_nid : -2\n" TOTAL GROUP NODE0,
        HEAD SEQUENCE "numa_preferred_nid : 1024\n" TOTAL GROUP NODE0,
        HEAD SEQUENCE "numa_preferred_nid : 1 x\n" TOTAL GROUP NODE0,
        HEAD SEQUENCE "numa_preferred_nid 1\n" TOTAL GROUP NODE0,
        HEAD "mm->numa_scan_seq : -1\n" PREFERRED TOTAL GROUP NODE0,
        HEAD SEQUENCE PREFERRED "total_numa_faults : 9223372036854775808\n" GROUP NODE0,
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (sched_numa_parse(bad[i], &numa) != -EINVAL)
            fail_msg("not refused: %zu", i);
}

/* A name cannot pass for a line, nor for a malformed one, wherever it is split. */
static void test_names(void **state)
{
    static const char *const lines[] = {SEQUENCE, PREFERRED,      TOTAL,          GROUP,
                                        NODE0,    "numa_faults ", "current_node="};
    static const char *const before[] = {"", "x", "ab", "\n"};
    char name[128], text[1024];

    for (size_t i = 0; i < ARRAY_SIZE(lines) * ARRAY_SIZE(before); i++) {
        (void)snprintf(name, sizeof(name), "%s\n%s", before[i % ARRAY_SIZE(before)],
                       lines[i / ARRAY_SIZE(before)]);
        (void)snprintf(text, sizeof(text), "%.15s (1, #threads: 1)\n%s", name,
                       SEQUENCE PREFERRED TOTAL GROUP NODE2);
        assert_int_equal(sched_numa_parse(text, &numa), 0);
        assert_int_equal(numa.scan_sequence, 4);
        assert_int_equal(numa.n_nodes, 1);
        assert_int_equal(numa.nodes[0].node, 2);
        assert_int_equal(numa.preferred_node, 1);
    }
}

static void test_status(void **state)
{
    pid_t group = -1;

    assert_int_equal(sched_numa_parse_status("Name:\tx\nNgid:\t711\nPid:\t712\n", &group), 0);
    assert_int_equal(group, 711);
    assert_int_equal(sched_numa_parse_status("Name:\tx\nNgid:\t0\n", &group), 0);
    assert_int_equal(group, 0);
    group = -1;
    assert_int_equal(sched_numa_parse_status("Name:\tx\nPid:\t712\n", &group), -ENOENT);
    assert_int_equal(sched_numa_parse_status("Name:\tNgid:\t4\n", &group), -ENOENT);
    assert_int_equal(sched_numa_parse_status("Ngid:\t4", &group), -ENOENT);
    assert_int_equal(sched_numa_parse_status("Ngid:\t-4\n", &group), -ENOENT);
    assert_int_equal(sched_numa_parse_status("", &group), -ENOENT);
    assert_int_equal(group, -1);
}

TEST_MAIN(NULL, NULL, test_file, test_nothing_known, test_without, test_bad, test_names, test_status)
