/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sched_setaffinity(2): which masks are cut, which are refused, who inherits them, and when a thread is where
 * it should be. Relied on by act/masks/ops-affinity.c, act/masks/passage.c, act/undo/restore.c and
 * probe/tasks/masks.c. */

#include "support.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PF_KTHREAD        0x00200000U
#define PF_NO_SETAFFINITY 0x04000000U

static uint64_t all; /* CPUs that this test was started with */

static int setup(void **state)
{
    all = mask_get(0);
    return 0;
}

static void need_two(void)
{
    if (bit_count(all) < 2)
        contract_skip("only one CPU");
}

/* CPUs that do not exist are cut away, so all ones mean "no preference". A mask of which nothing is left is
 * refused and changes nothing. */
static void test_cut(void **state)
{
    pid_t pid = child_sleep(BIT(bit_first(all)));

    assert_int_equal(mask_set(pid, 0), -EINVAL);
    assert_int_equal(mask_get(pid), BIT(bit_first(all)));
    if (!(all & BIT(63))) {
        assert_int_equal(mask_set(pid, BIT(63)), -EINVAL);
        assert_int_equal(mask_get(pid), BIT(bit_first(all)));
    }
    assert_int_equal(mask_set(pid, ~UINT64_C(0)), 0);
    assert_int_equal(mask_get(pid), all);
}

/* The raw system call returns the number of bytes it filled, in whole words. */
static void test_raw_length(void **state)
{
    uint64_t words[128];
    long n = syscall(SYS_sched_getaffinity, 0, sizeof(words), words);

    assert_true(n >= 8 && n % 8 == 0);
    assert_int_equal(syscall(SYS_sched_getaffinity, 0, (size_t)4, words), -1);
    assert_int_equal(errno, EINVAL);
}

static void test_gone(void **state)
{
    pid_t pid = child_sleep(all);

    child_end(pid);
    assert_int_equal(mask_set(pid, all), -ESRCH);
}

static void test_status_says_the_same(void **state)
{
    pid_t pid = child_sleep(BIT(bit_last(all)));
    const char *text = file_read("/proc/%d/status", pid), *list;

    assert_non_null(text);
    list = strstr(text, "\nCpus_allowed_list:\t");
    assert_non_null(list);
    assert_int_equal(list_parse(list + strlen("\nCpus_allowed_list:\t")), BIT(bit_last(all)));
}

/*
 * Inheritance
 */

typedef struct Family {
    uint64_t forked, thread, executed;
    uint64_t mask;
} Family;

static void *thread_main(void *userdata)
{
    ((Family *)userdata)->thread = mask_get(0);
    return NULL;
}

/* A thread other than the first of its process sets a mask for itself and passes it on. */
static void *creator_main(void *userdata)
{
    Family *family = userdata;
    pthread_t thread;
    pid_t pid;

    if (mask_set(0, family->mask) < 0 || pthread_create(&thread, NULL, thread_main, family) != 0)
        _exit(1);
    (void)pthread_join(thread, NULL);
    pid = fork();
    if (pid == 0) {
        family->forked = mask_get(0);
        _exit(0);
    }
    (void)waitpid(pid, NULL, 0);
    return NULL;
}

static void family_main(void *userdata)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, creator_main, userdata) != 0)
        _exit(1);
    (void)pthread_join(thread, NULL);
}

/* Children and threads inherit the mask of the thread that creates them, not of the first one of its process. */
static void test_inheritance(void **state)
{
    Family *family = shared_alloc(sizeof(*family));
    int status;
    pid_t pid;

    family->mask = BIT(bit_last(all));
    pid = child_start(family_main, family);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(family->thread, family->mask);
    assert_int_equal(family->forked, family->mask);
}

static void exec_main(void *userdata)
{
    (void)execl("/bin/sleep", "sleep", "1000", NULL);
    _exit(1);
}

static bool is_sleep(void *userdata)
{
    const char *text = file_read("/proc/%d/comm", *(pid_t *)userdata);

    return text && strcmp(text, "sleep\n") == 0;
}

static void test_exec_keeps(void **state)
{
    uint64_t before = mask_get(0);
    pid_t pid;

    assert_int_equal(mask_set(0, BIT(bit_last(all))), 0);
    pid = child_start(exec_main, NULL);
    assert_int_equal(mask_set(0, before), 0);
    assert_true(eventually(is_sleep, &pid));
    assert_int_equal(mask_get(pid), BIT(bit_last(all)));
}

/* Forks during a change */

#define ROUNDS    100U
#define RING      4096U
#define FORKS_SEE 3U

