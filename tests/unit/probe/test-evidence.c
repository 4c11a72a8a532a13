/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which kind of evidence is chosen, and the kernel's own faults from files. */

#include "kernel/procstat.h"
#include "probe-test.h"
#include "probe/hints/watch.h"
#include "probe/memory/evidence.h"
#include "probe/memory/region-maps.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static EvidenceMachine machine_with(const EvidenceKind *kinds, size_t n)
{
    EvidenceMachine machine = {.abilities[EVIDENCE_RESIDENCY].works = true};

    for (int i = 0; i < EVIDENCE_RESIDENCY; i++)
        (void)snprintf(machine.abilities[i].why_not, EVIDENCE_WHY_SIZE, "no %s", evidence_names[i]);
    for (size_t i = 0; i < n; i++)
        machine.abilities[kinds[i]] = (EvidenceAbility){.works = true};
    return machine;
}

static void expect(const EvidenceMachine *machine, EvidenceKind wanted, const char *text)
{
    CLEANUP_FREE char *explained = evidence_explain(machine, wanted);

    assert_string_equal(explained, text);
    assert_int_equal(strncmp(text, evidence_names[evidence_choose(machine, wanted)], 4), 0);
}

static void test_choice(void **state)
{
    static const EvidenceKind both[] = {EVIDENCE_WRITE, EVIDENCE_KERNEL};
    EvidenceMachine machine = machine_with(NULL, 0);

    expect(&machine, EVIDENCE_MAX, "residency; not write: no write, not kernel: no kernel");
    expect(&machine, EVIDENCE_WRITE, "residency; not write: no write");
    expect(&machine, EVIDENCE_RESIDENCY, "residency");

    machine = machine_with(both, 2);
    expect(&machine, EVIDENCE_MAX, "write");
    expect(&machine, EVIDENCE_KERNEL, "kernel");

    /* The kernel's faults do not tell about blocks. */
    machine.abilities[EVIDENCE_WRITE] = (EvidenceAbility){.why_not = "not permitted"};
    expect(&machine, EVIDENCE_MAX, "kernel; not write: not permitted");
    expect(&machine, EVIDENCE_WRITE, "residency; not write: not permitted");
}

/*
 * From files
 */

static Bench b;

static int setup(void **state)
{
    b = bench_make();
    b.world = bench_world();
    return 0;
}

static int teardown(void **state)
{
    bench_close(&b);
    return 0;
}

static void put_sched(const char *where, int preferred, unsigned group, unsigned faults0, unsigned faults1)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%s/sched", where);
    put(&b, path,
        "x (1, #threads: 1)\nmm->numa_scan_seq : 7\nnuma_pages_migrated : 0\nnuma_preferred_nid : %d\n"
        "total_numa_faults : %u\ncurrent_node=0, numa_group_id=%u\n"
        "numa_faults node=0 task_private=%u task_shared=5 group_private=0 group_shared=0\n"
        "numa_faults node=1 task_private=%u task_shared=6 group_private=0 group_shared=0\n",
        preferred, faults0 + faults1 + 11, group, faults0, faults1);
}

static void put_member(pid_t tid)
{
    put_thread(&b, &(FakeTask){.pid = 500, .tid = tid, .start = (unsigned)tid * 10});
}

static void test_detection(void **state)
{
    EvidenceMachine machine;

    put(&b, "proc/cpuinfo", "x\n");
    evidence_detect(b.root_fd, false, &machine);
    expect(&machine, EVIDENCE_MAX,
           "residency; not write: this is a captured machine, not kernel: this kernel has no NUMA balancing");
    put(&b, "proc/sys/kernel/numa_balancing", "0\n");
    evidence_detect(b.root_fd, false, &machine);
    expect(&machine, EVIDENCE_KERNEL,
           "residency; not kernel: the kernel's NUMA balancing is off (kernel.numa_balancing)");
    /* Tiering only. */
    put(&b, "proc/sys/kernel/numa_balancing", "2\n");
    evidence_detect(b.root_fd, false, &machine);
    expect(&machine, EVIDENCE_KERNEL,
           "residency; not kernel: the kernel's NUMA balancing is off (kernel.numa_balancing)");
    put(&b, "proc/sys/kernel/numa_balancing", "1\n");
    evidence_detect(b.root_fd, false, &machine);
    expect(&machine, EVIDENCE_KERNEL,
           "residency; not kernel: this kernel does not show NUMA faults (CONFIG_SCHED_DEBUG)");
    put_sched("self", -1, 0, 0, 0);
    evidence_detect(b.root_fd, false, &machine);
    assert_int_equal(evidence_choose(&machine, EVIDENCE_MAX), EVIDENCE_KERNEL);
    /* Balancing is switched; other kinds that work are not tried again. */
    machine.abilities[EVIDENCE_WRITE].works = true;
    for (int i = 0; i < 2; i++) {
        put(&b, "proc/sys/kernel/numa_balancing", i == 0 ? "0\n" : "1\n");
        evidence_detect_switched(b.root_fd, &machine);
        assert_int_equal(machine.kernel_balances, i);
        assert_int_equal(evidence_choose(&machine, EVIDENCE_KERNEL),
                         i ? EVIDENCE_KERNEL : EVIDENCE_RESIDENCY);
        assert_int_equal(evidence_choose(&machine, EVIDENCE_MAX), EVIDENCE_WRITE);
    }
}

