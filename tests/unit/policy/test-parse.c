/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a policy's text means: defaults, values, [Match] sections, settings, and every kind of bad input. */

#include "../conf/conf-test.h"
#include "../machine.h"
#include "policy/policy.h"

#include <hwloc/bitmap.h>

/* Nodes 0 and 1 with two CPUs each, node 4 with memory only. It has only what policy_parse() may read. */
static Topology *machine_new(void)
{
    /* Synthetic descriptions number nodes from 0, so this makes the third node 4. */
    Topology *topology = test_machine("node:3 core:2 pu:1");

    topology->nodes[2].os_index = 4;
    topology->nodes[2].n_cpus = 0;
    hwloc_bitmap_zero(topology->nodes[2].cpus);
    return topology;
}

static Policy *parse(const char *text, const Topology *topology, const char *expected_report)
{
    ConfReport report = {0};
    Policy *policy = NULL;

    assert_int_equal(policy_parse("50-x", text, strlen(text), "f", topology, &policy, &report), 0);
    assert_non_null(policy);
    assert_report(&report, expected_report);
    return policy;
}

static void reject_on(const char *text, const Topology *topology, const char *expected_report)
{
    ConfReport report = {0};
    Policy *policy = NULL;

    assert_int_equal(policy_parse("50-x", text, strlen(text), "f", topology, &policy, &report), -EBADMSG);
    assert_null(policy);
    assert_report(&report, expected_report);
}

static void reject(const char *text, const char *expected_report)
{
    reject_on(text, NULL, expected_report);
}

static void test_defaults(void **state)
{
    CLEANUP(policy_free_p) Policy *p = parse("", NULL, "");

    assert_string_equal(p->name, "50-x");
    assert_string_equal(p->path, "f");
    assert_int_equal(p->n_files, 1);
    assert_int_equal(p->n_matches, 0);
    assert_int_equal(p->n_settings, 0);
    assert_null(p->description);
    assert_null(p->nodes);
    assert_int_equal(p->group_by, POLICY_GROUP_BY_AUTO);
    assert_int_equal(p->act, POLICY_ACT_AUTO);
    assert_int_equal(p->foreign_affinity, POLICY_FOREIGN_RESPECT);
    assert_int_equal(p->mode, POLICY_MODE_AUTO);
    assert_int_equal(p->min_age_usec, 1000000);
    assert_int_equal(p->settle_usec, 10000000);
    assert_int_equal(p->min_residency_usec, 1000000);
    assert_int_equal(p->allowed_imbalance, CONF_AUTO);
    assert_true(p->steal);
    assert_int_equal(p->scope, POLICY_SCOPE_MACHINE);
    assert_int_equal(p->node_limit, 2);
    assert_int_equal(p->max_distance, 30);
    assert_int_equal(p->wait_permille, 250);
    assert_int_equal(p->idle_cost_ratio, 10);
    assert_int_equal(p->lease_usec, 30000000);
    assert_int_equal(p->scan_min_usec, 1000000);
    assert_int_equal(p->scan_max_usec, 60000000);
    assert_int_equal(p->max_pressure_permille, 100);
    assert_int_equal(p->cross_node_moves_per_sec, 16);
    assert_int_equal(p->cross_node_burst, 64);
    assert_int_equal(p->nice_tries, 2);
    assert_int_equal(p->backoff_max, 32);
}

