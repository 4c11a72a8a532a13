/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplaced.conf: defaults, every key, what is refused, and where files are looked for. */

#include "../temp-tree.h"
#include "base/time.h"
#include "daemon/config.h"

static char message[256];

/* Parses over the defaults. Leaves the report's first message, or "", in `message`. */
static int parse(const char *text, Config **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    int r;

    assert_int_equal(config_new(ret), 0);
    r = config_parse(*ret, text, strlen(text), "f", &report);
    (void)snprintf(message, sizeof(message), "%s", report.n_messages > 0 ? report.messages[0].text : "");
    return r;
}

static void check_defaults(const Config *c)
{
    assert_int_equal(c->fast_tick_usec, 100 * USEC_PER_MSEC);
    assert_int_equal(c->slow_tick_usec, USEC_PER_SEC);
    assert_int_equal(c->max_cpu_permille, 10);
    assert_null(c->reserved_cpus);
    assert_false(c->dry_run);
    assert_false(c->keep_on_stop);
    assert_int_equal(c->max_tasks, 250000);
    assert_int_equal(c->max_workloads, 1024);
    assert_int_equal(c->cross_node_moves_per_sec, 100);
}

static void test_defaults(void **state)
{
    CLEANUP(config_free_p) Config *c = NULL;

    assert_int_equal(config_new(&c), 0);
    check_defaults(c);
}

static void test_every_key(void **state)
{
    CLEANUP(config_free_p) Config *c = NULL;

    assert_int_equal(parse("[Daemon]\nFastTickSec=20ms\nSlowTickSec=2s\nMaxCPU=0.5%\nReservedCPUs=0,2-3\n"
                           "DryRun=yes\nKeepOnStop=on\nMaxTasks=5\n[Limits]\nCrossNodeMovesPerSec=0\n",
                           &c),
                     0);
    assert_string_equal(message, "");
    assert_int_equal(c->fast_tick_usec, 20 * USEC_PER_MSEC);
    assert_int_equal(c->slow_tick_usec, 2 * USEC_PER_SEC);
    assert_int_equal(c->max_cpu_permille, 5);
    assert_int_equal(hwloc_bitmap_weight(c->reserved_cpus), 3);
    assert_true(c->dry_run);
    assert_true(c->keep_on_stop);
    assert_int_equal(c->max_tasks, 5);
    assert_int_equal(c->cross_node_moves_per_sec, 0);
}

static void test_bad_values(void **state)
{
    static const char *const texts[] = {
        "[Daemon]\nFastTickSec=9ms\n",
        "[Daemon]\nFastTickSec=11s\n",
        "[Daemon]\nFastTickSec=-1s\n",
        "[Daemon]\nFastTickSec=1 parsec\n",
        "[Daemon]\nSlowTickSec=1ms\n",
        "[Daemon]\nSlowTickSec=11s\n",
        "[Daemon]\nMaxCPU=1\n",
        "[Daemon]\nMaxCPU=0%\n",
        "[Daemon]\nMaxCPU=101%\n",
        "[Daemon]\nReservedCPUs=3-1\n",
        "[Daemon]\nReservedCPUs=99999999\n",
        "[Daemon]\nDryRun=perhaps\n",
        "[Daemon]\nMaxTasks=0\n",
        "[Daemon]\nMaxTasks=99999999999999999999\n",
        "[Limits]\nCrossNodeMovesPerSec=-1\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(config_free_p) Config *c = NULL;

        if (parse(texts[i], &c) != -EBADMSG)
            fail_msg("accepted: %s", texts[i]);
        assert_non_null(strstr(message, "takes"));
        check_defaults(c); /* a bad value writes nothing */
    }
}

static void test_key_without_section(void **state)
{
    CLEANUP(config_free_p) Config *c = NULL;

    assert_int_equal(parse("MaxTasks=1\n", &c), -EBADMSG);
    assert_string_equal(message,
                        "expected a section such as [Daemon] before the first key, found: MaxTasks=1");
}

static void test_unknown_is_a_warning(void **state)
{
    CLEANUP(config_free_p) Config *a = NULL, *b = NULL, *c = NULL;

    assert_int_equal(parse("[Daemon]\nFastTack=1s\n", &a), 0);
    assert_non_null(strstr(message, "FastTack"));
    assert_int_equal(parse("[Deamon]\nFastTickSec=1s\nDryRun=yes\n", &b), 0);
    assert_non_null(strstr(message, "Deamon"));
    check_defaults(b);
    assert_int_equal(parse("[Daemon]\nIdleCPU=25%\n", &c), 0);
    assert_non_null(strstr(message, "ignoring IdleCPU=, which is always 5%: "));
    check_defaults(c);
}

