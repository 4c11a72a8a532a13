/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Matching: OR over sections, AND over keys, OR over values, NOT, unknown properties, and LATER. */

#include "../conf/conf-test.h"
#include "policy/policy.h"

#include <locale.h>
#include <stdlib.h>

static Policy *parse(const char *name, const char *text)
{
    ConfReport report = {0};
    Policy *policy = NULL;

    assert_int_equal(policy_parse(name, text, strlen(text), "f", NULL, &policy, &report), 0);
    conf_report_done(&report);
    return policy;
}

static const char environment[] = "PATH=/bin:/usr/bin\0JAVA_HOME=/opt/java\0EMPTY=\0odd";

/* A process of which everything is known. */
static const PolicySubject everything = {
    .unit = "postgresql@15-main.service",
    .slice = "system-postgresql.slice",
    .cgroup = "/system.slice/system-postgresql.slice/postgresql@15-main.service",
    .comm = "postgres",
    .exe = "/usr/lib/postgresql/15/bin/postgres",
    .command_line = "postgres: 15/main: walwriter",
    .environment = environment,
    .environment_len = sizeof(environment) - 1,
    .uid = 114,
    .user = "postgres",
    .memory_bytes = 1 << 30,
    .cpu_permille = 500,
    .n_threads = 4,
};

static void check_subject(const PolicySubject *subject, const char *text, PolicyVerdict expected)
{
    CLEANUP(policy_free_p) Policy *policy = parse("x", text);
    size_t section = 7;

    assert_int_equal(policy_match_one(policy, subject, &section), expected);
    assert_int_equal(section == SIZE_MAX, expected == POLICY_VERDICT_NO);
}

static void yes(const char *text)
{
    check_subject(&everything, text, POLICY_VERDICT_YES);
}

static void no(const char *text)
{
    check_subject(&everything, text, POLICY_VERDICT_NO);
}

static void later(const char *text)
{
    check_subject(&everything, text, POLICY_VERDICT_LATER);
}

static void test_keys(void **state)
{
    yes("[Match]\nUnit=postgresql@*.service\n");
    no("[Match]\nUnit=postgresql\n");
    yes("[Match]\nSlice=system-*.slice\n");
    yes("[Match]\nCgroup=/system.slice/*\n");
    no("[Match]\nCgroup=/system.slice\n");
    yes("[Match]\nComm=postgres\n");
    no("[Match]\nComm=Postgres\n");
    yes("[Match]\nExe=/usr/lib/postgresql/*/postgres\n");
    yes("[Match]\nCommandLine=*walwriter\n");
    no("[Match]\nCommandLine=walwriter\n");
    yes("[Match]\nComm=\"post*\"\n");
    yes("[Match]\nComm=[op]ostgre?\n");
    no("[Match]\nComm=\\post*x\n");
    yes("[Match]\nCommandLine=\"postgres: 15/main: walwriter\"\n");
    yes("[Match]\nCommandLine=postgres:\\ 15/main:\\ walwriter\n");
}

static void test_escapes(void **state)
{
    PolicySubject subject = {.comm = "x\"y\"z"};

    check_subject(&subject, "[Match]\nComm=x\\\"y\\\"z\n", POLICY_VERDICT_YES);
    check_subject(&subject, "[Match]\nComm='x\"y\"z'\n", POLICY_VERDICT_YES);
    check_subject(&subject, "[Match]\nComm=\"x\\\"y\\\"z\"\n", POLICY_VERDICT_YES);
    subject.comm = "xyz";
    check_subject(&subject, "[Match]\nComm=x\\\"y\\\"z\n", POLICY_VERDICT_NO);
}

/* Globs match bytes, as in the daemon, also where a program has set a locale. */
static void test_locale(void **state)
{
    PolicySubject subject = {.comm = "caf\xc3\xa9"};

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    check_subject(&subject, "[Match]\nComm=caf?\n", POLICY_VERDICT_NO);
    check_subject(&subject, "[Match]\nComm=caf??\n", POLICY_VERDICT_YES);
    assert_int_equal(MB_CUR_MAX, 6);
    (void)setlocale(LC_CTYPE, "C");
}

