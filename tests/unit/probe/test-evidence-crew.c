/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rounds outside the event loop, of the kernel's own faults, from files. */

#include "probe-test.h"
#include "probe/memory/evidence-crew.h"

#include <poll.h>
#include <sched.h>

static Bench b;
static EvidenceCrew *crew;

static void put_sched(pid_t pid, unsigned faults)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/task/%d/sched", pid, pid);
    put(&b, path,
        "x (1, #threads: 1)\nmm->numa_scan_seq : 7\nnuma_preferred_nid : 1\ntotal_numa_faults : %u\n"
        "current_node=0, numa_group_id=0\n"
        "numa_faults node=1 task_private=%u task_shared=0 group_private=0 group_shared=0\n",
        faults, faults);
}

static void put_member(pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
    put_stat(&b, path, pid, &(FakeTask){.pid = pid, .start = (unsigned)pid * 10});
    put_thread(&b, &(FakeTask){.pid = pid, .tid = pid});
    put_sched(pid, 100);
}

static int setup(void **state)
{
    const EvidenceMachine machine = {.abilities[EVIDENCE_KERNEL].works = true};

    b = bench_make();
    b.world = bench_world();
    return evidence_crew_new(&machine, b.root_fd, b.world->topology, &crew);
}

static int teardown(void **state)
{
    crew = evidence_crew_free(crew);
    bench_close(&b);
    return 0;
}

static int add_of(pid_t pid, uid_t uid)
{
    const EvidenceSubject subject = {
        .kind = EVIDENCE_KERNEL, .pid = pid, .parent = 1, .start_ticks = (uint64_t)pid * 10, .uid = uid};

    return evidence_crew_add(crew, &subject);
}

static int add(pid_t pid)
{
    return add_of(pid, 0);
}

/* What look() found. */
typedef struct Found {
    EvidenceReport report;
    uint64_t faults;
    bool touches;
} Found;

static int look_at(void *userdata, const EvidenceReport *report, EvidenceSession *session)
{
    const Touches *touches = session ? evidence_touches(session) : NULL;
    Found *found = userdata;

    found->report = *report;
    found->touches = touches != NULL;
    found->faults = touches && touches->n_threads > 0 ? touches->threads[0].n_samples : 0;
    return 42;
}

static Found look(pid_t pid)
{
    Found found = {0};
    int r;

    do {
        (void)sched_yield();
        r = evidence_crew_look(crew, pid, look_at, &found);
    } while (r == -EAGAIN);
    assert_int_equal(r, 42);
    return found;
}

/* Waits for that many rounds, or for the end. */
static Found wait_rounds(pid_t pid, uint64_t n)
{
    Found found;

    do
        found = look(pid);
    while (found.report.n_rounds < n && found.report.outcome == 0);
    return found;
}

static void test_rounds(void **state)
{
    const EvidenceNow now = {.period_usec = 1, .cpu_permille = 1000};
    struct pollfd news = {.fd = evidence_crew_fd(crew), .events = POLLIN};
    Found found;

    put_member(500);
    put_member(501);
    assert_int_equal(add(500), 0);
    assert_int_equal(add(500), -EEXIST);
    assert_int_equal(add(501), 0);
    assert_true(evidence_crew_tell(crew, 500, &now) >= 0);
    assert_int_equal(evidence_crew_tell(crew, 502, &now), -ENOENT);
    found = wait_rounds(500, 1);
    assert_int_equal(found.report.kind, EVIDENCE_KERNEL);
    assert_int_equal(found.faults, 100);
    assert_int_equal(wait_rounds(501, 1).faults, 100);
    put_sched(500, 200);
    found = wait_rounds(500, look(500).report.n_rounds + 2);
    assert_int_equal(found.faults, 200);
    assert_int_equal(found.report.n_samples, found.report.n_rounds);
    assert_int_equal(found.report.protect_max_usec, 0);
    assert_true(evidence_crew_cost_usec(crew) >= found.report.cost_usec);
    assert_int_equal(poll(&news, 1, 0), 1);
}

