/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the tests of configuration files share: reports as text, and trees of files. */

#include "../temp-tree.h"
#include "conf/ini.h"

/* All messages, "error FILE:LINE: TEXT\n" each; empties the report. The caller frees. */
static inline char *report_text(ConfReport *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    for (size_t i = 0; i < report->n_messages; i++) {
        CLEANUP_FREE char *line = conf_message_format(&report->messages[i]);

        assert_non_null(line);
        (void)fprintf(f, "%s %s\n", report->messages[i].severity == CONF_SEVERITY_ERROR ? "error" : "warning",
                      line);
    }
    assert_int_equal(fclose(f), 0);
    conf_report_done(report);
    return text;
}

static inline void assert_report(ConfReport *report, const char *expected)
{
    CLEANUP_FREE char *text = report_text(report);

    assert_string_equal(text, expected);
}

/* Directories of a search, the first one first. */
typedef struct ConfTree {
    char *root;
    char *etc, *run, *usr;
    const char *directories[4];
} ConfTree;

static inline int conf_tree_setup(void **state)
{
    ConfTree *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    t->root = test_tree_new();
    t->etc = strdup(test_mkdir(t->root, "etc"));
    t->run = strdup(test_path(t->root, "run")); /* missing until a test makes it */
    t->usr = strdup(test_mkdir(t->root, "usr"));
    assert_true(t->etc && t->run && t->usr);
    t->directories[0] = t->etc;
    t->directories[1] = t->run;
    t->directories[2] = t->usr;
    *state = t;
    return 0;
}

static inline int conf_tree_teardown(void **state)
{
    CLEANUP_FREE ConfTree *t = *state;

    test_tree_remove(t->root);
    free(t->etc);
    free(t->run);
    free(t->usr);
    return 0;
}