static void test_logic(void **state)
{
    /* Values are OR, keys are AND, sections are OR. */
    yes("[Match]\nComm=mysqld postgres\n");
    no("[Match]\nComm=mysqld psql\n");
    yes("[Match]\nComm=mysqld\nComm=postgres\n");
    no("[Match]\nComm=postgres\nUser=root\n");
    yes("[Match]\nComm=postgres\nUser=root\n[Match]\nUser=postgres\n");
    no("");
}

static void test_negation(void **state)
{
    yes("[Match]\nComm=!mysqld\n");
    yes("[Match]\nComm=!mysqld !psql\n");
    no("[Match]\nComm=!mysqld !postgres\n");
    yes("[Match]\nComm=post* !psql\n");
    no("[Match]\nComm=post* !postgres\n");
    no("[Match]\nComm=!postgres post*\n");
    no("[Match]\nComm=mysqld !psql\n");
    /* A quoted ! is an ordinary character. */
    no("[Match]\nComm=\"!mysqld\"\n");
}

static void test_user(void **state)
{
    PolicySubject nameless = everything;

    nameless.user = NULL;
    yes("[Match]\nUser=postgres\n");
    yes("[Match]\nUser=114\n");
    no("[Match]\nUser=!114\n");
    no("[Match]\nUser=!postgres\n");
    yes("[Match]\nUser=!root !0\n");
    check_subject(&nameless, "[Match]\nUser=114\n", POLICY_VERDICT_YES);
    check_subject(&nameless, "[Match]\nUser=!0\n", POLICY_VERDICT_YES);
    check_subject(&nameless, "[Match]\nUser=root\n", POLICY_VERDICT_NO);
    /* The unknown name may be root's. */
    check_subject(&nameless, "[Match]\nUser=!root\n", POLICY_VERDICT_NO);
}

static void test_environment(void **state)
{
    PolicySubject bare = everything;

    yes("[Match]\nEnvironment=JAVA_HOME\n");
    yes("[Match]\nEnvironment=JAVA_*\n");
    yes("[Match]\nEnvironment=JAVA_HOME=/opt/*\n");
    no("[Match]\nEnvironment=JAVA_HOME=\n");
    yes("[Match]\nEnvironment=EMPTY=\n");
    yes("[Match]\nEnvironment=EMPTY odd\n");
    no("[Match]\nEnvironment=/opt/java\n");
    no("[Match]\nEnvironment=!PATH\n");
    yes("[Match]\nEnvironment=!PYTHONPATH\n");
    no("[Match]\nEnvironment=JAVA_HOME !PATH=*\n");
    bare.environment_len = 0;
    check_subject(&bare, "[Match]\nEnvironment=PATH\n", POLICY_VERDICT_NO);
    check_subject(&bare, "[Match]\nEnvironment=!PATH\n", POLICY_VERDICT_YES);
    /* The last assignment has no terminating NUL. */
    bare.environment_len = sizeof("PATH=/bin") - 1;
    check_subject(&bare, "[Match]\nEnvironment=PATH=/bin\n", POLICY_VERDICT_YES);
}

/* An unknown property matches neither a value nor its negation. */
static void test_unknown(void **state)
{
    static const char *const keys[] = {"Unit", "Slice",       "Cgroup", "Comm",
                                       "Exe",  "CommandLine", "User",   "Environment"};
    PolicySubject nothing = {.uid = 5};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "[Match]\n%s=x\n", keys[i]);
        check_subject(&nothing, text, POLICY_VERDICT_NO);
        (void)snprintf(text, sizeof(text), "[Match]\n%s=!x\n", keys[i]);
        check_subject(&nothing, text, POLICY_VERDICT_NO);
    }
}

static void test_later(void **state)
{
    yes("[Match]\nMinMemory=1G\nMinCPU=50%\nMinThreads=4\n");
    later("[Match]\nMinMemory=1025M\n");
    later("[Match]\nMinCPU=50.1%\n");
    later("[Match]\nMinThreads=5\n");
    later("[Match]\nComm=postgres\nMinThreads=5\n");
    /* Growing will not make it match. */
    no("[Match]\nComm=mysqld\nMinThreads=5\n");
    yes("[Match]\nMinThreads=5\n[Match]\nComm=postgres\n");
    later("[Match]\nComm=mysqld\n[Match]\nMinThreads=5\n");
}

