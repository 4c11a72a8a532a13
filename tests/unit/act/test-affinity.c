/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The real system calls, on threads and children of this test only, and within the CPUs it was started with.
 * Also asserts what the machine in memory of the other tests assumes about the kernel. */

#include "act/act.h"
#include "base/parse.h"
#include "base/root.h"
#include "kernel/procstat.h"

#include "../lone-thread.h"
#include "../temp-tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHILDREN_MAX 64U

typedef struct Live {
    char *directory;
    char journal[PATH_MAX];
    int root_fd;
    Act *act;
    World world;
    hwloc_bitmap_t before; /* the mask of this test at its start */
    hwloc_bitmap_t home, lent, have;
    int cpu; /* the CPU that `lent` has in addition to `home` */
    int gate[2];
    pid_t children[CHILDREN_MAX];
    size_t n_children;
} Live;

static TaskKey key_of(const Live *live, pid_t pid)
{
    ActProcess process;
    int fd = live->root_fd;

    assert_int_equal(act_ops_affinity.read_process(&fd, pid, &process), 0);
    return (TaskKey){.pid = pid, .tid = pid, .start_ticks = process.start_ticks};
}

static void get_mask(Live *live, pid_t pid, hwloc_bitmap_t ret)
{
    assert_int_equal(act_ops_affinity.get_mask(&live->root_fd, key_of(live, pid), ret), 0);
}

static void assert_has(Live *live, pid_t pid, hwloc_const_bitmap_t mask)
{
    get_mask(live, pid, live->have);
    assert_true(hwloc_bitmap_isequal(live->have, mask));
}

static int start(Live *live)
{
    char *error = NULL;

    return act_new(&act_ops_affinity, NULL, live->root_fd, live->journal, &live->act, &error);
}

static int setup(void **state)
{
    Live *live = calloc(1, sizeof(*live));

    if (!live)
        return -1;
    live->directory = test_tree_new();
    if (pipe2(live->gate, O_CLOEXEC) < 0)
        return -1;
    (void)snprintf(live->journal, sizeof(live->journal), "%s/journal", live->directory);
    live->root_fd = root_open("/");
    live->before = hwloc_bitmap_alloc();
    live->home = hwloc_bitmap_alloc();
    live->lent = hwloc_bitmap_alloc();
    live->have = hwloc_bitmap_alloc();
    if (live->root_fd < 0 || start(live) != 0)
        return -1;
    get_mask(live, getpid(), live->before);

    /* The home is the first CPU; the last one is lent. */
    live->cpu = hwloc_bitmap_last(live->before);
    if (hwloc_bitmap_only(live->home, (unsigned)hwloc_bitmap_first(live->before)) < 0 ||
        hwloc_bitmap_copy(live->lent, live->home) < 0 ||
        hwloc_bitmap_set(live->lent, (unsigned)live->cpu) < 0)
        return -1;
    *state = live;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Live *live = *state;

    for (size_t i = 0; i < live->n_children; i++) {
        (void)kill(live->children[i], SIGKILL);
        (void)waitpid(live->children[i], NULL, 0);
    }
    act_free(live->act);
    hwloc_bitmap_free(live->before);
    hwloc_bitmap_free(live->home);
    hwloc_bitmap_free(live->lent);
    hwloc_bitmap_free(live->have);
    (void)close(live->root_fd);
    (void)close(live->gate[0]);
    (void)close(live->gate[1]);
    test_tree_remove(live->directory);
    return 0;
}

static void need_two_cpus(const Live *live)
{
    if (hwloc_bitmap_weight(live->before) < 2)
        skip();
}

static void *wait_for_end(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

/* Forks and reaps until it is killed. */
static void fork_for_ever(void)
{
    for (;;) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        if (pid > 0)
            (void)waitpid(pid, NULL, 0);
    }
}

