/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplace.scenario(5) agrees with the tables of keys, expectations, metrics and machines. */

#include "../conf/manual-test.h"
#include "sim/scenario/expect.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/scenario.h"

static const char *arg_source = ".";

static void test_keys(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.scenario.5");

    manual_check(sim_scenario_keys, sim_scenario_n_keys, text);
}

/* The words after ".It Cm " in a section must be those of `name(i)`, in order. */
static void check_items(const char *title, const char *(*name)(size_t i), size_t n, char end)
{
    static const char *const ends[] = {"\n.Sh ", "\n.Ss ", NULL};
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.scenario.5"), *block = NULL;
    const char *at = strstr(text, title);

    assert_non_null(at);
    block = manual_block(at + strlen(title), ends);
    assert_non_null(block);
    at = block;
    for (size_t i = 0; i < n; i++) {
        at = strstr(at, "\n.It Cm ");
        if (!at)
            fail_msg("%s is not in the manual", name(i));
        at += strlen("\n.It Cm ");
        if (strncmp(at, name(i), strlen(name(i))) != 0 || at[strlen(name(i))] != end)
            fail_msg("expected %s in the manual, found: %.30s", name(i), at);
    }
    assert_null(strstr(at, "\n.It Cm "));
}

static const char *expect_name(size_t i)
{
    return sim_expect_names[i];
}

static const char *metric_name(size_t i)
{
    return sim_metric_names[i];
}

static const char *preset_name(size_t i)
{
    size_t n;

    return preset_list(&n)[i].name;
}

static void test_items(void **state)
{
    size_t n_presets;

    (void)preset_list(&n_presets);
    check_items("\n.Ss [Expect] section options\n", expect_name, SIM_EXPECT_MAX, '=');
    check_items("\n.Sh METRICS\n", metric_name, SIM_METRIC_MAX, '\n');
    check_items("\n.Sh MACHINES\n", preset_name, n_presets, '\n');
}

/* Metrics that the manual restricts to the machine are so in the code. */
static void test_machine_only(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplace.scenario.5");

    for (SimMetric m = 0; m < SIM_METRIC_MAX; m++) {
        char item[64];
        const char *at;

        (void)snprintf(item, sizeof(item), "\n.It Cm %s\n", sim_metric_names[m]);
        at = strstr(text, item);
        assert_non_null(at);
        if (sim_metric_is_machine(m) != !strncmp(at + strlen(item), "machine only", strlen("machine only")))
            fail_msg("the manual is wrong about whether %s is of the machine only", sim_metric_names[m]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_machine_only),
    };

    if (argc > 1)
        arg_source = argv[1];
    return cmocka_run_group_tests_name("sim/manual", tests, NULL, NULL);
}
