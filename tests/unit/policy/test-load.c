/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Loading from directories: precedence, masks, drop-ins, and that one bad file makes the whole set invalid. */

#include "../conf/conf-test.h"
#include "policy/policy.h"

static PolicySet *load(const ConfTree *t, const char *expected_report)
{
    ConfReport report = {0};
    PolicySet *set = NULL;

    assert_int_equal(policy_set_load(t->directories, NULL, &set, &report), 0);
    assert_non_null(set);
    assert_report(&report, expected_report);
    return set;
}

static void reject(const ConfTree *t, const char *expected_report)
{
    ConfReport report = {0};
    PolicySet *set = NULL;

    assert_int_equal(policy_set_load(t->directories, NULL, &set, &report), -EBADMSG);
    assert_null(set);
    assert_report(&report, expected_report);
}

static void reject_one(const ConfTree *t, const char *path, unsigned line, const char *text)
{
    CLEANUP_FREE char *expected = NULL;

    if (line > 0)
        assert_true(asprintf(&expected, "error %s:%u: %s\n", path, line, text) > 0);
    else
        assert_true(asprintf(&expected, "error %s: %s\n", path, text) > 0);
    reject(t, expected);
}

static void test_nothing(void **state)
{
    CLEANUP(policy_set_free_p) PolicySet *set = load(*state, "");

    assert_int_equal(set->n_policies, 0);
}

static void test_precedence(void **state)
{
    ConfTree *t = *state;
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;

    (void)test_write(t->usr, "10-a.policy", "[Workload]\nDescription=of usr\n");
    (void)test_write(t->usr, "90-z.policy", "");
    (void)test_write(t->usr, "20-b.policy", "");
    (void)test_write(t->etc, "10-a.policy", "[Workload]\nDescription=of etc\n");
    assert_int_equal(symlink("/dev/null", test_path(t->etc, "20-b.policy")), 0);
    set = load(t, "");
    assert_int_equal(set->n_policies, 2);
    assert_string_equal(set->policies[0]->name, "10-a");
    assert_string_equal(set->policies[0]->description, "of etc");
    assert_string_equal(set->policies[0]->path, test_path(t->etc, "10-a.policy"));
    assert_string_equal(set->policies[1]->name, "90-z");
}

static void test_dropins(void **state)
{
    ConfTree *t = *state;
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;
    const PolicySetting *setting;
    Policy *p;

    (void)test_write(t->usr, "10-a.policy",
                     "[Match]\nComm=a\n[Workload]\nDescription=main\n[Steal]\nNodeLimit=3\nScope=llc\n");
    (void)test_write(t->usr, "10-a.policy.d/10.conf", "[Steal]\nNodeLimit=4\nScope=\n");
    (void)test_write(t->etc, "10-a.policy.d/20.conf", "[Match]\nComm=b\n[Steal]\n\nNodeLimit=5\n");
    /* A section does not continue in the next file. */
    (void)test_write(t->etc, "10-a.policy.d/30.conf", "# nothing\n");
    set = load(t, "");
    p = set->policies[0];
    assert_int_equal(p->node_limit, 5);
    assert_int_equal(p->scope, POLICY_SCOPE_MACHINE);
    assert_string_equal(p->description, "main");
    assert_int_equal(p->n_files, 4);
    assert_int_equal(p->n_matches, 2);
    assert_string_equal(p->matches[0].comm.values[0].glob, "a");
    assert_string_equal(p->matches[1].comm.values[0].glob, "b");
    assert_string_equal(p->files[p->matches[1].file], test_path(t->etc, "10-a.policy.d/20.conf"));
    setting = policy_setting_find(p, "Steal", "NodeLimit");
    assert_non_null(setting);
    assert_int_equal(setting->line, 5);
    assert_string_equal(p->files[setting->file], test_path(t->etc, "10-a.policy.d/20.conf"));
    assert_null(policy_setting_find(p, "Steal", "Scope"));
}

/* A contradiction between keys of two files is reported at the key's place. */
static void test_dropin_contradiction(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "10-a.policy", "[Placement]\nMode=fixed\nNodes=0-1\n");
    (void)test_write(t->etc, "10-a.policy.d/x.conf", "[Placement]\n\nMaxNodes=1\n");
    reject_one(t, test_path(t->etc, "10-a.policy.d/x.conf"), 3,
               "MaxNodes=1 is less than the 2 nodes of Nodes=");
}

static void test_dropin_without_section(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "10-a.policy", "[Steal]\n");
    (void)test_write(t->etc, "10-a.policy.d/x.conf", "NodeLimit=4\n");
    reject_one(t, test_path(t->etc, "10-a.policy.d/x.conf"), 1,
               "expected a section such as [Match] before the first key, found: NodeLimit=4");
}