static void begin(EvidenceTarget *target, EvidenceMachine *machine)
{
    put(&b, "proc/sys/kernel/numa_balancing", "1\n");
    put_sched("self", -1, 0, 0, 0);
    put_stat(&b, "proc/500/stat", 500, &(FakeTask){.pid = 500, .start = 5000});
    evidence_detect(b.root_fd, false, machine);
    *target = (EvidenceTarget){
        .root_fd = b.root_fd, .topology = b.world->topology, .pid = 500, .start_ticks = 5000};
}

static void test_kernel_faults(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceNow now = {.now_usec = 10 * SEC, .period_usec = SEC, .cpu_permille = 1000};
    EvidenceMachine machine;
    EvidenceTarget target;
    EvidenceRound round;
    const TouchThread *thread;
    Touches *touches;

    begin(&target, &machine);
    put_member(500);
    put_member(501);
    put_sched("500/task/500", -1, 0, 0, 0);
    put_sched("500/task/501", 1, 500, 100, 2000);
    assert_int_equal(evidence_begin(&machine, EVIDENCE_KERNEL, &target, &session), 0);
    assert_int_equal(evidence_round(session, &now, &round), 0);
    assert_true(round.counted);
    assert_int_equal(round.n_samples, 2);
    assert_int_equal(round.held, EVIDENCE_HELD_NOT);
    assert_int_equal(round.protect_usec, 0);
    assert_true(round.due_usec >= 11 * SEC);
    touches = evidence_touches(session);
    assert_int_equal(touches->n_threads, 2);
    thread = touches_thread(touches, 501);
    assert_int_equal(thread->key.start_ticks, 5010);
    assert_int_equal(thread->preferred.i, 1);
    assert_int_equal(thread->faults.nodes[0].memory[FAULTS_KIND_PRIVATE], 100);
    assert_int_equal(thread->faults.nodes[1].memory[FAULTS_KIND_PRIVATE], 2000);
    assert_int_equal(thread->faults.nodes[1].memory[FAULTS_KIND_SHARED], 6);
    assert_int_equal(thread->faults.n_sequences, 7);
    assert_int_equal(touches_thread_class(thread), BUDDY_CLASS_PRIVATE);
    assert_int_equal(touches_thread(touches, 500)->preferred.i, -1);

    /* Threads come and go. An unreadable file leaves a thread as it was. */
    take_away(&b, "proc/500/task/500");
    put_member(502);
    put(&b, "proc/500/task/501/sched", "nonsense\n");
    put_sched("500/task/502", 0, 0, 7, 0);
    assert_int_equal(evidence_round(session, &now, &round), 0);
    assert_int_equal(round.n_samples, 1);
    assert_int_equal(touches->n_threads, 2);
    assert_null(touches_thread(touches, 500));
    assert_int_equal(touches_thread(touches, 501)->preferred.i, 1);
    assert_int_equal(touches_thread(touches, 502)->preferred.i, 0);

    take_away(&b, "proc/500");
    assert_int_equal(evidence_round(session, &now, &round), EVIDENCE_E_GONE);
}

/* Another process has the PID now; and kinds that cannot be started. */
static void test_refused(void **state)
{
    EvidenceSession *session = NULL;
    EvidenceMachine machine;
    EvidenceTarget target;

    begin(&target, &machine);
    assert_int_equal(evidence_begin(&machine, EVIDENCE_WRITE, &target, &session), -EOPNOTSUPP);
    assert_int_equal(evidence_begin(&machine, EVIDENCE_RESIDENCY, &target, &session), -EOPNOTSUPP);
    target.start_ticks++;
    assert_int_equal(evidence_begin(&machine, EVIDENCE_KERNEL, &target, &session), EVIDENCE_E_GONE);
    target.pid = 499;
    assert_int_equal(evidence_begin(&machine, EVIDENCE_KERNEL, &target, &session), EVIDENCE_E_GONE);
}

static void *wait_for_end(void *userdata)
{
    char c;

    (void)!read(*(const int *)userdata, &c, 1);
    _exit(0);
}

/* Starts a child whose first thread ends, and waits until it has. The child ends when `*ret_go` is closed. */
static pid_t start_without_first(int root_fd, int *ret_go, ProcStat *ret)
{
    static int go[2];
    pthread_t thread;
    pid_t pid;

    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(go[1]);
        if (pthread_create(&thread, NULL, wait_for_end, &go[0]) == 0)
            (void)syscall(SYS_exit, 0); /* of this thread alone */
        _exit(1);
    }
    (void)close(go[0]);
    *ret_go = go[1];
    do
        assert_int_equal(procstat_read_task(root_fd, pid, 0, ret), 0);
    while (!procstat_has_ended(ret));
    assert_true(ret->num_threads > 1);
    return pid;
}