static void test_twice_is_a_warning(void **state)
{
    CLEANUP(config_free_p) Config *a = NULL, *b = NULL;

    assert_int_equal(parse("[Daemon]\nMaxTasks=5\n[Limits]\n[Daemon]\nMaxTasks=6\n", &a), 0);
    assert_string_equal(message, "MaxTasks= was already set in line 2; the later value is used");
    assert_int_equal(a->max_tasks, 6);
    assert_int_equal(parse("[Daemon]\nMaxTasks=5\nDryRun=no\n", &b), 0);
    assert_string_equal(message, "");
}

static void test_search_and_dropins(void **state)
{
    char *first = test_tree_new(), *second = test_tree_new();
    const char *const directories[] = {first, second, NULL};
    CLEANUP(config_free_p) Config *c = NULL;
    ConfReport report = {0};

    (void)test_write(first, "numaplaced.conf", "[Daemon]\nMaxTasks=1\nMaxCPU=1%\n");
    (void)test_write(second, "numaplaced.conf", "[Daemon]\nMaxTasks=2\nSlowTickSec=5s\n");
    (void)test_write(second, "numaplaced.conf.d/10-x.conf",
                     "[Daemon]\nMaxCPU=7%\n[Limits]\nCrossNodeMovesPerSec=5\n");

    assert_int_equal(config_load(NULL, directories, NULL, &c, &report), 0);
    assert_int_equal(report.n_messages, 0);
    assert_int_equal(c->max_tasks, 1);
    assert_int_equal(c->max_cpu_permille, 70);
    assert_int_equal(c->cross_node_burst, 20);
    assert_int_equal(c->slow_tick_usec, USEC_PER_SEC); /* the second main file is hidden */
    assert_non_null(strstr(c->path, first));
    conf_report_done(&report);
    test_tree_remove(first);
    test_tree_remove(second);
}

static void test_no_file_is_fine_but_a_named_one_must_be(void **state)
{
    static const char *const nowhere[] = {"/nonexistent", NULL};
    CLEANUP(config_free_p) Config *c = NULL, *d = NULL;
    CLEANUP(conf_report_done) ConfReport report = {0};

    assert_int_equal(config_load(NULL, nowhere, NULL, &c, &report), 0);
    check_defaults(c);
    assert_null(c->path);
    assert_int_equal(config_load("/nonexistent/x.conf", nowhere, NULL, &d, &report), -EBADMSG);
    assert_null(d);
    assert_int_equal(report.n_errors, 1);
}

static void test_reserved_cpus_that_do_not_exist(void **state)
{
    static const TopologyOptions machine = {.synthetic = "numa:2 l3:1 core:2 pu:1"};
    char *dir = test_tree_new();
    const char *const directories[] = {dir, NULL};
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP(config_free_p) Config *c = NULL;
    CLEANUP_FREE char *error = NULL;
    ConfReport report = {0};

    assert_int_equal(topology_load(&machine, &topology, &error), 0);
    (void)test_write(dir, "numaplaced.conf", "[Daemon]\nReservedCPUs=0,3\n");
    (void)test_write(dir, "numaplaced.conf.d/10-x.conf", "[Daemon]\n\nReservedCPUs=1,3-5,900\n");
    (void)test_write(dir, "numaplaced.conf.d/20-x.conf", "[Daemon]\nMaxTasks=6\nReservedCPUs=\n");

    assert_int_equal(config_load(NULL, directories, topology, &c, &report), 0);
    assert_int_equal(report.n_messages, 1);
    assert_int_equal(report.n_warnings, 1);
    assert_non_null(strstr(report.messages[0].file, "10-x.conf"));
    assert_int_equal(report.messages[0].line, 3);
    assert_string_equal(
        report.messages[0].text,
        "ReservedCPUs= names CPUs that do not exist or are offline, and are reserved once they "
        "come online: 4-5,900");
    conf_report_done(&report);
    test_tree_remove(dir);
}

TEST_MAIN(NULL, NULL, test_defaults, test_every_key, test_bad_values, test_key_without_section,
          test_unknown_is_a_warning, test_twice_is_a_warning, test_search_and_dropins,
          test_no_file_is_fine_but_a_named_one_must_be, test_reserved_cpus_that_do_not_exist)