/* Every key outside [Match], with a value other than its default. */
static void test_all_keys(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Workload]\nDescription=A b\nGroupBy=process\nAct=observe\n"
                      "ForeignAffinity=override\nExpectWidth=16\nMinAgeSec=5s\n"
                      "[Placement]\nMode=fixed\nNodes=0,2-3\nMaxNodes=3\nSettleSec=1min\n"
                      "MinResidencySec=2s\nMinGainPermille=50\nAllowedImbalance=4\n"
                      "PingPongSec=2min\n"
                      "[Steal]\nSteal=no\nScope=llc\nNodeLimit=8\nMaxDistance=21\n"
                      "WaitPermille=100\nIdleCostRatio=20\nLeaseSec=10s\n"
                      "[Memory]\nFollow=no\nEvenOut=no\nEvidence=kernel\nRateLimit=1280M\n"
                      "ForceComplete=no\nTwoStage=no\nHeadroomPercent=20\n"
                      "ScanMinSec=100ms\nScanMaxSec=2min\nScanSize=64M\nScanFeedback=no\nMaxPressure=2.5%\n"
                      "[Limits]\nCrossNodeMovesPerSec=1\nCrossNodeBurst=2\nNiceTries=3\n"
                      "BackoffMax=8\n",
                      NULL, "");

    assert_string_equal(p->description, "A b");
    assert_int_equal(p->group_by, POLICY_GROUP_BY_PROCESS);
    assert_int_equal(p->act, POLICY_ACT_OBSERVE);
    assert_int_equal(p->foreign_affinity, POLICY_FOREIGN_OVERRIDE);
    assert_int_equal(p->expect_width, 16);
    assert_int_equal(p->min_age_usec, 5000000);
    assert_int_equal(p->mode, POLICY_MODE_FIXED);
    assert_int_equal(hwloc_bitmap_weight(p->nodes), 3);
    assert_true(hwloc_bitmap_isset(p->nodes, 2));
    assert_int_equal(p->max_nodes, 3);
    assert_int_equal(p->settle_usec, 60000000);
    assert_int_equal(p->min_residency_usec, 2000000);
    assert_int_equal(p->min_gain_permille, 50);
    assert_int_equal(p->allowed_imbalance, 4);
    assert_int_equal(p->ping_pong_usec, 120000000);
    assert_false(p->steal);
    assert_int_equal(p->scope, POLICY_SCOPE_LLC);
    assert_int_equal(p->node_limit, 8);
    assert_int_equal(p->max_distance, 21);
    assert_int_equal(p->wait_permille, 100);
    assert_int_equal(p->idle_cost_ratio, 20);
    assert_int_equal(p->lease_usec, 10000000);
    assert_false(p->follow);
    assert_false(p->even_out);
    assert_int_equal(p->evidence, POLICY_EVIDENCE_KERNEL);
    assert_int_equal(p->rate_limit_bytes, 1280ULL << 20);
    assert_false(p->force_complete);
    assert_false(p->two_stage);
    assert_int_equal(p->headroom_percent, 20);
    assert_int_equal(p->scan_min_usec, 100000);
    assert_int_equal(p->scan_max_usec, 120000000);
    assert_int_equal(p->scan_size_bytes, 64 << 20);
    assert_false(p->scan_feedback);
    assert_int_equal(p->max_pressure_permille, 25);
    assert_int_equal(p->cross_node_moves_per_sec, 1);
    assert_int_equal(p->cross_node_burst, 2);
    assert_int_equal(p->nice_tries, 3);
    assert_int_equal(p->backoff_max, 8);
    assert_int_equal(p->n_settings, policy_n_keys - policy_n_match_keys);
}

static void assert_patterns(const PolicyPatterns *patterns, const char *expected)
{
    CLEANUP_FREE char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    for (size_t i = 0; i < patterns->n_values; i++)
        (void)fprintf(f, "%s<%s>", patterns->values[i].negate ? "!" : "", patterns->values[i].glob);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
}

static void check_values(const char *value, const char *expected)
{
    CLEANUP(policy_free_p) Policy *p = NULL;
    CLEANUP_FREE char *text = NULL;

    assert_true(asprintf(&text, "[Match]\nUser=x\nCommandLine=%s\n", value) > 0);
    p = parse(text, NULL, "");
    assert_int_equal(p->n_matches, 1);
    assert_patterns(&p->matches[0].command_line, expected);
}