typedef struct Forks {
    volatile uint64_t begun; /* counted before each fork */
    volatile uint64_t masks[RING];
} Forks;

static void forks_main(void *userdata)
{
    Forks *forks = userdata;

    for (;;) {
        uint64_t i = ++forks->begun;
        pid_t pid = fork();

        if (pid == 0) {
            forks->masks[i % RING] = mask_get(0);
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
}

typedef struct Goal {
    Forks *forks;
    uint64_t begun;
} Goal;

static bool has_begun(void *userdata)
{
    Goal *goal = userdata;

    return goal->forks->begun >= goal->begun;
}

/* A fork in progress when the call returns may still give its child the old mask. A fork that begins later
 * never does. No child gets a third mask. */
static void test_fork_meanwhile(void **state)
{
    Forks *forks = shared_alloc(sizeof(*forks));
    uint64_t a = BIT(bit_first(all)), b = BIT(bit_last(all)), from = 0;
    unsigned n_late = 0, n_forks = 0;
    pid_t pid;

    need_two();
    pid = child_start(forks_main, forks);
    assert_int_equal(mask_set(pid, b), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t mask = round % 2 ? b : a, other = round % 2 ? a : b;
        Goal goal = {.forks = forks};

        assert_int_equal(mask_set(pid, mask), 0);
        from = forks->begun;
        goal.begun = from + 1 + FORKS_SEE; /* by then all forks before the last one have ended */
        assert_true(eventually(has_begun, &goal));

        if (from > 0 && round > 0) {
            assert_true(forks->masks[from % RING] == mask || forks->masks[from % RING] == other);
            n_late += forks->masks[from % RING] == other;
        }
        for (uint64_t i = from + 1; i < from + 1 + FORKS_SEE; i++, n_forks++)
            assert_int_equal(forks->masks[i % RING], mask);
    }
    contract_note("%u of %u forks begun before the change gave the old mask; none of %u begun after it",
                  n_late, ROUNDS, n_forks);
}

/*
 * Where a thread is when the call returns
 */

static void assert_on(pid_t pid, unsigned cpu)
{
    TaskStat stat;

    assert_true(task_stat(pid, &stat));
    assert_int_equal(stat.processor, cpu);
}

/* A running thread is moved before the call returns, and so is one that waits for its CPU. */
static void test_moves_at_once(void **state)
{
    unsigned here = bit_first(all), there = bit_last(all);
    pid_t pids[2];

    need_two();
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 2; i++)
            pids[i] = child_spin(BIT(here)); /* one runs, the other waits */
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(mask_set(pids[i], BIT(there)), 0);
            assert_on(pids[i], there);
        }
        children_end();
    }
}

/* A sleeping thread is not moved then but when it wakes, and not at all if its mask is wide again by then. */
static void test_sleeper_stays(void **state)
{
    TaskStat before;
    unsigned other;
    pid_t pid;

    need_two();
    pid = child_sleep(all);
    assert_true(task_stat(pid, &before));
    other = bit_first(all & ~BIT(before.processor));
    assert_int_equal(mask_set(pid, BIT(other)), 0);
    assert_on(pid, before.processor);
    assert_int_equal(mask_set(pid, all), 0);
    assert_on(pid, before.processor);
}

/*
 * The kernel's own threads
 */

/* Kernel threads that the kernel has bound say so in their flags, and refuse even the mask they have. */
static void test_bound_kernel_threads(void **state)
{
    unsigned n = 0;

    for (pid_t pid = 2; pid < 2000; pid++) {
        TaskStat stat;

        if (!task_stat(pid, &stat) || !(stat.flags & PF_KTHREAD) || !(stat.flags & PF_NO_SETAFFINITY))
            continue;
        assert_int_equal(mask_set(pid, mask_get(pid)), -EINVAL);
        n++;
    }
    assert_true(n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_cut, children_teardown),
        cmocka_unit_test(test_raw_length),
        cmocka_unit_test_teardown(test_gone, children_teardown),
        cmocka_unit_test_teardown(test_status_says_the_same, children_teardown),
        cmocka_unit_test_teardown(test_inheritance, children_teardown),
        cmocka_unit_test_teardown(test_exec_keeps, children_teardown),
        cmocka_unit_test_teardown(test_fork_meanwhile, children_teardown),
        cmocka_unit_test_teardown(test_moves_at_once, children_teardown),
        cmocka_unit_test_teardown(test_sleeper_stays, children_teardown),
        cmocka_unit_test(test_bound_kernel_threads),
    };

    return cmocka_run_group_tests_name("contract-affinity", tests, setup, NULL);
}
