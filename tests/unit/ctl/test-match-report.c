/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which key of which section prevents a match, for every key. */

#include "ctl-test.h"
#include "ctl/verbs/policy/match-report.h"
#include "ctl/view.h"

#include <locale.h>
#include <stdlib.h>

static const PolicySubject subject = {
    .unit = "app.service",
    .slice = "system.slice",
    .cgroup = "/system.slice/app.service",
    .comm = "app",
    .exe = "/usr/bin/app",
    .command_line = "app --serve",
    .environment = "SECRET=hunter2",
    .environment_len = sizeof("SECRET=hunter2"),
    .uid = 1000,
    .user = "joe",
    .memory_bytes = 1 << 20,
    .n_threads = 2,
};

static PolicySet *load(const char *first, const char *second)
{
    const char *const texts[] = {first, second};
    const char *const names[] = {"10-first", "20-second"};
    Policy *policies[2] = {0};
    PolicySet *set;
    size_t n = 0;

    for (; n < 2 && texts[n]; n++) {
        CLEANUP(conf_report_done) ConfReport report = {0};

        assert_int_equal(
            policy_parse(names[n], texts[n], strlen(texts[n]), "/p/file.policy", NULL, &policies[n], &report),
            0);
    }
    assert_int_equal(policy_set_new(policies, n, &set), 0);
    return set;
}

static json_object *report_of(const char *first, const char *second)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load(first, second);
    json_object *report;

    assert_int_equal(match_report(set, &subject, 42, &report), 0);
    return report;
}

static json_object *first_of(json_object *list)
{
    assert_true(view_length(list) > 0);
    return json_object_array_get_idx(list, 0);
}

static void test_winner(void **state)
{
    CLEANUP_JSON json_object *report =
        report_of("[Match]\nComm=other\n[Match]\nComm=app\n[Placement]\nMode=none\n", "[Match]\nComm=*\n");
    json_object *policies = view_list(report, "policies"), *policy = first_of(policies);

    assert_string_equal(view_string(report, "policy"), "10-first");
    assert_string_equal(view_string(report, "mode"), "none");
    assert_int_equal(view_number(report, "pid", 0), 42);
    assert_int_equal(view_length(policies), 2);
    assert_string_equal(view_string(policy, "verdict"), "yes");
    assert_int_equal(view_number(policy, "section", 0), 2);
    assert_int_equal(view_number(json_object_array_get_idx(view_list(policy, "sections"), 1), "line", 0), 3);
    /* A later policy that also matches says so, and does not win. */
    assert_string_equal(view_string(json_object_array_get_idx(policies, 1), "verdict"), "yes");
}

static void test_no_policy(void **state)
{
    CLEANUP_JSON json_object *report = report_of("[Match]\nComm=other\n", NULL);

    assert_string_equal(view_string(report, "policy"), "");
    assert_int_equal(view_number(first_of(view_list(report, "policies")), "section", -1), 0);
}

typedef struct KeyCase {
    const char *key, *value, *found, *verdict;
} KeyCase;

/* One section per key, all of which fail; the report names that key and no other. */
static void test_every_key(void **state)
{
    static const KeyCase cases[] = {
        {"Unit", "x.service", "app.service", "no"},
        {"Slice", "x.slice", "system.slice", "no"},
        {"Cgroup", "/x", "/system.slice/app.service", "no"},
        {"Comm", "x", "app", "no"},
        {"Exe", "/x", "/usr/bin/app", "no"},
        {"CommandLine", "x", "app --serve", "no"},
        {"User", "root", "joe", "no"},
        {"Environment", "X=1", "no such variable", "no"},
        {"MinMemory", "1G", "1.0 MiB", "later"},
        {"MinCPU", "150%", "not measured by this command", "later"},
        {"MinThreads", "3", "2", "later"},
    };

    assert_int_equal(ARRAY_SIZE(cases), policy_n_match_keys);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_JSON json_object *report = NULL;
        json_object *section, *failed;
        char text[128];

        /* A second key that matches must not be named. */
        (void)snprintf(text, sizeof(text), "[Match]\n%s=%s\n%s\n", cases[i].key, cases[i].value,
                       strcmp(cases[i].key, "Comm") != 0 ? "Comm=app" : "Unit=app.service");
        report = report_of(text, NULL);
        section = first_of(view_list(first_of(view_list(report, "policies")), "sections"));
        assert_string_equal(view_string(section, "verdict"), cases[i].verdict);
        failed = view_list(section, "failed");
        assert_int_equal(view_length(failed), 1);
        assert_string_equal(view_string(first_of(failed), "key"), cases[i].key);
        assert_string_equal(view_string(first_of(failed), "found"), cases[i].found);
    }
}