/* Waits until it is confined, then forks. */
static void bear_when_confined(const Live *live)
{
    cpu_set_t set;

    while (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
        (void)sched_yield();
    if (fork() == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (write(live->gate[1], "", 1) != 1)
        _exit(1);
}

typedef enum ChildKind {
    CHILD_WAITS,
    CHILD_HAS_THREADS,
    CHILD_FORKS,
    CHILD_BEARS,
} ChildKind;

static pid_t make_child(Live *live, ChildKind kind)
{
    pid_t pid = fork();
    pthread_t thread;
    char c = 0;

    assert_true(pid >= 0);
    if (pid > 0) {
        live->children[live->n_children++] = pid;
        assert_int_equal(read(live->gate[0], &c, 1), 1); /* the child is ready */
        return pid;
    }

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid(); /* so that other processes of this session are not taken for its relatives */
    lone_thread();
    for (unsigned i = 0; kind == CHILD_HAS_THREADS && i < 3; i++)
        if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
            _exit(1);
    if (write(live->gate[1], &c, 1) != 1)
        _exit(1);
    if (kind == CHILD_FORKS)
        fork_for_ever();
    if (kind == CHILD_BEARS)
        bear_when_confined(live);
    (void)wait_for_end(NULL);
    _exit(0);
}

static PlanOutcome act_on(Live *live, PlanKind kind, TaskKey subject, hwloc_const_bitmap_t from,
                          hwloc_const_bitmap_t to)
{
    PlanAction action = {.kind = kind, .subject = subject, .from = from, .to = to, .cpu = {live->cpu}};
    Plan plan = {.actions = &action, .n_actions = 1};
    PlanOutcome outcome = PLAN_OUTCOME_INVALID;

    assert_int_equal(act_execute(live->act, &live->world, &plan, &outcome), 0);
    return outcome;
}

static PlanOutcome set_home(Live *live, pid_t pid)
{
    TaskKey subject = key_of(live, pid);

    subject.tid = 0;
    return act_on(live, PLAN_KIND_SET_HOME, subject, live->before, live->home);
}

static void restart(Live *live)
{
    live->act = act_free(live->act);
    assert_int_equal(start(live), 0);
}

static void restore(Live *live)
{
    assert_int_equal(act_restore(live->act, NULL, NULL, NULL), 0);
}

static void assert_threads_have(Live *live, pid_t pid, size_t n_threads, hwloc_const_bitmap_t mask)
{
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 0;

    assert_int_equal(
        act_ops_affinity.list_threads(&live->root_fd, pid, key_of(live, pid).start_ticks, &threads, &n), 0);
    assert_int_equal(n, n_threads);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(act_ops_affinity.get_mask(&live->root_fd, threads[i], live->have), 0);
        assert_true(hwloc_bitmap_isequal(live->have, mask));
    }
}

static void test_home_lend_recall_release(void **state)
{
    Live *live = *state;
    TaskKey child;
    pid_t pid;

    need_two_cpus(live);
    pid = make_child(live, CHILD_HAS_THREADS);
    child = key_of(live, pid);
    assert_int_equal(set_home(live, pid), PLAN_OUTCOME_DONE);
    assert_threads_have(live, pid, 4, live->home);
    assert_int_equal(act_on(live, PLAN_KIND_LEND, child, live->home, live->lent), PLAN_OUTCOME_DONE);
    assert_has(live, pid, live->lent);
    assert_int_equal(act_on(live, PLAN_KIND_RECALL, child, live->lent, live->home), PLAN_OUTCOME_DONE);
    assert_threads_have(live, pid, 4, live->home);
    assert_int_equal(act_on(live, PLAN_KIND_LEND, child, live->home, live->lent), PLAN_OUTCOME_DONE);
    child.tid = 0;
    assert_int_equal(act_on(live, PLAN_KIND_RELEASE, child, NULL, NULL), PLAN_OUTCOME_DONE);
    assert_threads_have(live, pid, 4, live->before);
    assert_true(act_cost_usec(live->act) > 0);
}

static void test_crash(void **state)
{
    Live *live = *state;
    pid_t pid;

    need_two_cpus(live);
    pid = make_child(live, CHILD_HAS_THREADS);
    assert_int_equal(set_home(live, pid), PLAN_OUTCOME_DONE);
    assert_int_equal(act_on(live, PLAN_KIND_LEND, key_of(live, pid), live->home, live->lent),
                     PLAN_OUTCOME_DONE);
    restart(live);
    restore(live);
    assert_threads_have(live, pid, 4, live->before);
}

static void test_foreign(void **state)
{
    Live *live = *state;
    CLEANUP_BITMAP hwloc_bitmap_t chosen = hwloc_bitmap_alloc();
    pid_t before, meanwhile;

    need_two_cpus(live);
    assert_int_equal(hwloc_bitmap_only(chosen, (unsigned)live->cpu), 0);
    before = make_child(live, CHILD_WAITS);
    meanwhile = make_child(live, CHILD_WAITS);

    /* As taskset(1) does. */
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, before), NULL, chosen), 0);
    assert_int_equal(set_home(live, before), PLAN_OUTCOME_FOREIGN);
    assert_int_equal(set_home(live, meanwhile), PLAN_OUTCOME_DONE);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, meanwhile), NULL, chosen), 0);
    assert_int_equal(act_on(live, PLAN_KIND_LEND, key_of(live, meanwhile), live->home, live->lent),
                     PLAN_OUTCOME_FOREIGN);
    restore(live);
    assert_has(live, before, chosen);
    assert_has(live, meanwhile, chosen);
}