static void test_section_index(void **state)
{
    CLEANUP(policy_free_p)
    Policy *policy =
        parse("x", "[Match]\nComm=mysqld\n[Match]\nMinThreads=9\n[Match]\nUser=postgres\n[Match]\nComm=*\n");
    PolicySubject other = everything;
    size_t section;

    assert_int_equal(policy_match_one(policy, &everything, &section), POLICY_VERDICT_YES);
    assert_int_equal(section, 2);
    other.user = "root";
    assert_int_equal(policy_match_one(policy, &other, &section), POLICY_VERDICT_YES);
    assert_int_equal(section, 3);
    other.comm = NULL;
    assert_int_equal(policy_match_one(policy, &other, &section), POLICY_VERDICT_LATER);
    assert_int_equal(section, 1);
}

static PolicySet *set_of(Policy **policies, size_t n)
{
    PolicySet *set = NULL;

    assert_int_equal(policy_set_new(policies, n, &set), 0);
    for (size_t i = 0; i < n; i++)
        assert_null(policies[i]);
    return set;
}

static void test_set_order(void **state)
{
    Policy *policies[] = {parse("90-default", "[Match]\nComm=*\n"),
                          parse("10-big", "[Match]\nMinThreads=9\n"),
                          parse("50-pg", "[Match]\nUser=postgres\nExe=*\n")};
    CLEANUP(policy_set_free_p) PolicySet *set = set_of(policies, ARRAY_SIZE(policies));
    PolicySubject subject = everything;
    size_t index;

    assert_string_equal(set->policies[0]->name, "10-big");
    assert_string_equal(set->policies[2]->name, "90-default");
    assert_int_equal(set->wants, POLICY_WANTS_EXE | POLICY_WANTS_DYNAMIC);

    /* The first section says LATER, and does not hide the second. */
    assert_int_equal(policy_match(set, &subject, &index), POLICY_VERDICT_LATER);
    assert_int_equal(index, 1);
    subject.n_threads = 9;
    assert_int_equal(policy_match(set, &subject, &index), POLICY_VERDICT_YES);
    assert_int_equal(index, 0);
    subject = (PolicySubject){.user = "root"};
    assert_int_equal(policy_match(set, &subject, &index), POLICY_VERDICT_LATER);
    assert_int_equal(index, SIZE_MAX);
}

static void test_set_empty(void **state)
{
    Policy *none[1] = {NULL};
    CLEANUP(policy_set_free_p) PolicySet *set = set_of(none, 0);
    size_t index = 3;

    assert_int_equal(policy_match(set, &everything, &index), POLICY_VERDICT_NO);
    assert_int_equal(index, SIZE_MAX);
    assert_int_equal(set->wants, 0);
}

static void test_set_wants(void **state)
{
    static const struct {
        const char *text;
        unsigned wants;
    } cases[] = {
        {"[Match]\nComm=*\nUnit=*\nSlice=*\nCgroup=*\nUser=*\n", 0},
        {"[Match]\nExe=*\n", POLICY_WANTS_EXE},
        {"[Match]\nCommandLine=*\n", POLICY_WANTS_COMMAND_LINE},
        {"[Match]\nEnvironment=*\n", POLICY_WANTS_ENVIRONMENT},
        {"[Match]\nMinMemory=1\n", POLICY_WANTS_DYNAMIC},
        {"[Match]\nMinCPU=1%\n", POLICY_WANTS_DYNAMIC},
        {"[Match]\nComm=a\n[Match]\nMinThreads=1\n", POLICY_WANTS_DYNAMIC},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Policy *policy = parse("x", cases[i].text);
        CLEANUP(policy_set_free_p) PolicySet *set = set_of(&policy, 1);

        assert_int_equal(set->wants, cases[i].wants);
    }
}

static void test_set_of_same_names(void **state)
{
    Policy *policies[] = {parse("a", ""), parse("a", "")};
    PolicySet *set = NULL;

    assert_int_equal(policy_set_new(policies, 2, &set), -EEXIST);
    assert_null(set);
    assert_non_null(policies[0]);
    assert_null(policy_free(policies[1]));
    set = set_of(policies, 1);
    assert_string_equal(set->policies[0]->name, "a");
    assert_null(policy_set_free(set));
    assert_null(policy_set_free(NULL));
    assert_null(policy_free(NULL));
}

TEST_MAIN(NULL, NULL, test_keys, test_escapes, test_locale, test_logic, test_negation, test_user,
          test_environment, test_unknown, test_later, test_section_index, test_set_order, test_set_empty,
          test_set_wants, test_set_of_same_names)
