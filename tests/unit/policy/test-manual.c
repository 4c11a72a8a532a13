/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplace.policy(5) agrees with the table of keys. */

#include "../conf/manual-test.h"
#include "policy/policy.h"

static const char *arg_source = ".";

static void test_manual(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.policy.5");

    manual_check(policy_keys, policy_n_keys, text);
}

static void test_choices(void **state)
{
    static const struct {
        const char *section, *name;
        const char *const *names;
    } choices[] = {
        {"Workload", "GroupBy", policy_group_by_names},
        {"Workload", "Act", policy_act_names},
        {"Workload", "ForeignAffinity", policy_foreign_names},
        {"Placement", "Mode", policy_mode_names},
        {"Steal", "Scope", policy_scope_names},
        {"Memory", "Evidence", policy_evidence_names},
    };
    static const char *const ends[] = {"\n.It Cm ", "\n.El\n", NULL};
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.policy.5");

    for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
        CLEANUP_FREE char *block = NULL;
        char item[64];
        const char *at;

        (void)snprintf(item, sizeof(item), "\n.It Cm %s= ", choices[i].name);
        at = strstr(text, item);
        assert_non_null(at);
        block = manual_block(at + 1, ends);
        assert_non_null(block);
        for (size_t k = 0; choices[i].names[k]; k++) {
            char macro[64];

            (void)snprintf(macro, sizeof(macro), "\n.Cm %s", choices[i].names[k]);
            if (!strstr(block, macro))
                fail_msg("%s=%s is not in the manual", choices[i].name, choices[i].names[k]);
        }
    }
}

/* numaplace.scenario(5) lists the keys that files cannot set, in the order of the table. */
static void test_constants(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.scenario.5");
    const char *at = strstr(text, "constants of the daemon");
    static const char *const ends[] = {"\n.It Cm ", "\n.El\n", NULL};

    assert_non_null(at);
    for (size_t i = 0; i < policy_n_keys; i++) {
        CLEANUP_FREE char *block = NULL;
        char name[64];

        if (!policy_keys[i].fixed)
            continue;
        at = strstr(at, "\n.It Cm ");
        if (!at || sscanf(at, "\n.It Cm %63[A-Za-z]=", name) != 1 || strcmp(name, policy_keys[i].name) != 0)
            fail_msg("%s=: expected here in the manual of scenarios", policy_keys[i].name);
        at++;
        block = manual_block(at, ends);
        assert_non_null(block);
        manual_check_key(&policy_keys[i], block);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_constants),
    };

    if (argc > 1)
        arg_source = argv[1];
    return cmocka_run_group_tests_name("policy/manual", tests, NULL, NULL);
}