static void test_all_errors_at_once(void **state)
{
    ConfTree *t = *state;
    CLEANUP_FREE char *expected = NULL;

    (void)test_write(t->usr, "10-a.policy", "[Steal]\nSteal=x\n");
    (void)test_write(t->usr, "20-b.policy", "[Steal]\nSteal=yes\n");
    (void)test_write(t->usr, "30-c.policy", "[Steal]\nScope=x\n");
    assert_true(asprintf(&expected,
                         "error %s/10-a.policy:2: Steal= takes yes or no, not: x\n"
                         "error %s/30-c.policy:2: Scope= takes smt, llc, node or machine, not: x\n",
                         t->usr, t->usr) > 0);
    reject(t, expected);
}

static void test_bad_files(void **state)
{
    ConfTree *t = *state;
    const char *path = test_path(t->etc, "10-a.policy");
    CLEANUP_FREE char *big = malloc(10 << 20);

    assert_non_null(big);
    assert_int_equal(symlink("nowhere", path), 0);
    reject_one(t, path, 0, "cannot be read: No such file or directory");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("10-a.policy", path), 0);
    reject_one(t, path, 0, "cannot be read: Too many levels of symbolic links");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
    reject_one(t, path, 0, "cannot be read: it is not a regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    reject_one(t, path, 0, "cannot be read: it is a directory");
    assert_int_equal(rmdir(path), 0);

    (void)test_write_bytes(t->etc, "10-a.policy", "[Match]\nComm=\0\n", 15);
    reject_one(t, path, 2, "not a text file: it contains a NUL byte");
    memset(big, 'x', 10 << 20);
    (void)test_write_bytes(t->etc, "10-a.policy", big, 10 << 20);
    reject_one(t, path, 0, "cannot be read: it is larger than 1 MB, the limit for configuration files");
    (void)test_write_bytes(t->etc, "10-a.policy", big, 9 << 10);
    reject_one(t, path, 1, "line is longer than 8192 bytes");
    for (size_t i = 0; i < 4096; i++)
        big[i] = (char)(i * 7919 % 251);
    (void)test_write_bytes(t->etc, "10-a.policy", big, 4096);
    reject_one(t, path, 1, "not a text file: it contains a NUL byte");
}

static void test_good_odd_files(void **state)
{
    ConfTree *t = *state;
    CLEANUP(policy_set_free_p) PolicySet *set = NULL;

    (void)test_write(t->etc, "10-empty.policy", "");
    (void)test_write(t->etc, "20-crlf.policy", "\xef\xbb\xbf[Match]\r\nComm=a\r\n[Steal]\r\nNodeLimit=4\r\n");
    set = load(t, "");
    assert_int_equal(set->n_policies, 2);
    assert_int_equal(set->policies[0]->n_matches, 0);
    assert_int_equal(set->policies[1]->node_limit, 4);
    assert_string_equal(set->policies[1]->matches[0].comm.values[0].glob, "a");
}

static void test_bad_names(void **state)
{
    ConfTree *t = *state;
    static const char *const names[] = {"a b.policy", "\x1b[31m.policy", "\xff.policy"};
    static const char *const printed[] = {"a b.policy", "\\x1b[31m.policy", "\\xff.policy"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        (void)test_write(t->etc, names[i], "");
        reject_one(t, test_path(t->etc, printed[i]), 0,
                   "a policy's name is 1 to 64 letters, digits and .-_@:+, starting with a letter or digit");
        assert_int_equal(unlink(test_path(t->etc, names[i])), 0);
    }
}

static void test_too_many(void **state)
{
    ConfTree *t = *state;
    char name[32];

    for (unsigned i = 0; i <= POLICY_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%04u.policy", i);
        (void)test_write(t->etc, name, "");
    }
    reject_one(t, test_path(t->etc, "1024.policy"), 0, "more than 1024 policies");
}

static void test_load_file(void **state)
{
    ConfTree *t = *state;
    CLEANUP(conf_report_done) ConfReport report = {0};
    Policy *policy = NULL;
    const char *path = test_write(t->etc, "10-a.policy", "[Steal]\nNodeLimit=4\n");

    (void)test_write(t->etc, "10-a.policy.d/x.conf", "[Steal]\nNodeLimit=5\n");
    assert_int_equal(policy_load_file(path, NULL, &policy, &report), 0);
    assert_string_equal(policy->name, "10-a");
    assert_int_equal(policy->node_limit, 4);
    assert_int_equal(policy->n_files, 1);
    policy = policy_free(policy);

    path = test_write(t->etc, "draft", "");
    assert_int_equal(policy_load_file(path, NULL, &policy, &report), 0);
    assert_string_equal(policy->name, "draft");
    policy = policy_free(policy);

    assert_int_equal(policy_load_file(test_path(t->etc, "missing"), NULL, &policy, &report), -EBADMSG);
    assert_int_equal(report.n_errors, 1);
}

TEST_MAIN(conf_tree_setup, conf_tree_teardown, test_nothing, test_precedence, test_dropins,
          test_dropin_contradiction, test_dropin_without_section, test_all_errors_at_once, test_bad_files,
          test_good_odd_files, test_bad_names, test_too_many, test_load_file)
