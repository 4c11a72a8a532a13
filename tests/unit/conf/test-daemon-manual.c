/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplaced.conf(5) and the sample file agree with the daemon's table of keys, and the sample is a valid file. */

#include "daemon/config.h"
#include "manual-test.h"

static const char *arg_source = ".";

static void test_manual(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "man/numaplaced.conf.5");

    manual_check(config_keys, config_n_keys, text);
}

static void test_sample(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "policies/numaplaced.conf");

    sample_check(config_keys, config_n_keys, text);
}

/* The sample parses without a message, as it is and with the mark removed from all keys. */
static void test_sample_parses(void **state)
{
    CLEANUP_FREE char *text = manual_read(arg_source, "policies/numaplaced.conf");
    CLEANUP(config_free_p) Config *config = NULL;
    ConfReport report = {0};

    assert_int_equal(config_new(&config), 0);
    assert_int_equal(config_parse(config, text, strlen(text), "sample", &report), 0);
    for (char *s = text; (s = strstr(s, "\n#")); s++)
        if (s[2] != ' ' && s[2] != '\n')
            s[1] = ' ';
    assert_int_equal(config_parse(config, text, strlen(text), "sample", &report), 0);
    assert_report(&report, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_sample_parses),
    };

    if (argc > 1)
        arg_source = argv[1];
    return cmocka_run_group_tests_name("conf/daemon-manual", tests, NULL, NULL);
}