static void test_match_values(void **state)
{
    check_values("a", "<a>");
    check_values("a b\tc", "<a><b><c>");
    check_values("!a b !c*", "!<a><b>!<c*>");
    check_values("\"a b\" 'c  d'", "<a b><c  d>");
    check_values("\"it's\" 'say \"x\"'", "<it's><say \"x\">");
    check_values("NAME=\"a b\"c", "<NAME=a bc>");
    check_values("\"!a\" !\"b c\" a!", "<!a>!<b c><a!>");
    check_values("!!a", "!<!a>");
    check_values("\\* a\\\\b \"c\\\\\"", "<\\*><a\\\\b><c\\\\>");
    check_values("a\\ b x\\\"y\\\" it\\'s", "<a\\ b><x\\\"y\\\"><it\\'s>");
    check_values("\\\"x \\!a \"a\\\" b\" 'it\\'s' \\\\\"c d\"", "<\\\"x><\\!a><a\\\" b><it\\'s><\\\\c d>");
    check_values("* \\\n  # one left out\n b", "<*><b>");
}

static void test_match_sections(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Match]\nUnit=a.service\nUnit=b.service !c.service\nUser=postgres\n"
                      "[Workload]\nAct=auto\n"
                      "[Match]\nMinMemory=1G\nMinCPU=150%\nMinThreads=4\nSlice=s.slice\nCgroup=/c\n"
                      "Comm=co\nExe=/e\nCommandLine=cl\nEnvironment=E=1\n"
                      "[Match]\nComm=x\nComm=\nComm=y\n",
                      NULL, "");

    assert_int_equal(p->n_matches, 3);
    assert_patterns(&p->matches[0].unit, "<a.service><b.service>!<c.service>");
    assert_patterns(&p->matches[0].user, "<postgres>");
    assert_patterns(&p->matches[0].comm, "");
    assert_int_equal(p->matches[0].line, 1);
    assert_int_equal(p->matches[1].line, 7);
    assert_int_equal(p->matches[1].min_memory_bytes, 1 << 30);
    assert_int_equal(p->matches[1].min_cpu_permille, 1500);
    assert_int_equal(p->matches[1].min_threads, 4);
    assert_patterns(&p->matches[1].slice, "<s.slice>");
    assert_patterns(&p->matches[1].cgroup, "</c>");
    assert_patterns(&p->matches[1].comm, "<co>");
    assert_patterns(&p->matches[1].exe, "</e>");
    assert_patterns(&p->matches[1].command_line, "<cl>");
    assert_patterns(&p->matches[1].environment, "<E=1>");
    /* An empty value drops the values before it in the same section. */
    assert_patterns(&p->matches[2].comm, "<y>");
}

/* No error in [Match] may widen the match. */
static void test_match_dropped(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p =
        parse("[Match]\nUsr=root\nComm=a\n"
              "[Match]\n"
              "[Match]\nComm=b\nComm=\nMinThreads=0\n"
              "[Match]\nComm=c\n"
              "[Match]\nMode=none\n",
              NULL,
              "warning f:2: ignoring unknown key in [Match]: Usr=\n"
              "warning f:1: [Match] section with an unknown key matches nothing\n"
              "warning f:4: [Match] section without a condition matches nothing; Comm=* matches everything\n"
              "warning f:5: [Match] section without a condition matches nothing; Comm=* matches everything\n"
              "warning f:12: ignoring unknown key in [Match] (is [Placement] Mode= meant?): Mode=\n"
              "warning f:11: [Match] section with an unknown key matches nothing\n");

    assert_int_equal(p->n_matches, 1);
    assert_patterns(&p->matches[0].comm, "<c>");
}

static void test_long_comm(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse(
        "[Match]\nUser=x\nComm=fifteen-bytes-x\nComm=sixteen-byte-xyz sixteen-bytes-*x !sixteen-byte-abc\n",
        NULL,
        "warning f:4: the kernel keeps 15 bytes of a name, so this Comm= matches nothing: sixteen-byte-xyz\n"
        "warning f:4: the kernel keeps 15 bytes of a name, so this Comm= rules nothing out: !sixteen-byte-abc\n");

    assert_int_equal(p->matches[0].comm.n_values, 4);
}