/* Another thread shows the memory of a process whose first one has ended. */
static void test_first_thread_has_ended(void **state)
{
    CLEANUP_CLOSE int root_fd = root_open("/"), fd = -1;
    EvidenceTarget target = {.root_fd = root_fd};
    MemoryRegions regions = {0};
    Touches touches;
    CLEANUP_FREE pid_t *tids = NULL;
    size_t capacity = 0, n = 0;
    pid_t memory_pid = 0;
    uint64_t rss = 0;
    ProcStat first;
    int go;

    touches_init(&touches, 1);
    target.pid = start_without_first(root_fd, &go, &first);
    target.start_ticks = first.start_ticks;
    fd = evidence_open_process(&target, &memory_pid);
    assert_true(fd >= 0);
    assert_int_not_equal(memory_pid, target.pid);
    assert_int_equal(evidence_look(&target, fd, &rss), 0);
    assert_true(rss > 0);
    assert_int_equal(region_maps_read(fd, false, NULL, &regions), 0);
    assert_true(regions.n > 0);
    assert_int_equal(evidence_follow_threads(fd, target.pid, &touches, &tids, &capacity, &n), 0);
    assert_non_null(touches_thread(&touches, memory_pid));
    target.start_ticks++;
    assert_int_equal(evidence_look(&target, fd, &rss), EVIDENCE_E_GONE);
    assert_int_equal(evidence_open_process(&target, &memory_pid), -ESRCH);
    target.start_ticks--;
    (void)close(go);
    assert_int_equal(waitpid(target.pid, NULL, 0), target.pid);
    assert_int_equal(evidence_look(&target, fd, &rss), EVIDENCE_E_GONE);
    regions_done(&regions);
    touches_done(&touches);
}

/* Who uses the soft-dirty bits */

#define DIRTY   (1ULL << 55)
#define PRESENT (1ULL << 63)

/* Writes entries of pagemap for the pages from `first` on. */
static void put_entries(uint64_t first, const uint64_t *entries, size_t n)
{
    int fd = open(test_path(b.path, "pagemap"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, entries, n * sizeof(*entries), (off_t)(first * sizeof(*entries))),
                     n * sizeof(*entries));
    (void)close(fd);
}

static void test_watch_before(void **state)
{
    const uint64_t clean[] = {DIRTY, DIRTY, DIRTY | PRESENT, DIRTY}, stack[] = {0}, cleared[] = {PRESENT};

    /* The numbers below assume pages of 4096 bytes. */
    if (sysconf(_SC_PAGESIZE) != 4096)
        skip();
    put(&b, "maps",
        "00010000-00012000 rw-p 00000000 00:00 0 \n00012000-00014000 rw-p 00000000 00:00 0 [heap]\n"
        "00014000-00015000 r--p 00000000 00:00 0 \n00020000-00021000 rw-p 00000000 00:00 0 [stack]\n");
    put_entries(16, clean, 4);
    put_entries(32, stack, 1);
    assert_int_equal(hint_watch_before(b.root_fd), 0);
    put_entries(19, cleared, 1);
    assert_int_equal(hint_watch_before(b.root_fd), 1);
    take_away(&b, "pagemap");
    assert_int_equal(hint_watch_before(b.root_fd), -ENOENT);
}

static void test_watch_meanwhile(void **state)
{
    const uint64_t entries[] = {PRESENT, PRESENT, PRESENT,         PRESENT,
                                PRESENT, PRESENT, PRESENT | DIRTY, PRESENT | DIRTY};
    uint64_t written[9];

    for (uint64_t i = 0; i < ARRAY_SIZE(written); i++)
        written[i] = (16 + i) * (uint64_t)sysconf(_SC_PAGESIZE);
    put_entries(16, entries, ARRAY_SIZE(entries));
    assert_int_equal(hint_watch_meanwhile(b.root_fd, written, 0), 0);
    assert_int_equal(hint_watch_meanwhile(b.root_fd, written, 3), 0);
    assert_int_equal(hint_watch_meanwhile(b.root_fd, written, 4), 1);
    /* Six of seven are less than seven of eight. Pages that are not present do not count. */
    assert_int_equal(hint_watch_meanwhile(b.root_fd, written, 7), 0);
    assert_int_equal(hint_watch_meanwhile(b.root_fd, written + 3, 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test_setup_teardown(test_detection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernel_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_meanwhile, setup, teardown),
        cmocka_unit_test(test_first_thread_has_ended),
    };

    return cmocka_run_group_tests_name("probe/evidence", tests, NULL, NULL);
}