/* Fifty processes that fork and reap as fast as they can. */
static void test_forkers(void **state)
{
    Live *live = *state;

    need_two_cpus(live);
    for (unsigned i = 0; i < 50; i++)
        (void)make_child(live, CHILD_FORKS);
    for (size_t i = 0; i < live->n_children; i++)
        assert_int_equal(set_home(live, live->children[i]), PLAN_OUTCOME_DONE);
    for (size_t i = 0; i < live->n_children; i++)
        assert_int_equal(
            act_on(live, PLAN_KIND_LEND, key_of(live, live->children[i]), live->home, live->lent),
            PLAN_OUTCOME_DONE);
    restart(live);
    restore(live);
    for (size_t i = 0; i < live->n_children; i++)
        assert_has(live, live->children[i], live->before);
}

/* No descendant of this test keeps a mask of ours. */
static void test_grandchildren(void **state)
{
    Live *live = *state;
    CLEANUP_FREE ActProcess *processes = NULL;
    size_t n = 0, found = 0;
    char c = 0;
    pid_t pid;

    need_two_cpus(live);
    pid = make_child(live, CHILD_BEARS);
    assert_int_equal(set_home(live, pid), PLAN_OUTCOME_DONE);
    assert_int_equal(read(live->gate[0], &c, 1), 1);
    assert_int_equal(read(live->gate[0], &c, 1), 1);

    restore(live);
    assert_int_equal(act_ops_affinity.list_processes(&live->root_fd, &processes, &n), 0);
    for (size_t i = 0; i < n; i++)
        if (processes[i].parent == pid) {
            found++;
            assert_has(live, processes[i].pid, live->before);
            (void)kill(processes[i].pid, SIGKILL);
        }
    assert_int_equal(found, 1);
}

static void test_gone(void **state)
{
    Live *live = *state;
    pid_t pid = make_child(live, CHILD_WAITS);
    TaskKey child = key_of(live, pid), another = child;

    another.start_ticks++; /* as if the PID had been reused */
    assert_int_equal(act_ops_affinity.get_mask(&live->root_fd, another, live->have), ACT_E_GONE);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, another, NULL, live->home), ACT_E_GONE);
    assert_has(live, pid, live->before);
    another.tid = 0;
    assert_int_equal(act_on(live, PLAN_KIND_SET_HOME, another, live->before, live->home), PLAN_OUTCOME_GONE);

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    live->n_children--;
    assert_int_equal(act_ops_affinity.get_mask(&live->root_fd, child, live->have), ACT_E_GONE);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, child, NULL, live->home), ACT_E_GONE);
}

/* What the code assumes about the kernel. */
static void test_kernel(void **state)
{
    Live *live = *state;
    pid_t pid = make_child(live, CHILD_WAITS), number;
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    ActBirthMark before, after;

    /* A mask of no CPU, or of none that exists, is refused and changes nothing. */
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, pid), NULL, mask), ACT_E_REFUSED);
    assert_int_equal(hwloc_bitmap_only(mask, PARSE_CPU_MAX), 0);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, pid), NULL, mask), ACT_E_REFUSED);
    assert_has(live, pid, live->before);

    /* CPUs that do not exist are silently ignored, and a full mask gives at least what it had before. */
    assert_int_equal(hwloc_bitmap_set(mask, (unsigned)hwloc_bitmap_first(live->home)), 0);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, pid), NULL, mask), 0);
    assert_has(live, pid, live->home);
    hwloc_bitmap_fill(mask);
    assert_int_equal(act_ops_affinity.set_mask(&live->root_fd, key_of(live, pid), NULL, mask), 0);
    get_mask(live, pid, live->have);
    assert_true(hwloc_bitmap_isincluded(live->before, live->have));
    hwloc_bitmap_free(mask);

    /* The birth mark tells which PIDs were given out, and uses the clock of start times. */
    assert_int_equal(act_ops_affinity.birth_mark(&live->root_fd, &before), 0);
    number = make_child(live, CHILD_WAITS);
    assert_int_equal(act_ops_affinity.birth_mark(&live->root_fd, &after), 0);
    assert_in_range(key_of(live, number).start_ticks + 1, before.ticks, after.ticks + 1);
    if (after.last >= before.last) /* PIDs have not wrapped */
        assert_in_range(number, before.last + 1, after.last);
}