/* As many processes of one user as there are threads cannot be read. They do not hold up those of another user. */
static void test_user_hangs(void **state)
{
    char path[64];

    for (pid_t pid = 500; pid < 500 + (pid_t)EVIDENCE_CREW_THREADS; pid++) {
        put_member(pid);
        (void)snprintf(path, sizeof(path), "proc/%d/task/%d/sched", pid, pid);
        take_away(&b, path);
        assert_int_equal(mkfifoat(b.root_fd, path, 0600), 0);
        assert_int_equal(add_of(pid, 1000), 0);
    }
    put_member(600);
    assert_int_equal(add_of(600, 1001), 0);
    assert_int_equal(wait_rounds(600, 1).faults, 100);

    for (pid_t pid = 500; pid < 500 + (pid_t)EVIDENCE_CREW_THREADS; pid++)
        assert_int_equal(evidence_crew_drop(crew, pid), 0);
    for (pid_t pid = 500; pid < 500 + (pid_t)EVIDENCE_CREW_THREADS; pid++) {
        int fd;

        (void)snprintf(path, sizeof(path), "proc/%d/task/%d/sched", pid, pid);
        fd = openat(b.root_fd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        close_p(&fd);
    }
}

/* A new period counts from the last round: a round that would be an hour away is made at once. */
static void test_period(void **state)
{
    EvidenceNow now = {.period_usec = UINT64_C(3600) * 1000000, .cpu_permille = 1000};
    uint64_t n;

    put_member(500);
    assert_int_equal(add(500), 0);
    (void)evidence_crew_tell(crew, 500, &now);
    (void)wait_rounds(500, 1);
    while (evidence_crew_tell(crew, 500, &now) == 1)
        (void)sched_yield();
    n = look(500).report.n_rounds;
    for (unsigned i = 0; i < 1000; i++) {
        (void)sched_yield();
        assert_int_equal(look(500).report.n_rounds, n);
    }
    now.period_usec = 1;
    assert_int_equal(evidence_crew_tell(crew, 500, &now), 0);
    assert_true(wait_rounds(500, n + 3).report.n_rounds >= n + 3);
}

/* A process with long intervals is examined at once when its pages were moved. */
static void test_moved(void **state)
{
    EvidenceNow now = {.period_usec = UINT64_MAX / 4, .cpu_permille = 1000};
    uint64_t n;

    put_member(500);
    assert_int_equal(add(500), 0);
    assert_true(evidence_crew_tell(crew, 500, &now) >= 0);
    n = wait_rounds(500, 1).report.n_rounds;
    for (unsigned i = 0; i < 3; i++) {
        now.moving = true;
        (void)evidence_crew_tell(crew, 500, &now);
        now.moving = false;
        (void)evidence_crew_tell(crew, 500, &now);
        n = wait_rounds(500, n + 1).report.n_rounds;
    }
}

static void test_over(void **state)
{
    struct pollfd news = {.fd = evidence_crew_fd(crew), .events = POLLIN};
    Found found = {0};

    assert_int_equal(add(600), 0);
    found = wait_rounds(600, 1);
    assert_int_equal(found.report.outcome, EVIDENCE_E_GONE);
    assert_false(found.touches);
    /* It is reported, once. */
    assert_int_equal(poll(&news, 1, 60000), 1);
    evidence_crew_clear(crew);
    assert_int_equal(poll(&news, 1, 0), 0);
    assert_int_equal(evidence_crew_drop(crew, 600), 0);
    assert_int_equal(evidence_crew_drop(crew, 600), -ENOENT);
    assert_int_equal(evidence_crew_look(crew, 600, look_at, &found), -ENOENT);
    /* At once, whether or not the old one has been removed. */
    put_member(600);
    assert_int_equal(add(600), 0);
    assert_int_equal(wait_rounds(600, 1).report.outcome, 0);
}

/* A process that blocks its reader does not delay others. */
static void test_hangs(void **state)
{
    char path[128];
    int r, fd;

    put_member(500);
    put_member(501);
    (void)snprintf(path, sizeof(path), "%s/proc/500/stat", b.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(add(500), 0);
    assert_int_equal(add(501), 0);
    assert_int_equal(wait_rounds(501, 1).report.outcome, 0);
    do {
        Found found;

        (void)sched_yield();
        r = evidence_crew_look(crew, 500, look_at, &found);
    } while (r != -EAGAIN);
    assert_int_equal(evidence_crew_drop(crew, 500), 0);
    assert_int_equal(wait_rounds(501, 1).report.outcome, 0);
    /* The reader continues. */
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)close(fd);
}

/* Above all numbers that the kernel gives. */
#define PID   5000000
#define CHILD (PID + 1)

/* What becomes of a process whose soft-dirty bits look used, when write faults are to be sampled. */
static int outcome_of(pid_t pid, pid_t parent, unsigned start)
{
    const EvidenceSubject subject = {
        .kind = EVIDENCE_WRITE, .pid = pid, .parent = parent, .start_ticks = start};
    uint64_t clear[2] = {0};
    char path[64];
    int outcome;

    (void)snprintf(path, sizeof(path), "proc/%d/stat", pid);
    put_stat(&b, path, pid, &(FakeTask){.pid = pid, .start = start});
    put_thread(&b, &(FakeTask){.pid = pid, .tid = pid});
    (void)snprintf(path, sizeof(path), "proc/%d/maps", pid);
    put(&b, path, "0-1000 rw-p 0 00:00 0\n");
    (void)snprintf(path, sizeof(path), "proc/%d/pagemap", pid);
    (void)test_write_bytes(b.path, path, (const char *)clear, sizeof(clear));

    assert_int_equal(evidence_crew_add(crew, &subject), 0);
    outcome = wait_rounds(pid, 1).report.outcome;
    assert_int_equal(evidence_crew_drop(crew, pid), 0);
    return outcome;
}

/* It may have been us who used the bits of a process, or of its parent, but not of another one with that number. */
static void test_marks(void **state)
{
    const EvidenceMachine machine = {.abilities[EVIDENCE_WRITE].works = true};

    crew = evidence_crew_free(crew);
    assert_int_equal(evidence_crew_new(&machine, b.root_fd, b.world->topology, &crew), 0);
    assert_int_equal(outcome_of(CHILD, PID, 2000), EVIDENCE_E_TRACKED);
    assert_int_equal(outcome_of(PID, 1, 1000), EVIDENCE_E_TRACKED);
    assert_int_not_equal(outcome_of(PID, 1, 1000), EVIDENCE_E_TRACKED);
    assert_int_not_equal(outcome_of(CHILD, PID, 2001), EVIDENCE_E_TRACKED);
    assert_int_equal(outcome_of(PID, 1, 3000), EVIDENCE_E_TRACKED);
    assert_int_not_equal(outcome_of(CHILD, PID, 4000), EVIDENCE_E_TRACKED);

    /* A parent that was never examined has the number. */
    put_stat(&b, "proc/5000000/stat", PID, &(FakeTask){.pid = PID, .start = 5000});
    assert_int_equal(outcome_of(CHILD, PID, 6000), EVIDENCE_E_TRACKED);
}

static void test_limit(void **state)
{
    for (pid_t pid = 1000; pid < 1000 + (pid_t)EVIDENCE_CREW_MAX; pid++)
        assert_int_equal(add(pid), 0);
    assert_int_equal(add(999), -E2BIG);
}

TEST_MAIN(setup, teardown, test_rounds, test_period, test_moved, test_over, test_hangs, test_user_hangs,
          test_marks, test_limit)
