/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which reason is given for a process whose threads have different ones. */

#include "../plan/fixture.h"
#include "daemon/views/describe.h"

#define PID 100

static void check(const TaskHands *hands, size_t n, TaskHands expected)
{
    CLEANUP(fixture_done) Fixture f;

    fixture_init(&f, TWO_SHARDS);
    fixture_policy(&f, "a", "[Placement]\nMode=auto\n");
    fixture_process(&f, PID, "a", NULL);
    for (size_t i = 0; i < n; i++)
        fixture_task(&f, PID, PID + (pid_t)i, 0)->hands = (uint8_t)hands[i];
    assert_int_equal(describe_hands(f.world, world_process(f.world, PID)), expected);
}

static void test_hands(void **state)
{
    static const TaskHands one_is_new[] = {TASK_HANDS_FOREIGN, TASK_HANDS_FOREIGN, TASK_HANDS_UNKNOWN};
    static const TaskHands most[] = {TASK_HANDS_PER_CPU, TASK_HANDS_CLASS, TASK_HANDS_CLASS,
                                     TASK_HANDS_PER_CPU, TASK_HANDS_CLASS, TASK_HANDS_DENIED};
    static const TaskHands tie[] = {TASK_HANDS_DENIED, TASK_HANDS_FOREIGN};
    static const TaskHands free_one[] = {TASK_HANDS_FOREIGN, TASK_HANDS_FOREIGN, TASK_HANDS_FREE};

    check(one_is_new, ARRAY_SIZE(one_is_new), TASK_HANDS_FOREIGN);
    check(most, ARRAY_SIZE(most), TASK_HANDS_CLASS);
    check(tie, ARRAY_SIZE(tie), TASK_HANDS_FOREIGN);
    check(free_one, ARRAY_SIZE(free_one), TASK_HANDS_FREE);
    check(NULL, 0, TASK_HANDS_FREE);
}

TEST_MAIN(NULL, NULL, test_hands)