static void test_dry_run(void **state)
{
    Live *live = *state;
    pid_t pid = make_child(live, CHILD_WAITS);
    CLEANUP_FREE char *error = NULL;

    live->act = act_free(live->act);
    assert_int_equal(unlink(live->journal), 0);
    assert_int_equal(act_new(&act_ops_dry_run, NULL, live->root_fd, live->journal, &live->act, &error), 0);
    assert_int_equal(set_home(live, pid),
                     hwloc_bitmap_weight(live->before) > 1 ? PLAN_OUTCOME_SKIPPED : PLAN_OUTCOME_DONE);
    assert_has(live, pid, live->before);
    assert_int_equal(act_ops_dry_run.set_mask(&live->root_fd, key_of(live, pid), NULL, live->home),
                     ACT_E_REFUSED);
    assert_has(live, pid, live->before);
    assert_int_equal(access(live->journal, F_OK), -1);
}

static void test_measure(void **state)
{
    Live *live = *state;

    assert_int_equal(act_cost_usec(live->act), 0);
    assert_int_equal(act_measure(live->act), 0);
    assert_in_range(act_cost_usec(live->act), 1, 1000000);
    assert_has(live, getpid(), live->before);
}

static void put_file(const Live *live, const char *name, const char *text)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/100/task/100/%s", name);
    (void)test_write(live->directory, path, text);
}

static void put_stat(const Live *live, char state, unsigned flags, unsigned n_threads,
                     unsigned long rss_pages)
{
    char text[PROCSTAT_TEXT_SIZE];

    (void)snprintf(
        text, sizeof(text),
        "100 (a) %c 1 100 100 0 -1 %u 0 0 0 0 7 5 0 0 20 0 %u 0 77 4096000 %lu 0 0 0 0 0 0 0 0 0 0 "
        "0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        state, flags, n_threads, rss_pages);
    put_file(live, "stat", text);
}

static ActFork look(const Live *live, char state, unsigned flags, unsigned long rss_pages, const char *wchan)
{
    TaskKey task = {.pid = 100, .tid = 100, .start_ticks = 77};
    CLEANUP_CLOSE int root_fd = root_open(live->directory);
    ActFork fork = {0};

    put_stat(live, state, flags, 1, rss_pages);
    put_file(live, "wchan", wchan);
    assert_int_equal(act_ops_affinity.may_fork(&root_fd, task, &fork), 0);
    assert_int_equal(fork.ticks, 12);
    task.start_ticks++;
    assert_int_equal(act_ops_affinity.may_fork(&root_fd, task, &fork), ACT_E_GONE);
    return fork;
}

/* Tells threads that wait inside fork(2) from those that wait for something else, and how long one can take. */
static void test_may_fork(void **state)
{
    const Live *live = *state;
    uint64_t gib_pages = (1ULL << 30) / (uint64_t)sysconf(_SC_PAGESIZE);

    assert_int_equal(look(live, 'D', 0, 1, "dup_mmap").state, ACT_FORK_INSIDE);
    assert_int_equal(look(live, 'D', 0, 1, "anon_vma_clone.part.0").state, ACT_FORK_INSIDE);
    assert_int_equal(look(live, 'D', 0, 1, "rpc_wait_bit_killable").state, ACT_FORK_BLOCKED);
    assert_int_equal(look(live, 'D', 0, 1, "0").state, ACT_FORK_BLOCKED);
    assert_int_equal(look(live, 'D', PROCSTAT_FLAG_EXITING, 1, "dup_mmap").state, ACT_FORK_NO);
    assert_int_equal(look(live, 'S', 0, 1, "0").state, ACT_FORK_NO);
    assert_int_equal(look(live, 'R', 0, 1, "0").state, ACT_FORK_RUNNING);
    /* At least 10 ms for each 45 MB. */
    assert_in_range(look(live, 'R', 0, 1, "0").most_ticks, 1, 5);
    assert_in_range(look(live, 'R', 0, 10 * gib_pages, "0").most_ticks, 220, 1000);
    /* Of 16,384 pages each has a page table of its own: 183 ms (measured). */
    put_file(live, "status", "Name:\ta\nVmPTE:\t   65572 kB\nVmSwap:\t       0 kB\n");
    assert_in_range(look(live, 'R', 0, gib_pages / 16, "0").most_ticks, 19, 100);
    put_file(live, "status", "Name:\ta\nVmPTE:\t\n");
    assert_in_range(look(live, 'R', 0, 1, "0").most_ticks, 1, 5);
}

/* One thread of several may end while its process goes on. */
static void test_exiting(void **state)
{
    static const struct {
        char state;
        unsigned flags, n_threads;
        bool ended;
    } rows[] = {
        {'R', 0, 1, false},
        {'R', PROCSTAT_FLAG_EXITING, 1, true},
        {'D', PROCSTAT_FLAG_EXITING, 1, true},
        {'R', PROCSTAT_FLAG_EXITING, 2, false},
        {'Z', 0, 1, true},
        {'Z', 0, 2, false},
    };
    const Live *live = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_CLOSE int root_fd = root_open(live->directory);
        ActProcess process = {0};

        put_stat(live, rows[i].state, rows[i].flags, rows[i].n_threads, 1);
        assert_int_equal(act_ops_affinity.read_process(&root_fd, 100, &process), 0);
        assert_int_equal(process.ended, rows[i].ended);
    }
}