static void test_paths(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p =
        parse("[Match]\nExe=/a */b ?c [/]d \\/e !f\nExe=postgres \\*/g\nCgroup=system.slice/*\n", NULL,
              "warning f:4: paths begin with a slash, so this Cgroup= matches nothing: system.slice/*\n"
              "warning f:2: paths begin with a slash, so this Exe= rules nothing out: !f\n"
              "warning f:3: paths begin with a slash, so this Exe= matches nothing: postgres\n"
              "warning f:3: paths begin with a slash, so this Exe= matches nothing: \\*/g\n");

    assert_int_equal(p->matches[0].exe.n_values, 8);
}

static void test_units(void **state)
{
    const char *units = "units end in .service or .scope, and slices are for Slice=, so this Unit=";
    CLEANUP_FREE char *report = NULL;
    CLEANUP(policy_free_p) Policy *p = NULL;

    assert_true(
        asprintf(&report,
                 "warning f:2: %s rules nothing out: !shop\nwarning f:3: %s matches nothing: *.slice\n"
                 "warning f:4: slices end in .slice, so this Slice= rules nothing out: !user\n",
                 units, units) > 0);
    p = parse("[Match]\nUnit=a.service b* [d]e f\\.g !shop\nUnit=*.slice\nSlice=a.slice b* !user\n", NULL,
              report);
    assert_int_equal(p->matches[0].unit.n_values, 6);
}

static void test_bad_match_values(void **state)
{
    const char *globs = "up to 256 globs separated by blanks, quoted to hold blanks, ! in front to negate";
    static const char *const cases[] = {"\"a", "a'b", "!", "! a", "\"\"", "\"a\\\"", "it\\'s it's", "!\"\""};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = NULL, *line = NULL;

        assert_true(asprintf(&text, "[Match]\nComm=%s\n", cases[i]) > 0);
        assert_true(asprintf(&line, "error f:2: Comm= takes %s, not: %s\n", globs, cases[i]) > 0);
        reject(text, line);
    }
    reject("[Match]\nMinMemory=1X\n", "error f:2: MinMemory= takes a size such as 512M, not: 1X\n");
    reject("[Match]\nMinCPU=50\n",
           "error f:2: MinCPU= takes a share of one CPU such as 150%, at most 10000000%, not: 50\n");
    reject("[Match]\nMinThreads=-1\n", "error f:2: MinThreads= takes a number up to 4294967295, not: -1\n");
}

static void test_too_many_values(void **state)
{
    enum {
        N = POLICY_VALUES_MAX + 1
    };
    CLEANUP_FREE char *text = calloc(1, 64 + 8 * N);
    CLEANUP(policy_free_p) Policy *p = NULL;
    CLEANUP(conf_report_done) ConfReport report = {0};
    char *at;

    assert_non_null(text);
    at = stpcpy(text, "[Match]\n");
    for (unsigned i = 0; i < N - 1; i++)
        at = stpcpy(at, "Comm=a\n");
    p = parse(text, NULL, "");
    assert_int_equal(p->matches[0].comm.n_values, POLICY_VALUES_MAX);
    (void)stpcpy(at, "Comm=a\n");
    p = policy_free(p);
    assert_int_equal(policy_parse("x", text, strlen(text), "f", NULL, &p, &report), -EBADMSG);
    assert_int_equal(report.n_errors, 1);
    assert_int_equal(report.messages[0].line, N + 1);
}

static void test_too_many_matches(void **state)
{
    CLEANUP_FREE char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    for (unsigned i = 0; i <= POLICY_MATCHES_MAX + 2; i++)
        (void)fputs("[Match]\nComm=a\n", f);
    assert_int_equal(fclose(f), 0);
    reject(text, "error f:513: more than 256 [Match] sections\n"); /* reported once */
}