/* The report names a glob that excludes the process, but not the variable's value. */
static void test_environment_ruled_out(void **state)
{
    static const struct {
        const char *value, *found;
    } cases[] = {
        {"!SECRET", "set, against !SECRET"},
        {"SECRET !X !SEC*=*2", "set, against !SEC*=*2"},
        {"X !Y", "no such variable"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_JSON json_object *report = NULL;
        json_object *failed;
        char text[64];

        (void)snprintf(text, sizeof(text), "[Match]\nEnvironment=%s\n", cases[i].value);
        report = report_of(text, NULL);
        failed =
            view_list(first_of(view_list(first_of(view_list(report, "policies")), "sections")), "failed");
        assert_int_equal(view_length(failed), 1);
        assert_string_equal(view_string(first_of(failed), "found"), cases[i].found);
    }
}

/* Globs match bytes, as in the daemon, whatever the locale. */
static void test_locale(void **state)
{
    CLEANUP(policy_set_free_p)
    PolicySet *set = load("[Match]\nComm=caf?\n", "[Match]\nComm=caf??\n");
    CLEANUP_JSON json_object *report = NULL;
    PolicySubject cafe = subject;

    cafe.comm = "caf\xc3\xa9";
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    assert_int_equal(match_report(set, &cafe, 42, &report), 0);
    assert_string_equal(view_string(report, "policy"), "20-second");
    assert_int_equal(MB_CUR_MAX, 6);
    (void)setlocale(LC_CTYPE, "C");
}

/* A user id without a name may be any excluded name. */
static void test_user_without_name(void **state)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load("[Match]\nUser=!joe\n", NULL);
    CLEANUP_JSON json_object *report = NULL;
    const PolicySubject nameless = {.comm = "app", .uid = 1000};
    json_object *section;

    assert_int_equal(match_report(set, &nameless, 42, &report), 0);
    section = first_of(view_list(first_of(view_list(report, "policies")), "sections"));
    assert_string_equal(view_string(first_of(view_list(section, "failed")), "found"),
                        "1000, whose name is not known");
}

static void test_environment_stays_secret(void **state)
{
    CLEANUP_JSON json_object *report = report_of("[Match]\nEnvironment=SECRET=x\n", NULL);

    assert_null(strstr(json_object_to_json_string(report), "hunter2"));
}

/* Names can be read back, and cannot forge output. */
static void test_names_are_escaped(void **state)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load("[Match]\nComm=other\n", NULL);
    CLEANUP_JSON json_object *report = NULL;
    const PolicySubject evil = {.comm = "a\nb\\x41", .command_line = "a\033b"};
    json_object *section;

    assert_int_equal(match_report(set, &evil, 42, &report), 0);
    assert_string_equal(view_string(report, "comm"), "a\\x0ab\\x5cx41");
    assert_string_equal(view_string(report, "command_line"), "a\\x1bb");
    section = first_of(view_list(first_of(view_list(report, "policies")), "sections"));
    assert_string_equal(view_string(first_of(view_list(section, "failed")), "found"), "a\\x0ab\\x5cx41");
}

TEST_MAIN(NULL, NULL, test_winner, test_no_policy, test_every_key, test_environment_ruled_out, test_locale,
          test_user_without_name, test_environment_stays_secret, test_names_are_escaped)
