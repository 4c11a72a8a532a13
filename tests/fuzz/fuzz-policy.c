/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Policy files. An accepted policy prints as a text that is accepted too and prints the same. It can be
 * matched against a process of which everything is known, and against one of which nothing is known. */

#include "fuzz.h"
#include "policy/policy.h"

static Policy *parse(const char *text, size_t len)
{
    ConfReport report = {0};
    Policy *policy = NULL;
    int r = policy_parse("50-fuzz", text, len, "f", NULL, &policy, &report);

    check(r == (report.n_errors > 0 ? -EBADMSG : 0));
    check((policy != NULL) == (r == 0));
    conf_report_done(&report);
    return policy;
}

static void match(const Policy *policy)
{
    static const char environment[] = "PATH=/bin\0HOME=/root";
    static const PolicySubject all = {
        .unit = "a.service",
        .slice = "system.slice",
        .cgroup = "/system.slice/a.service",
        .comm = "comm",
        .exe = "/usr/bin/comm",
        .command_line = "comm -x a b",
        .environment = environment,
        .environment_len = sizeof(environment) - 1,
        .uid = 1000,
        .user = "user",
        .memory_bytes = 1 << 20,
        .cpu_permille = 100,
        .n_threads = 2,
    };
    static const PolicySubject none = {.uid = 7};
    size_t section;

    check((policy_match_one(policy, &all, &section) == POLICY_VERDICT_NO) == (section == SIZE_MAX));
    check(section == SIZE_MAX || section < policy->n_matches);
    check((policy_match_one(policy, &none, &section) == POLICY_VERDICT_NO) == (section == SIZE_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(policy_free_p) Policy *policy = parse((const char *)data, size), *again = NULL;
    CLEANUP_FREE char *text = NULL, *text_again = NULL;

    if (!policy)
        return 0;
    match(policy);
    for (size_t i = 0; i < policy->n_settings; i++)
        check(policy->settings[i].line > 0 && policy->settings[i].file < policy->n_files &&
              (i == 0 || policy->settings[i - 1].key < policy->settings[i].key));
    text = policy_format(policy);
    check(text);
    again = parse(text, strlen(text));
    check(again);
    text_again = policy_format(again);
    check(text_again);
    check(strcmp(text, text_again) == 0);
    return 0;
}
