/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The search order over real directories below TMPDIR. */

#include "conf-test.h"
#include "conf/search.h"

/* Paths are printed relative to the root, so that expectations are the same for every TMPDIR. */
static const char *relative(const ConfTree *t, const char *path)
{
    size_t n = strlen(t->root);

    return path && strncmp(path, t->root, n) == 0 ? path + n + 1 : path;
}

static void print_file(FILE *f, const ConfTree *t, const ConfFile *file)
{
    (void)fprintf(f, "%s %s", file->name, file->path ? relative(t, file->path) : "-");
    for (size_t i = 0; i < file->n_dropins; i++)
        (void)fprintf(f, " +%s", relative(t, file->dropins[i]));
    (void)fputc('\n', f);
}

/* `expected_report` has "/" for the root. */
static void assert_tree_report(const ConfTree *t, ConfReport *report, const char *expected)
{
    CLEANUP_FREE char *text = report_text(report), *cut = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&cut, &size);
    const char *s = text, *hit;

    assert_non_null(f);
    while ((hit = strstr(s, t->root))) {
        (void)fwrite(s, 1, (size_t)(hit - s), f);
        s = hit + strlen(t->root);
    }
    (void)fputs(s, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(cut, expected);
}

static void search(const ConfTree *t, int expected_r, const char *expected, const char *expected_report)
{
    CLEANUP_FREE char *text = NULL;
    ConfReport report = {0};
    CLEANUP(conf_files_done) ConfFiles files = {0};
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    assert_int_equal(conf_search(t->directories, ".policy", &files, &report), expected_r);
    for (size_t i = 0; i < files.n_files; i++)
        print_file(f, t, &files.files[i]);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
    assert_tree_report(t, &report, expected_report);
}

static void search_one(const ConfTree *t, int expected_r, const char *expected, const char *expected_report)
{
    CLEANUP_FREE char *text = NULL;
    ConfReport report = {0};
    ConfFile file = {0};
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    assert_int_equal(conf_search_one(t->directories, "x.conf", &file, &report), expected_r);
    if (file.name)
        print_file(f, t, &file);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
    assert_tree_report(t, &report, expected_report);
    conf_file_done(&file);
}

static void test_nothing(void **state)
{
    const char *none[] = {NULL};
    ConfReport report = {0};
    CLEANUP(conf_files_done) ConfFiles files = {0};

    search(*state, 0, "", "");
    assert_int_equal(conf_search(none, ".policy", &files, &report), 0);
    assert_int_equal(files.n_files, 0);
}

static void test_nowhere(void **state)
{
    ConfTree *t = *state;

    t->directories[0] = test_path(t->root, "ect");
    t->directories[1] = t->run;
    t->directories[2] = NULL;
    search(t, 0, "",
           "warning /ect: there is no such directory, so no files are read from it\n"
           "warning /run: there is no such directory, so no files are read from it\n");
    (void)test_mkdir(t->root, "run");
    search(t, 0, "", "");
}

static void test_order(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "50-b.policy", "");
    (void)test_write(t->usr, "90-z.policy", "");
    (void)test_write(t->run, "50-b.policy", "");
    (void)test_write(t->run, "10-a.policy", "");
    (void)test_write(t->etc, "60-c.policy", "");
    (void)test_write(t->etc, "90-z.policy", "");
    /* None of these is a policy. */
    (void)test_write(t->etc, "20-x.policy~", "");
    (void)test_write(t->etc, ".20-x.policy", "");
    (void)test_write(t->etc, ".policy", "");
    (void)test_write(t->etc, "README", "");
    search(t, 0,
           "10-a.policy run/10-a.policy\n"
           "50-b.policy run/50-b.policy\n"
           "60-c.policy etc/60-c.policy\n"
           "90-z.policy etc/90-z.policy\n",
           "");
}

static void test_masks(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "10-a.policy", "");
    (void)test_write(t->usr, "20-b.policy", "");
    (void)test_write(t->usr, "30-c.policy", "");
    assert_int_equal(symlink("/dev/null", test_path(t->etc, "10-a.policy")), 0);
    /* A chain of links to /dev/null masks as well; an empty file does not. */
    assert_int_equal(symlink("10-a.policy", test_path(t->etc, "20-b.policy")), 0);
    (void)test_write(t->etc, "30-c.policy", "");
    /* In a directory of lower precedence than the file to be masked: no effect. */
    (void)test_write(t->etc, "40-d.policy", "");
    assert_int_equal(symlink("/dev/null", test_path(t->usr, "40-d.policy")), 0);
    /* The drop-ins of a masked file are ignored with it, without a message. */
    (void)test_write(t->etc, "10-a.policy.d/x.conf", "");
    search(t, 0, "30-c.policy etc/30-c.policy\n40-d.policy etc/40-d.policy\n", "");
}

