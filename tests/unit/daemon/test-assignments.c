/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes have a policy assigned by name, and which descend from such a process. */

#include "daemon/tables/assignments.h"
#include "unit-test.h"

static Assignment process(pid_t pid, uint64_t start_ticks)
{
    return (Assignment){.pid = pid, .start_ticks = start_ticks, .group = pid, .session = pid};
}

static void assign(Assignments *assignments, pid_t pid, uint64_t start_ticks, const char *policy)
{
    Assignment value = process(pid, start_ticks);
    char stripe[] = "0-1";

    (void)strcpy(value.policy, policy);
    value.stripe = stripe;
    assert_int_equal(assignments_set(assignments, &value), 0);
}

static void test_members(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();

    assert_non_null(a);
    assert_false(assignments_changed(a));
    assign(a, 100, 5, "jvm");
    assert_true(assignments_changed(a));
    assert_false(assignments_changed(a));
    assert_string_equal(assignments_find(a, 100, 5)->policy, "jvm");
    assert_string_equal(assignments_find(a, 100, 5)->stripe, "0-1");
    assert_null(assignments_find(a, 100, 6)); /* the PID was reused */
    assert_null(assignments_find(a, 101, 5));
    assign(a, 100, 5, "db");
    assert_string_equal(assignments_find(a, 100, 5)->policy, "db");
    assert_int_equal(assignments_count(a), 1);
}

static void test_a_reused_number_inherits_nothing(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();
    Assignment who = process(100, 9);

    assign(a, 100, 5, "jvm");
    assert_null(assignments_inherit(a, &who, 1));
    assert_int_equal(assignments_count(a), 0);
}

static void test_children(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();
    Assignment child = {.pid = 101, .start_ticks = 6, .group = 7, .session = 7};
    Assignment orphan = {.pid = 102, .start_ticks = 7, .group = 100, .session = 7};
    Assignment daemon = {.pid = 103, .start_ticks = 7, .group = 103, .session = 100};
    Assignment other = {.pid = 104, .start_ticks = 7, .group = 7, .session = 7};
    Assignment older = {.pid = 90, .start_ticks = 4, .group = 7, .session = 7};

    assign(a, 100, 5, "jvm");
    assert_string_equal(assignments_inherit(a, &child, 100)->policy, "jvm");
    assert_string_equal(assignments_find(a, 101, 6)->stripe, "0-1");
    assert_non_null(assignments_inherit(a, &orphan, 1));
    assert_non_null(assignments_inherit(a, &daemon, 1));
    assert_null(assignments_inherit(a, &other, 1));
    assert_null(assignments_inherit(a, &older, 100)); /* its parent's PID belonged to another process then */
    assert_int_equal(assignments_count(a), 4);
}

static bool lives(void *userdata, const Assignment *assignment)
{
    const pid_t *dead = userdata;

    return assignment->pid != *dead;
}

/* A leader that has ended is remembered for the processes it left behind. */
static void test_sweep(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();
    Assignment orphan = {.pid = 102, .start_ticks = 7, .group = 100, .session = 7};
    Assignment late = {.pid = 105, .start_ticks = 8, .group = 100, .session = 7};
    pid_t dead = 100;

    assign(a, 100, 5, "jvm");
    assert_non_null(assignments_inherit(a, &orphan, 100));
    assignments_sweep(a, lives, &dead);
    assert_int_equal(assignments_count(a), 2);
    assert_non_null(assignments_inherit(a, &late, 1));
    dead = 105;
    assignments_sweep(a, lives, &dead);
    assert_int_equal(assignments_count(a), 2);

    late.group = orphan.group = 7; /* no process of the group is left */
    assert_non_null(assignments_inherit(a, &orphan, 1));
    dead = 100;
    assignments_sweep(a, lives, &dead);
    assert_int_equal(assignments_count(a), 1);
    assert_non_null(assignments_find(a, 102, 7));
}

static void test_limit(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();
    Assignment child = {.pid = 2 * ASSIGNMENTS_MAX, .start_ticks = 6};

    for (uint32_t i = 1; i <= ASSIGNMENTS_MAX; i++)
        assign(a, (pid_t)i, 5, "jvm");
    assert_null(assignments_inherit(a, &child, 1));
    assert_int_equal(assignments_set(a, &child), -ENOSPC);
    assert_int_equal(assignments_refused(a), 2);
    assert_int_equal(assignments_count(a), ASSIGNMENTS_MAX);
    assign(a, 1, 5, "db"); /* an existing assignment may be changed */
}

static void test_text(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new(), *b = assignments_new();
    CLEANUP_FREE char *text = NULL, *again = NULL;
    static const char bad[] = "process pid=7 start=1 policy=\"x\"\nprocess pid=-1 start=1 policy=\"x\"\n";

    assign(a, 100, 5, "jvm");
    assign(a, 200, 6, "50-db@x.y");
    text = assignments_format(a);
    assert_non_null(text);
    assert_int_equal(assignments_parse(b, text, strlen(text)), 0);
    again = assignments_format(b);
    assert_string_equal(text, again);
    assert_int_equal(assignments_parse(b, bad, strlen(bad)), -EINVAL);
    assert_non_null(assignments_find(b, 7, 1));
    assert_int_equal(assignments_count(b), 3);
    assert_int_equal(assignments_parse(b, "journal\n", 8), -EINVAL);
}

/* A damaged line costs only itself, and a torn one is not taken for a shorter name. */
static void test_damaged(void **state)
{
    CLEANUP(assignments_free_p) Assignments *a = assignments_new();
    static const char text[] = "process pid=1 start=1 policy=\"a\"\n"
                               "process pid=2 start=1\n"
                               "\x01\n"
                               "process pid=3 start=1 policy=\"a\"\n"
                               "process pid=4 start=1 policy=\"a\"";

    assert_int_equal(assignments_parse(a, text, sizeof(text) - 1), -EINVAL);
    assert_true(assignments_find(a, 1, 1) && assignments_find(a, 3, 1));
    assert_int_equal(assignments_count(a), 2);
}

TEST_MAIN(NULL, NULL, test_members, test_a_reused_number_inherits_nothing, test_children, test_sweep,
          test_limit, test_text, test_damaged)