/* The kernel refuses to change the mask of some threads, such as workers of io_uring before Linux 6.3. */
static void test_kept_mask(void **state)
{
    CLEANUP_CLOSE int root_fd = root_open(((const Live *)*state)->directory);
    CLEANUP_FREE TaskKey *threads = NULL;
    size_t n = 1;

    put_stat(*state, 'S', PROCSTAT_FLAG_NO_SETAFFINITY, 1, 1);
    assert_int_equal(act_ops_affinity.list_threads(&root_fd, 100, 77, &threads, &n), 0);
    assert_int_equal(n, 0);
}

/* A walk with a deadline in the past visits no thread, and reports that rather than success. */
static bool count_wanted(void *userdata, hwloc_const_bitmap_t mask)
{
    ++*(size_t *)userdata;
    return false;
}

static void test_walk_ends(void **state)
{
    Live *live = *state;
    size_t n = 0;
    ActWalk walk = {.wants = count_wanted, .userdata = &n};

    assert_int_equal(act_ops_affinity.walk(&live->root_fd, &walk), 0);
    assert_true(n > 0);
    n = 0;
    walk.until_usec = 1;
    assert_int_equal(act_ops_affinity.walk(&live->root_fd, &walk), -ETIMEDOUT);
    assert_int_equal(n, 0);
}

/* The cgroups of an ended process are not known, and are not taken for the roots. */
static void test_place_of_ended(void **state)
{
    Live *live = *state;
    pid_t pid = fork();
    uint64_t place = ACT_PLACE_UNKNOWN;
    siginfo_t info;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(0);
    live->children[live->n_children++] = pid;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(act_ops_affinity.get_place(&live->root_fd, pid, &place), ACT_E_GONE);
    assert_int_equal(act_ops_affinity.get_place(&live->root_fd, getpid(), &place), 0);
}

/* A process whose first thread has ended is in the cgroups of its other threads. */
static void test_place_without_first_thread(void **state)
{
    Live *live = *state;
    uint64_t place = ACT_PLACE_UNKNOWN, own = ACT_PLACE_UNKNOWN;
    char path[64], text[PROCSTAT_TEXT_SIZE] = "";
    pid_t pid = fork();
    pthread_t thread;

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    live->children[live->n_children++] = pid;
    (void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
    while (!strstr(text, ") Z "))
        assert_true(root_read(live->root_fd, path, text, sizeof(text)) > 0 && kill(pid, 0) == 0);
    assert_int_equal(act_ops_affinity.get_place(&live->root_fd, getpid(), &own), 0);
    assert_int_equal(act_ops_affinity.get_place(&live->root_fd, pid, &place), 0);
    assert_int_equal(place, own);
}

TEST_MAIN(setup, teardown, test_home_lend_recall_release, test_crash, test_foreign, test_forkers,
          test_grandchildren, test_gone, test_kernel, test_dry_run, test_measure, test_may_fork, test_exiting,
          test_walk_ends, test_place_of_ended, test_place_without_first_thread, test_kept_mask)