static void test_settings(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Steal]\nScope=llc\nSteal=no\nLeaseSec=5s\nLeaseSec=\n"
                      "[Placement]\nMode=compress\nSettleSec=1s\n"
                      "[Workload]\nGroupBy=shared-memory\nAct=unit\n"
                      "[Steal]\nSteal=yes\n"
                      "[Match]\nMinThreads=2\nMinMemory=1G\nMinMemory=2G\n[Match]\nMinMemory=1G\n",
                      NULL,
                      "warning f:5: LeaseSec= was already set in line 4; the later value is used\n"
                      "warning f:13: Steal= was already set in line 3; the later value is used\n"
                      "warning f:17: MinMemory= was already set in line 16; the later value is used\n");
    static const struct {
        const char *section, *name;
        unsigned line;
    } expected[] = {
        {"Workload", "GroupBy", 10},   {"Workload", "Act", 11}, {"Placement", "Mode", 7},
        {"Placement", "SettleSec", 8}, {"Steal", "Steal", 13},  {"Steal", "Scope", 2},
    };

    assert_int_equal(p->lease_usec, 30000000);
    assert_true(p->steal);
    assert_null(policy_setting_find(p, "Steal", "LeaseSec"));
    assert_int_equal(p->n_settings, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const PolicySetting *s = policy_setting_find(p, expected[i].section, expected[i].name);

        assert_ptr_equal(s, &p->settings[i]);
        assert_string_equal(policy_keys[s->key].name, expected[i].name);
        assert_int_equal(s->line, expected[i].line);
        assert_string_equal(p->files[s->file], "f");
    }
}

/* The burst follows from the rate unless it is set, and the rate from its default. */
static void test_burst(void **state)
{
    CLEANUP(policy_free_p) Policy *slow = parse("[Limits]\nCrossNodeMovesPerSec=1\n", NULL, "");
    CLEANUP(policy_free_p) Policy *set = parse("[Limits]\nCrossNodeBurst=7\n", NULL, "");

    assert_int_equal(slow->cross_node_burst, 4);
    assert_int_equal(set->cross_node_burst, 7);
}

static void test_unknown(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p =
        parse("[Foo]\nA=b\nB=c\n[Steal]\nLeasSec=1s\nnodelimit=4\n[Limits]\nNodeLimit=4\n", NULL,
              "warning f:1: ignoring unknown section: [Foo]\n"
              "warning f:5: ignoring unknown key in [Steal]: LeasSec=\n"
              "warning f:6: ignoring unknown key in [Steal] (is [Steal] NodeLimit= meant?): nodelimit=\n"
              "warning f:8: ignoring unknown key in [Limits] (is [Steal] NodeLimit= meant?): NodeLimit=\n");

    assert_int_equal(p->node_limit, 2);
    assert_int_equal(p->n_settings, 0);
}

static void test_mistyped_sections(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Mathc]\n[match]\n[Placment]\n[Stealing]\n[Unit]\n[M]\n", NULL,
                      "warning f:1: ignoring unknown section (is [Match] meant?): [Mathc]\n"
                      "warning f:2: ignoring unknown section (is [Match] meant?): [match]\n"
                      "warning f:3: ignoring unknown section (is [Placement] meant?): [Placment]\n"
                      "warning f:4: ignoring unknown section: [Stealing]\n"
                      "warning f:5: ignoring unknown section: [Unit]\n"
                      "warning f:6: ignoring unknown section: [M]\n");

    assert_int_equal(p->n_matches, 0);
}

/* fnmatch() takes such a [ literally, which is seldom meant. */
static void test_open_brackets(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p =
        parse("[Match]\nComm=[abc [a-c]x [a\\] \\[abc []a] [!]a] []\nExe=/x[ !/y[\n"
              "[Match]\nUnit=a[b].service\n",
              NULL,
              "warning f:2: a [ without ] matches itself only (if that is meant, write \\[) in Comm=: [abc\n"
              "warning f:2: a [ without ] matches itself only (if that is meant, write \\[) in Comm=: [a\\]\n"
              "warning f:2: a [ without ] matches itself only (if that is meant, write \\[) in Comm=: []\n"
              "warning f:3: a [ without ] matches itself only (if that is meant, write \\[) in Exe=: /x[\n"
              "warning f:3: a [ without ] matches itself only (if that is meant, write \\[) in Exe=: !/y[\n");

    assert_int_equal(p->n_matches, 2);
}

/* BlockSize= was a key once, without effect. */
static void test_block_size(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Memory]\nBlockSize=2M\n", NULL,
                      "warning f:2: ignoring unknown key in [Memory]: BlockSize=\n");

    assert_int_equal(p->n_settings, 0);
}

