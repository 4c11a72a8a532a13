/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every scenario in tests/fixtures/plan gives the plan in its golden file; see the README there. */

#include "fixture.h"

#include "base/root.h"

#define FILE_MAX ((size_t)1 << 20)

static const char *const scenarios[] = {
    "home", "lend", "veto", "recall", "repinned", "eight-nodes", "sparse-ids",
};

static char *read_fixture(const char *name, const char *suffix, size_t *ret_len)
{
    char path[4096];
    char *text = NULL;
    int root = root_open(getenv("NUMAPLACE_FIXTURES")), r;

    assert_true(root >= 0);
    (void)snprintf(path, sizeof(path), "plan/%s%s", name, suffix);
    r = root_read_alloc(root, path, FILE_MAX, &text, ret_len);
    close_p(&root);
    return r == 0 ? text : NULL;
}

static void write_golden(const char *name, const char *text)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/plan/%s.golden", getenv("NUMAPLACE_FIXTURES"), name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void load_policies(Fixture *f, const char *name)
{
    f->policies = calloc(1, sizeof(*f->policies));
    assert_non_null(f->policies);
    for (unsigned i = 0;; i++) {
        CLEANUP_FREE char *text = NULL;
        ConfReport report = {0};
        char suffix[32];
        size_t len;

        (void)snprintf(suffix, sizeof(suffix), "-%u.policy", i);
        text = read_fixture(name, suffix, &len);
        if (!text)
            break;
        assert_true(GROW(f->policies->policies, f->policies->capacity, i + 1));
        assert_int_equal(policy_parse(f->world->workloads[i].name, text, len, suffix, f->world->topology,
                                      &f->policies->policies[i], &report),
                         0);
        assert_int_equal(report.n_warnings, 0);
        conf_report_done(&report);
        f->policies->n_policies++;
    }
    assert_int_equal(f->policies->n_policies, f->world->n_workloads);
}

static void check_scenario(const char *name)
{
    CLEANUP_FREE char *text = NULL, *golden = NULL, *error = NULL, *found = NULL;
    CLEANUP(fixture_done) Fixture f = {.limits = {.cross_node_moves_per_sec = 100, .cross_node_burst = 100}};
    size_t len;

    text = read_fixture(name, ".world", &len);
    assert_non_null(text);
    if (world_load(text, len, &f.world, &error) < 0)
        fail_msg("%s.world: %s", name, error);
    load_policies(&f, name);

    fixture_plan(&f, true);
    found = plan_format(f.world, &f.plan);
    assert_non_null(found);
    if (getenv("NUMAPLACE_UPDATE_GOLDEN"))
        write_golden(name, found);
    golden = read_fixture(name, ".golden", &len);
    assert_non_null(golden);
    if (strcmp(found, golden) != 0)
        (void)fprintf(stderr, "# %s.golden differs from:\n%s", name, found);
    assert_string_equal(found, golden);

    fixture_commit(&f, NULL);
    fixture_assert_settled(&f, true);
}

static void test_goldens(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
        check_scenario(scenarios[i]);
}

TEST_MAIN(NULL, NULL, test_goldens)