static void test_dropins(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "10-a.policy", "");
    (void)test_write(t->usr, "10-a.policy.d/30.conf", "");
    (void)test_write(t->usr, "10-a.policy.d/20.conf", "");
    (void)test_write(t->usr, "10-a.policy.d/15.conf", "");
    (void)test_write(t->run, "10-a.policy.d/20.conf", "");
    (void)test_write(t->run, "10-a.policy.d/README", "");
    (void)test_write(t->etc, "10-a.policy.d/25.conf", "");
    assert_int_equal(symlink("/dev/null", test_path(t->etc, "10-a.policy.d/15.conf")), 0);
    search(t, 0,
           "10-a.policy usr/10-a.policy +run/10-a.policy.d/20.conf +etc/10-a.policy.d/25.conf "
           "+usr/10-a.policy.d/30.conf\n",
           "");
}

static void test_orphans(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->etc, "10-a.policy.d/x.conf", "");
    search(t, 0, "",
           "warning /etc/10-a.policy.d: ignoring drop-ins of a file that does not exist: 10-a.policy\n");
}

static void test_broken(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->usr, "10-a.policy", "");
    (void)test_write(t->usr, "20-b.policy", "");
    (void)test_mkdir(t->usr, "20-b.policy.d");
    assert_int_equal(symlink("nowhere", test_path(t->etc, "10-a.policy")), 0);
    assert_int_equal(symlink("x.conf", test_path(t->usr, "20-b.policy.d/x.conf")), 0);
    search(t, -EBADMSG, "20-b.policy usr/20-b.policy\n",
           "error /etc/10-a.policy: cannot be read: No such file or directory\n"
           "error /usr/20-b.policy.d/x.conf: cannot be read: Too many levels of symbolic links\n");
}

/* Hidden files are not read: a broken file of the distribution can be replaced. */
static void test_hidden_broken(void **state)
{
    ConfTree *t = *state;

    assert_int_equal(symlink("nowhere", test_path(t->usr, "10-a.policy")), 0);
    (void)test_write(t->etc, "10-a.policy", "");
    search(t, 0, "10-a.policy etc/10-a.policy\n", "");
}

static void test_not_a_directory(void **state)
{
    ConfTree *t = *state;

    (void)test_write(t->root, "run", "");
    search(t, -EBADMSG, "", "error /run: cannot be read: Not a directory\n");
}

static void test_circular_directory(void **state)
{
    ConfTree *t = *state;

    assert_int_equal(symlink("run", t->run), 0);
    search(t, -EBADMSG, "", "error /run: cannot be read: Too many levels of symbolic links\n");
}

static void test_too_many(void **state)
{
    ConfTree *t = *state;
    char name[32];

    for (unsigned i = 0; i <= CONF_FILES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%05u.policy", i);
        assert_int_equal(symlink("/dev/null", test_path(t->usr, name)), 0);
    }
    search(t, -EBADMSG, "", "error /usr: holds more than 4096 files named *.policy\n");
    assert_int_equal(unlink(test_path(t->usr, "00000.policy")), 0);
    search(t, 0, "", "");
}

static void test_odd_names(void **state)
{
    ConfTree *t = *state;

    assert_int_equal(symlink("nowhere", test_path(t->etc, "a\nb\x1b.policy")), 0);
    search(t, -EBADMSG, "", "error /etc/a\\x0ab\\x1b.policy: cannot be read: No such file or directory\n");
}

static void test_one(void **state)
{
    ConfTree *t = *state;

    search_one(t, 0, "x.conf -\n", "");
    (void)test_write(t->usr, "x.conf.d/a.conf", "");
    search_one(t, 0, "x.conf - +usr/x.conf.d/a.conf\n", "");
    (void)test_write(t->usr, "x.conf", "");
    search_one(t, 0, "x.conf usr/x.conf +usr/x.conf.d/a.conf\n", "");
    (void)test_write(t->etc, "x.conf", "");
    search_one(t, 0, "x.conf etc/x.conf +usr/x.conf.d/a.conf\n", "");
    assert_int_equal(unlink(test_path(t->etc, "x.conf")), 0);
    assert_int_equal(symlink("/dev/null", test_path(t->etc, "x.conf")), 0);
    search_one(t, 0, "x.conf - +usr/x.conf.d/a.conf\n", "");
    assert_int_equal(unlink(test_path(t->etc, "x.conf")), 0);
    assert_int_equal(symlink("x.conf", test_path(t->etc, "x.conf")), 0);
    search_one(t, -EBADMSG, "", "error /etc/x.conf: cannot be read: Too many levels of symbolic links\n");
}

TEST_MAIN(conf_tree_setup, conf_tree_teardown, test_nothing, test_nowhere, test_order, test_masks,
          test_dropins, test_orphans, test_broken, test_hidden_broken, test_not_a_directory,
          test_circular_directory, test_too_many, test_odd_names, test_one)
