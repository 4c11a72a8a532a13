/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policies in policies/ load without a message and do what they say, and the examples change nothing
 * until they are adapted. */

#include "../conf/conf-test.h"
#include "../machine.h"
#include "policy/policy.h"

static const char *arg_source = ".";

/* The default and all examples, as if they were installed together. */
static PolicySet *load(const Topology *topology)
{
    CLEANUP_FREE char *policies = strdup(test_path(arg_source, "policies"));
    CLEANUP_FREE char *examples = strdup(test_path(arg_source, "policies/examples"));
    const char *directories[] = {policies, examples, NULL};
    ConfReport report = {0};
    PolicySet *set = NULL;

    assert_true(policies && examples);
    (void)policy_set_load(directories, topology, &set, &report);
    assert_report(&report, "");
    assert_non_null(set);
    return set;
}

static void test_load(void **state)
{
    static const char *const names[] = {"50-java", "50-postgresql", "60-qemu", "90-default"};
    CLEANUP(policy_set_free_p) PolicySet *set = load(NULL);

    assert_int_equal(set->n_policies, ARRAY_SIZE(names));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const Policy *p = set->policies[i];

        assert_string_equal(p->name, names[i]);
        assert_true(p->n_matches > 0);
        assert_non_null(p->description);
    }
}

/* Without adaptation they fit the smallest machine and change nothing on any. */
static void test_harmless(void **state)
{
    CLEANUP(topology_unref_p) Topology *topology = test_machine("node:1 core:1 pu:1");
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;

    set = load(topology);
    for (size_t i = 0; i < set->n_policies; i++)
        assert_true(set->policies[i]->mode == POLICY_MODE_NONE ||
                    set->policies[i]->act == POLICY_ACT_OBSERVE);
}

static void test_matches(void **state)
{
    static const struct {
        const char *policy;
        PolicySubject subject;
    } cases[] = {
        {"50-postgresql",
         {.unit = "postgresql@15-main.service",
          .slice = "system-postgresql.slice",
          .cgroup = "/system.slice/system-postgresql.slice/postgresql@15-main.service",
          .comm = "postgres"}},
        {"50-postgresql",
         {.unit = "postgresql.service", .cgroup = "/system.slice/postgresql.service", .comm = "postmaster"}},
        {"50-postgresql",
         {.unit = "postgresql-16.service",
          .cgroup = "/system.slice/postgresql-16.service",
          .comm = "postmaster"}},
        {"50-postgresql", {.cgroup = "/docker/4f5e", .comm = "postgres", .uid = 999, .user = "postgres"}},
        {"90-default",
         {.cgroup = "/user.slice",
          .comm = "postgres",
          .uid = 1000,
          .user = "eve",
          .memory_bytes = 256U << 20}},
        {"50-java",
         {.cgroup = "/system.slice/tomcat.service",
          .comm = "java",
          .memory_bytes = 4ULL << 30,
          .n_threads = 40}},
        {"90-default",
         {.cgroup = "/user.slice/user-1000.slice/session-1.scope",
          .comm = "java",
          .memory_bytes = 4ULL << 30,
          .n_threads = 40}},
        {"60-qemu",
         {.unit = "machine-qemu\\x2d1\\x2dvm.scope",
          .cgroup = "/machine.slice/x",
          .comm = "qemu-system-x86"}},
        {"60-qemu", {.cgroup = "/user.slice/x", .comm = "qemu-system-x86"}},
        {"90-default", {.cgroup = "/", .comm = "systemd", .memory_bytes = 1ULL << 30}},
    };
    CLEANUP(policy_set_free_p) PolicySet *set = load(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t index;

        assert_int_equal(policy_match(set, &cases[i].subject, &index), POLICY_VERDICT_YES);
        assert_string_equal(set->policies[index]->name, cases[i].policy);
    }
}

/* A virtual machine that is still starting is not lost: it is examined again. */
static void test_young_java(void **state)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load(NULL);
    PolicySubject subject = {.cgroup = "/system.slice/tomcat.service",
                             .comm = "java",
                             .memory_bytes = 1ULL << 30,
                             .n_threads = 40};
    size_t index;

    assert_int_equal(policy_match(set, &subject, &index), POLICY_VERDICT_LATER);
    assert_string_equal(set->policies[index]->name, "90-default");
}

/* Small processes do not match as long as they are small. */
static void test_small(void **state)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load(NULL);
    PolicySubject subject = {.cgroup = "/", .comm = "systemd", .memory_bytes = 255U << 20};
    size_t index;

    assert_int_equal(policy_match(set, &subject, &index), POLICY_VERDICT_LATER);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),       cmocka_unit_test(test_harmless), cmocka_unit_test(test_matches),
        cmocka_unit_test(test_young_java), cmocka_unit_test(test_small),
    };

    if (argc > 1)
        arg_source = argv[1];
    return cmocka_run_group_tests_name("policy/shipped", tests, NULL, NULL);
}