static void test_bad_values(void **state)
{
    reject("[Steal]\nNodeLimit=0\n", "error f:2: NodeLimit= takes a number from 1 to 1024, not: 0\n");
    reject("[Steal]\nNodeLimit=-2\n", "error f:2: NodeLimit= takes a number from 1 to 1024, not: -2\n");
    reject("[Steal]\nNodeLimit=4294967298\n",
           "error f:2: NodeLimit= takes a number from 1 to 1024, not: 4294967298\n");
    reject("[Steal]\nWaitPermille=25%\n",
           "error f:2: WaitPermille= takes a number from 1 to 1000, not: 25%\n");
    reject("[Steal]\nMaxDistance=9\n", "error f:2: MaxDistance= takes a distance from 10 to 254, not: 9\n");
    reject("[Steal]\nLeaseSec=30 lightyears\n",
           "error f:2: LeaseSec= takes a time span such as 30s, from 1s to 1d, not: 30 lightyears\n");
    reject("[Steal]\nLeaseSec=0\n",
           "error f:2: LeaseSec= takes a time span such as 30s, from 1s to 1d, not: 0\n");
    reject("[Workload]\nMinAgeSec=-1s\n",
           "error f:2: MinAgeSec= takes a time span such as 500ms or 10s, at most 1d, not: -1s\n");
    reject("[Placement]\nMode=Fixed\n",
           "error f:2: Mode= takes none, auto, compress, spread, interleave or fixed, not: Fixed\n");
    reject("[Placement]\nNodes=0-\n",
           "error f:2: Nodes= takes node numbers up to 1023 such as 0-1,4, not: 0-\n");
    reject("[Placement]\nNodes=1024\n",
           "error f:2: Nodes= takes node numbers up to 1023 such as 0-1,4, not: 1024\n");
    reject("[Placement]\nAllowedImbalance=some\n",
           "error f:2: AllowedImbalance= takes auto or a number of CPUs up to 65536, not: some\n");
    reject("[Placement]\nAllowedImbalance=4294967295\n",
           "error f:2: AllowedImbalance= takes auto or a number of CPUs up to 65536, not: 4294967295\n");
    reject("[Limits]\nCrossNodeBurst=0\n",
           "error f:2: CrossNodeBurst= takes auto or a number from 1 to 100000, not: 0\n");
    /* All errors are reported at once, without a complaint that Mode=fixed has no nodes: it has some, but
     * they are wrong. */
    reject("[Placement]\nMode=fixed\nNodes=x\n[Steal]\nSteal=perhaps\n",
           "error f:3: Nodes= takes node numbers up to 1023 such as 0-1,4, not: x\n"
           "error f:5: Steal= takes yes or no, not: perhaps\n");
}

static void test_contradictions(void **state)
{
    reject("[Placement]\nMode=fixed\n", "error f:2: Mode=fixed needs Nodes=\n");
    reject("[Placement]\nMode=fixed\nNodes=\n", "error f:2: Mode=fixed needs Nodes=\n");
    reject("[Placement]\nMode=fixed\nNodes=0-2\nMaxNodes=2\n",
           "error f:4: MaxNodes=2 is less than the 3 nodes of Nodes=\n");
    reject("[Memory]\nScanMinSec=5s\nScanMaxSec=4s\n",
           "error f:2: ScanMinSec= must not be longer than ScanMaxSec=\n");
    reject("[Memory]\nScanMaxSec=500ms\n", "error f:2: ScanMinSec= must not be longer than ScanMaxSec=\n");
}

static void accept_on(const char *text, const Topology *topology)
{
    CLEANUP(policy_free_p) Policy *policy = parse(text, topology, "");

    assert_non_null(policy->nodes);
}

