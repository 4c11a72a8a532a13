/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads that hang: a FIFO is opened only when a writer opens it. */

#include "probe-test.h"

#include "probe/tasks/aside.h"

#include <pthread.h>
#include <sys/resource.h>

#define TEXT_SIZE 64U

typedef struct Fixture {
    char *path;
    int fd;
    Aside *aside;
} Fixture;

static int set_up(void **state)
{
    static Fixture fixture;
    const AsideOptions options = {.read = root_read,
                                  .size = TEXT_SIZE,
                                  .wait_usec = 20000,
                                  .budget_usec = 100000,
                                  .give_up_usec = UINT32_MAX};

    fixture.path = test_tree_new();
    fixture.fd = open(fixture.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = &fixture;
    return fixture.fd < 0 ? -1 : aside_new(&options, &fixture.aside);
}

static int tear_down(void **state)
{
    Fixture *fixture = *state;

    fixture->aside = aside_free(fixture->aside);
    (void)close(fixture->fd);
    test_tree_remove(fixture->path);
    return 0;
}

static void put_text(const Fixture *fixture, const char *name, const char *text, size_t n)
{
    (void)test_write_bytes(fixture->path, name, text, n);
}

static void put_fifo(const Fixture *fixture, const char *name)
{
    assert_int_equal(mkfifoat(fixture->fd, name, 0600), 0);
}

static AsideKey key_of(const char *file)
{
    return (AsideKey){.file = file, .pid = 100, .start_ticks = 1000, .identity = 1, .uid = 1000};
}

/* Reads a file that does not hang, although the reading thread may have to wait for its turn. */
static ssize_t answer(const Fixture *fixture, AsideKey key, char *buf)
{
    ssize_t n;

    while ((n = aside_read(fixture->aside, fixture->fd, &key, buf)) == -EAGAIN) {
        (void)usleep(1000);
        aside_refill(fixture->aside);
    }
    return n;
}

static ssize_t ask(const Fixture *fixture, AsideKey key, char *buf)
{
    return aside_read(fixture->aside, fixture->fd, &key, buf);
}

/* Lets the one read of a FIFO end. Its pread(2) fails, which is an answer, too. */
static void let_go(const Fixture *fixture, const char *name)
{
    CLEANUP_CLOSE int fd = openat(fixture->fd, name, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
}

/* Lets all reads of a FIFO end, including those of threads that have not reached it yet. */
static void let_all_go(const Fixture *fixture, const char *name)
{
    while (aside_n_hanging(fixture->aside) > 0) {
        int fd = openat(fixture->fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

        close_p(&fd);
        (void)usleep(1000);
    }
}

static void wait_hanging(const Fixture *fixture, size_t n)
{
    while (aside_n_hanging(fixture->aside) != n)
        (void)usleep(1000);
}

static void test_reads(void **state)
{
    const Fixture *fixture = *state;
    char buf[TEXT_SIZE] = "";

    put_text(fixture, "text", "A=1\0B=2", 8);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(answer(fixture, key_of("text"), buf), 8);
        assert_memory_equal(buf, "A=1\0B=2", 8);
    }
    assert_int_equal(answer(fixture, key_of("nothing"), buf), -ENOENT);
    put_text(fixture, "text", "", 0);
    assert_int_equal(answer(fixture, key_of("text"), buf), 0);
}

static void test_cuts(void **state)
{
    const Fixture *fixture = *state;
    char text[2 * TEXT_SIZE], buf[TEXT_SIZE] = "";

    (void)memset(text, 'x', sizeof(text));
    put_text(fixture, "text", text, sizeof(text));
    assert_int_equal(answer(fixture, key_of("text"), buf), -EFBIG);
    assert_memory_equal(buf, text, TEXT_SIZE - 1);
}

/* A read that hangs is deferred, also when it is requested again. Other files are read meanwhile. The answer
 * is returned after it has arrived. */
static void test_hangs(void **state)
{
    const Fixture *fixture = *state;
    char buf[TEXT_SIZE] = "";
    ssize_t n;

    put_text(fixture, "text", "x", 1);
    put_fifo(fixture, "fifo0");
    assert_int_equal(ask(fixture, key_of("fifo0"), buf), -EAGAIN);
    assert_int_equal(aside_n_hanging(fixture->aside), 1);
    assert_int_equal(ask(fixture, key_of("fifo0"), buf), -EAGAIN);
    assert_int_equal(aside_n_hanging(fixture->aside), 1);
    assert_int_equal(answer(fixture, key_of("text"), buf), 1);

    let_go(fixture, "fifo0");
    wait_hanging(fixture, 0);
    n = ask(fixture, key_of("fifo0"), buf);
    assert_int_equal(n, -ESPIPE);
}

/* A late answer is not given to a request about a process with the same PID, or about one that has become
 * another program. */
static void test_late_answer_is_not_for_others(void **state)
{
    const Fixture *fixture = *state;
    AsideKey later = key_of("fifo0"), other = key_of("fifo0");
    char buf[TEXT_SIZE] = "";

    later.start_ticks++;
    other.identity++;
    put_fifo(fixture, "fifo0");
    assert_int_equal(ask(fixture, key_of("fifo0"), buf), -EAGAIN);
    let_go(fixture, "fifo0");
    wait_hanging(fixture, 0);
    assert_int_equal(ask(fixture, later, buf), -EAGAIN); /* hangs again */
    assert_int_equal(ask(fixture, other, buf), -EAGAIN);
    assert_int_equal(aside_n_hanging(fixture->aside), 2);
    let_all_go(fixture, "fifo0");
}

/* The limit of hanging reads of one user: others are still read, and the place of an answer that is not
 * collected is reused. */
static void test_all_of_a_user_hang(void **state)
{
    static const char *const names[] = {"fifo0", "fifo1", "fifo2", "fifo3", "fifo4"};
    const Fixture *fixture = *state;
    AsideKey other = key_of("text"), root = key_of("text");
    char buf[TEXT_SIZE] = "";

    other.uid = 1001;
    root.uid = 0;
    put_text(fixture, "text", "x", 1);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        put_fifo(fixture, names[i]);
        aside_refill(fixture->aside);
        assert_int_equal(ask(fixture, key_of(names[i]), buf), -EAGAIN);
    }
    assert_int_equal(aside_n_hanging(fixture->aside), ASIDE_USER_MAX);
    assert_int_equal(ask(fixture, key_of("text"), buf), -EAGAIN);
    assert_int_equal(answer(fixture, other, buf), 1);
    assert_int_equal(answer(fixture, root, buf), 1);

    let_go(fixture, names[0]);
    wait_hanging(fixture, ASIDE_USER_MAX - 1);
    assert_int_equal(answer(fixture, key_of("text"), buf), 1);
    for (size_t i = 1; i < ASIDE_USER_MAX; i++)
        let_go(fixture, names[i]);
    wait_hanging(fixture, 0);
}

static int set_up_with(void **state, uint32_t give_up_usec)
{
    int r = set_up(state);
    Fixture *fixture = *state;
    const AsideOptions options = {.read = root_read, .size = TEXT_SIZE, .give_up_usec = give_up_usec};

    fixture->aside = aside_free(fixture->aside);
    return r < 0 ? r : aside_new(&options, &fixture->aside);
}

static int set_up_hasty(void **state)
{
    return set_up_with(state, 0);
}

static int set_up_patient(void **state)
{
    return set_up_with(state, 20000);
}

static void ask_until(const Fixture *fixture, AsideKey key, char *buf, ssize_t expected)
{
    for (unsigned i = 0; ask(fixture, key, buf) != expected; i++) {
        (void)usleep(1000);
        assert_true(i < 100000);
    }
}

/* A hanging read is given up, together with others of its user. The late answer is discarded, and then all is
 * as before. */
static void test_gives_up(void **state)
{
    const Fixture *fixture = *state;
    AsideKey key = key_of("fifo0");
    char buf[TEXT_SIZE] = "";

    put_text(fixture, "text", "x", 1);
    put_fifo(fixture, "fifo0");
    for (key.pid = 100; key.pid < 100 + (pid_t)ASIDE_USER_MAX; key.pid++)
        ask_until(fixture, key, buf, -ETIMEDOUT);
    assert_int_equal(ask(fixture, key, buf), -EDQUOT);
    assert_int_equal(aside_n_hanging(fixture->aside), ASIDE_USER_MAX);
    key.pid = 100;
    assert_int_equal(ask(fixture, key, buf), -ETIMEDOUT);

    let_all_go(fixture, "fifo0");
    ask_until(fixture, key_of("text"), buf, 1);
}

/* The limit of users whose reads hang. Some places are reserved for root. */
static void test_all_hang(void **state)
{
    const Fixture *fixture = *state;
    AsideKey key = key_of("fifo0");
    char buf[TEXT_SIZE] = "";
    size_t n = 0;

    put_fifo(fixture, "fifo0");
    for (key.uid = 1000; key.uid < 1100; key.uid++)
        for (unsigned i = 0; i < ASIDE_USER_MAX; i++, key.pid++)
            n += ask(fixture, key, buf) != -EDQUOT;
    assert_int_equal(n, ASIDE_THREADS - ASIDE_ROOT_THREADS);
    assert_int_equal(aside_n_hanging(fixture->aside), ASIDE_THREADS - ASIDE_ROOT_THREADS);
    key.uid = 0;
    for (unsigned i = 0; i < ASIDE_THREADS; i++, key.pid++)
        (void)ask(fixture, key, buf);
    assert_int_equal(aside_n_hanging(fixture->aside), ASIDE_THREADS);
    let_all_go(fixture, "fifo0");
}

/* The limit of root in each control group, below that of all threads. */
static void test_root_hangs(void **state)
{
    const Fixture *fixture = *state;
    AsideKey key = key_of("fifo0");
    char buf[TEXT_SIZE] = "";

    put_fifo(fixture, "fifo0");
    key.uid = 0;
    for (key.group = 1; key.group < 10; key.group++) {
        size_t n = aside_n_hanging(fixture->aside);

        for (unsigned i = 0; i < ASIDE_THREADS; i++, key.pid++)
            (void)ask(fixture, key, buf);
        assert_int_equal(aside_n_hanging(fixture->aside), MIN(n + ASIDE_GROUP_MAX, (size_t)ASIDE_ROOT_MAX));
    }
    key.uid = 1000;
    for (unsigned i = 0; i < ASIDE_THREADS; i++, key.pid++)
        (void)ask(fixture, key, buf);
    assert_int_equal(aside_n_hanging(fixture->aside), ASIDE_ROOT_MAX + ASIDE_USER_MAX);
    let_all_go(fixture, "fifo0");
}

/* Discovers until a process is in the World, or no longer is. */
static void discover_until(Bench *b, pid_t pid, bool known)
{
    bench_discover(b);
    while (!!world_process(b->world, pid) != known) {
        (void)usleep(1000);
        bench_discover(b);
    }
}

/* A discovery skips a process whose environment hangs, and takes it when that can be read. */
static void test_discovery(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    int fd, fifo;

    put_process(&b, &(FakeTask){.pid = 100});
    put_process(&b, &(FakeTask){.pid = 101});
    put(&b, "proc/101/environ", "A=1");
    fd = openat(b.root_fd, "proc/100", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkfifoat(fd, "environ", 0600), 0);
    bench_start(&b, &(ProbeOptions){.aside = true});
    b.decision = b.except_decision = PROBE_DECISION_TAKE;
    b.except = 100;
    probe_set_wants(b.probe, PROBE_WANTS_ENVIRONMENT);
    discover_until(&b, 101, true);
    assert_null(world_process(b.world, 100));
    bench_discover(&b);
    assert_null(world_process(b.world, 100));
    assert_true(probe_statistics(b.probe)->n_put_off >= 2);
    assert_int_equal(b.n_asked_except, 0);

    fifo = openat(fd, "environ", O_WRONLY | O_CLOEXEC);
    (void)close(fifo);
    (void)close(fd);
    discover_until(&b, 100, true);
}

/* A known process stays when it cannot be read again. */
static void test_known_stays(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    int fd, fifo;

    put_process(&b, &(FakeTask){.pid = 100});
    put(&b, "proc/100/environ", "A=1");
    bench_start(&b, &(ProbeOptions){.aside = true});
    b.decision = PROBE_DECISION_TAKE;
    probe_set_wants(b.probe, PROBE_WANTS_ENVIRONMENT);
    discover_until(&b, 100, true);

    fd = openat(b.root_fd, "proc/100", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(unlinkat(fd, "environ", 0), 0);
    assert_int_equal(mkfifoat(fd, "environ", 0600), 0);
    b.decision = PROBE_DECISION_IGNORE;
    probe_set_wants(b.probe, PROBE_WANTS_ENVIRONMENT);
    bench_discover(&b);
    assert_non_null(world_process(b.world, 100));
    assert_int_equal(b.n_asked, 1);

    fifo = openat(fd, "environ", O_WRONLY | O_CLOEXEC);
    (void)close(fifo);
    (void)close(fd);
    discover_until(&b, 100, false);
    assert_int_equal(b.n_asked, 2);
}

static void *answer_late(void *userdata)
{
    const Bench *b = userdata;

    (void)usleep(60000); /* three times as long as a tick would wait */
    (void)close(openat(b->root_fd, "proc/100/environ", O_WRONLY | O_CLOEXEC));
    return NULL;
}

static int look_at(void *userdata, const ProbeSubject *subject)
{
    return 7;
}

/* A caller with time to wait gets the answer when it arrives. */
static void test_waits(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    pthread_t thread;

    put_process(&b, &(FakeTask){.pid = 100});
    assert_int_equal(mkfifoat(b.root_fd, "proc/100/environ", 0600), 0);
    bench_start(&b, &(ProbeOptions){.aside = true, .aside_wait_usec = 60000000});
    assert_int_equal(pthread_create(&thread, NULL, answer_late, &b), 0);
    assert_int_equal(probe_look(b.probe, 100, PROBE_WANTS_ENVIRONMENT, look_at, NULL), 7);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* While there are too few descriptors to read a command line, a process is not taken to have none. */
static void test_no_descriptors(void **state)
{
    CLEANUP(bench_close) Bench b = bench_make();
    struct rlimit limit, few;
    int free_fds[2];

    put_process(&b, &(FakeTask){.pid = 100});
    put(&b, "proc/100/cmdline", "prog");
    bench_start(
        &b, &(ProbeOptions){.aside = true, .aside_wait_usec = 60000000, .wants = PROBE_WANTS_COMMAND_LINE});
    b.except = 100;
    b.except_decision = PROBE_DECISION_TAKE;
    bench_discover(&b);
    assert_string_equal(b.last.command_line, "prog");

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    for (size_t i = 0; i < ARRAY_SIZE(free_fds); i++)
        free_fds[i] = fcntl(b.root_fd, F_DUPFD_CLOEXEC, 0);
    for (size_t i = 0; i < ARRAY_SIZE(free_fds); i++)
        (void)close(free_fds[i]);
    few.rlim_cur = (rlim_t)free_fds[1] + 1; /* a process and one of its files */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    probe_set_wants(b.probe, PROBE_WANTS_COMMAND_LINE);
    bench_discover(&b);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(b.n_asked, 1);
    assert_int_equal(probe_statistics(b.probe)->n_no_descriptors, 1);
    assert_int_equal(bench_process(&b, 100)->workload.i, 0);

    /* It is asked about as soon as that works again. */
    for (int i = 0; i < 8; i++)
        bench_discover(&b);
    assert_int_equal(b.n_asked, 2);
    assert_string_equal(b.last.command_line, "prog");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cuts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late_answer_is_not_for_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_of_a_user_hang, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gives_up, set_up_patient, tear_down),
        cmocka_unit_test_setup_teardown(test_all_hang, set_up_hasty, tear_down),
        cmocka_unit_test_setup_teardown(test_root_hangs, set_up_hasty, tear_down),
        cmocka_unit_test(test_discovery),
        cmocka_unit_test(test_known_stays),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_no_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