static void test_nodes_of_the_machine(void **state)
{
    CLEANUP(topology_unref_p) Topology *machine = machine_new();

    accept_on("[Placement]\nMode=fixed\nNodes=0-1\n", machine);
    /* A node with memory but without CPUs is no home, but a valid place for pages. */
    accept_on("[Placement]\nMode=auto\nNodes=0,4\n", machine);
    /* Without a machine to check against, any nodes are accepted. */
    accept_on("[Placement]\nMode=fixed\nNodes=700\n", NULL);
    reject_on("[Placement]\nMode=fixed\nNodes=0-3,7\n", machine,
              "error f:3: Nodes= names nodes this machine does not have: 2-3,7\n");
    reject_on("[Placement]\nNodes=2\n", machine,
              "error f:2: Nodes= names nodes this machine does not have: 2\n");
    reject_on("[Placement]\nMode=fixed\nNodes=0,4\n", machine,
              "error f:3: Nodes= names nodes without CPUs, which Mode=fixed cannot use: 4\n");
}

static void test_not_a_policy(void **state)
{
    static const char binary[] = "\x7f"
                                 "ELF\0\0[Match]\n";
    ConfReport report = {0};
    Policy *p = NULL;

    assert_int_equal(policy_parse("x", binary, sizeof(binary), "f", NULL, &p, &report), -EBADMSG);
    assert_null(p);
    assert_report(&report, "error f:1: not a text file: it contains a control character\n");
    reject("Comm=x\n", "error f:1: expected a section such as [Match] before the first key, found: Comm=x\n");
}

static void test_description(void **state)
{
    CLEANUP(policy_free_p)
    Policy *p = parse("[Workload]\nDescription=\xe6\x97\xa5 \"quoted\" # !\n", NULL, "");
    char text[400];

    assert_string_equal(p->description, "\xe6\x97\xa5 \"quoted\" # !");
    (void)snprintf(text, sizeof(text), "[Workload]\nDescription=%0300d\n", 0);
    {
        CLEANUP_FREE char *line = NULL;

        assert_true(
            asprintf(&line, "error f:2: Description= takes at most 256 bytes of text, not: %0300d\n", 0) > 0);
        reject(text, line);
    }
}

static void test_names(void **state)
{
    static const char *const good[] = {"a", "50-postgres", "A.b_c-d@e:f+g", "0"};
    static const char *const bad[] = {"", "-a", ".a", "a b", "a\nb", "a/b", "\xc3\xa9", "a\x7f"};
    char longest[POLICY_NAME_MAX + 2];
    ConfReport report = {0};

    memset(longest, 'x', sizeof(longest));
    longest[POLICY_NAME_MAX] = '\0';
    for (size_t i = 0; i <= ARRAY_SIZE(good); i++) {
        CLEANUP(policy_free_p) Policy *p = NULL;
        const char *name = i < ARRAY_SIZE(good) ? good[i] : longest;

        assert_int_equal(policy_parse(name, "", 0, "f", NULL, &p, &report), 0);
        assert_string_equal(p->name, name);
    }
    longest[POLICY_NAME_MAX] = 'x';
    longest[POLICY_NAME_MAX + 1] = '\0';
    for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
        Policy *p = NULL;

        assert_int_equal(policy_parse(i < ARRAY_SIZE(bad) ? bad[i] : longest, "", 0, "f", NULL, &p, &report),
                         -EBADMSG);
        assert_report(
            &report,
            "error f: a policy's name is 1 to 64 letters, digits and .-_@:+, starting with a letter or "
            "digit\n");
    }
}

/* The rows of [Match], and only they, are at the front, and no name is there twice. */
static void test_table(void **state)
{
    for (size_t i = 0; i < policy_n_keys; i++) {
        assert_int_equal(strcmp(policy_keys[i].section, "Match") == 0, i < policy_n_match_keys);
        assert_ptr_equal(
            conf_table_find(policy_keys, policy_n_keys, policy_keys[i].section, policy_keys[i].name),
            &policy_keys[i]);
    }
}

TEST_MAIN(NULL, NULL, test_defaults, test_all_keys, test_match_values, test_match_sections,
          test_match_dropped, test_long_comm, test_paths, test_units, test_bad_match_values,
          test_too_many_values, test_too_many_matches, test_settings, test_burst, test_unknown,
          test_mistyped_sections, test_open_brackets, test_block_size, test_bad_values, test_contradictions,
          test_nodes_of_the_machine, test_not_a_policy, test_description, test_names, test_table)
