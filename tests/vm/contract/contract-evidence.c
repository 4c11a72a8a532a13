/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Not of the kernel alone: evidence from observed processes. Threads that write memory of their own, or the same
 * memory, are observed as the daemon would do it: by write hint faults, and by what the kernel's balancing reports. */

#include "balancing.h"
#include "base/time.h"
#include "groups.h"
#include "machine.h"
#include "memory.h"
#include "probe/hints/rings.h"
#include "team.h"
#include "threads.h"

#include <fcntl.h>
#include <inttypes.h>

#define N_ROUNDS 8U

static void wait_until(uint64_t usec)
{
    while (time_now_usec() < usec)
        nap();
}

/*
 * Rounds
 */

typedef struct Sums {
    unsigned n_protected;
    uint64_t begin_usec, end_usec;
    uint64_t cost_usec, target_usec, protect_usec, protect_max_usec, n_samples, n_lost;
    size_t least_blocks; /* seen in one round */
} Sums;

static size_t blocks_of_round(const Touches *touches)
{
    size_t n = 0;

    for (size_t i = 0; i < touches->n_blocks; i++)
        n += touches->blocks[i].last_round == touches->n_rounds;
    return n;
}

/* Observes the process until `n_rounds` rounds have been counted. */
static Sums look(EvidenceSession *session, unsigned n_rounds, uint32_t cpu_permille)
{
    const Touches *touches = evidence_touches(session);
    Sums sums = {.begin_usec = time_now_usec(), .least_blocks = SIZE_MAX};
    uint32_t until = touches->n_rounds + n_rounds;

    while (touches->n_rounds < until) {
        EvidenceNow now = {.now_usec = time_now_usec(), .period_usec = 100000, .cpu_permille = cpu_permille};
        EvidenceRound round;

        assert_int_equal(evidence_round(session, &now, &round), 0);
        sums.n_protected += round.protect_usec > 0;
        sums.cost_usec += round.cost_usec;
        sums.target_usec += round.target_usec;
        sums.protect_usec += round.protect_usec;
        sums.protect_max_usec = MAX(sums.protect_max_usec, round.protect_usec);
        sums.n_samples += round.n_samples;
        sums.n_lost += round.n_lost;
        if (round.counted && touches->n_rounds > 1)
            sums.least_blocks = MIN(sums.least_blocks, blocks_of_round(touches));
        wait_until(round.due_usec);
    }
    sums.end_usec = time_now_usec();
    return sums;
}

static void tell(const char *what, const Sums *sums, const Touches *touches)
{
    TouchesSummary summary = touches_summary(touches);
    uint64_t usec = sums->end_usec - sums->begin_usec;

    contract_note("%s: %u rounds in %" PRIu64
                  " ms, %zu blocks, at least %zu in a round, %zu judged, overlap %" PRIu32
                  " permille, %" PRIu64 " samples, %" PRIu64 " lost",
                  what, touches->n_rounds, usec / 1000, touches->n_blocks, sums->least_blocks,
                  summary.n_judged, summary.overlap_permille, sums->n_samples, sums->n_lost);
    contract_note("%s: protected %u times, mean %" PRIu64 " us, worst %" PRIu64 " us; cost of ours %" PRIu64
                  " us, of the process %" PRIu64 " us, %" PRIu64 " permille of one CPU",
                  what, sums->n_protected, sums->protect_usec / MAX(sums->n_protected, 1),
                  sums->protect_max_usec, sums->cost_usec, sums->target_usec,
                  sums->target_usec * 1000 / MAX(usec, 1));
}

/* The thread whose buffer an address is in; TEAM_THREADS: none. */
static unsigned buffer_of(const Team *team, uint64_t address)
{
    for (unsigned i = 0; i < TEAM_THREADS; i++)
        if (address - (uint64_t)(uintptr_t)team->buffer[i] < TEAM_BLOCKS * HUGE)
            return i;
    return TEAM_THREADS;
}

/* Counts the blocks of the buffers, those with the right owner, and those on the team's node. */
static void check_blocks(const Team *team, const Touches *touches, size_t *ret_n, size_t *ret_owned,
                         size_t *ret_there)
{
    NodeIx node = topology_node_by_os(machine.topology, team->node);

    *ret_n = *ret_owned = *ret_there = 0;
    for (size_t i = 0; i < touches->n_blocks; i++) {
        const TouchBlock *block = &touches->blocks[i];
        unsigned index = buffer_of(team, block->address);
        pid_t owner = touches_owner(block);

        if (index == TEAM_THREADS)
            continue;
        ++*ret_n;
        *ret_there += block->node.i == node.i;
        *ret_owned += owner == team->tid[index];
        /* Memory of one thread is never attributed to another. */
        if (team->mode == TEAM_OWN && team->huge)
            assert_true(owner == 0 || owner == team->tid[index]);
    }
}

/*
 * Write hint faults
 */

/* Logs the longest time that a few writes took, with and without observation. */
static void tell_gaps(Team *team, const char *what)
{
    uint64_t alone, looked_at = team_gap(team);

    wait_until(time_now_usec() + USEC_PER_SEC);
    alone = team_gap(team);
    contract_note("%s: the longest that 16 writes took: %" PRIu64 " us, not looked at %" PRIu64 " us", what,
                  looked_at, alone);
}

static void look_at_team(TeamMode mode, bool huge, const char *what)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    uint64_t huge_before = vmstat("thp_fault_alloc"), splits;
    size_t n, n_owned, n_there;
    EvidenceTarget target;
    Touches *touches;
    Team *team;
    Sums sums;

    need_write();
    target = machine_target(team_start(mode, huge, &team));
    if (huge && vmstat("thp_fault_alloc") < huge_before + TEAM_BLOCKS)
        contract_skip("no transparent huge pages to be had");
    splits = vmstat("thp_split_pmd");
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    touches = evidence_touches(session);
    (void)team_gap(team);
    /* Small pages cost so much in a guest that rounds at the usual pace would take half a minute. */
    sums = look(session, N_ROUNDS, huge ? 2000 : 20000);
    tell_gaps(team, what);
    tell(what, &sums, touches);
    check_blocks(team, touches, &n, &n_owned, &n_there);
    contract_note("%s: of %zu blocks of theirs %zu have an owner, %zu are where they should be", what, n,
                  n_owned, n_there);
    assert_true(touches_check(touches));
    assert_int_equal(n, n_there);
    if (huge)
        assert_int_equal(vmstat("thp_split_pmd"), splits);
    if (mode == TEAM_OWN) {
        assert_true(n >= (size_t)TEAM_THREADS * TEAM_BLOCKS * 3 / 4);
        assert_true(n_owned * 4 >= n * 3);
        for (unsigned i = 0; i < TEAM_THREADS; i++)
            assert_int_equal(touches_thread_class(touches_thread(touches, team->tid[i])),
                             BUDDY_CLASS_PRIVATE);
    } else {
        assert_true(n_owned * 2 < n);
    }
}

static void test_own_huge(void **state)
{
    look_at_team(TEAM_OWN, true, "own, huge");
}

static void test_own_small(void **state)
{
    look_at_team(TEAM_OWN, false, "own, small");
}

static void test_shared_huge(void **state)
{
    look_at_team(TEAM_SHARED, true, "shared, huge");
}

static void test_shared_small(void **state)
{
    look_at_team(TEAM_SHARED, false, "shared, small");
}

/* Nothing is protected while pages are moved or memory is touched for the first time. First touches are
 * reported then but not counted as use: often one thread makes them for all. */
static void test_held(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceNow now = {.period_usec = 100000, .cpu_permille = 2000, .moving = true};
    unsigned n_held = 0;
    bool protected = false;
    EvidenceTarget target;
    EvidenceRound round;
    Team *team;

    need_write();
    target = machine_target(team_start(TEAM_GROW, false, &team));
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    for (unsigned i = 0; i < 3; i++) {
        now.now_usec = time_now_usec();
        assert_int_equal(evidence_round(session, &now, &round), 0);
        assert_int_equal(round.held, EVIDENCE_HELD_MOVING);
        assert_int_equal(round.protect_usec, 0);
    }
    now.moving = false;
    for (unsigned i = 0; i < 5; i++) {
        uint64_t pass = team->pass[0];

        while (team->pass[0] < pass + 4)
            nap();
        now.now_usec = time_now_usec();
        assert_int_equal(evidence_round(session, &now, &round), 0);
        n_held += round.held == EVIDENCE_HELD_GROWING;
        if (!protected)
            assert_int_equal(evidence_touches(session)->n_blocks, 0);
        protected |= round.protect_usec > 0;
        if (round.held == EVIDENCE_HELD_GROWING) {
            assert_int_equal(round.protect_usec, 0);
            assert_true(round.n_samples + round.n_lost > 0); /* first touches */
        }
    }
    assert_true(n_held >= 3);
}

/* A process whose soft-dirty bits somebody uses is left alone, unless the policy insists. */
static void test_tracked_before(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceTarget target;
    Team *team;

    need_write();
    target = machine_target(team_start(TEAM_OWN, false, &team));
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    session = evidence_end(session);
    assert_int_equal(file_write("4", "/proc/%d/clear_refs", target.pid), 0);
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session),
                     EVIDENCE_E_TRACKED);
    target.insist = true;
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
}

static void test_tracked_meanwhile(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceTarget target;
    Team *team;
    int r = 0;

    need_write();
    target = machine_target(team_start(TEAM_OWN, false, &team));
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    (void)look(session, 3, 20000);
    for (unsigned i = 0; i < 10 && r == 0; i++) {
        EvidenceNow now = {.period_usec = 100000, .cpu_permille = 2000};
        EvidenceRound round;

        for (unsigned k = 0; k < TEAM_THREADS; k++)
            team->limit[k] = team->pass[k] + 2;
        assert_true(eventually(team_done, team));
        assert_int_equal(file_write("4", "/proc/%d/clear_refs", target.pid), 0);
        now.now_usec = time_now_usec();
        r = evidence_round(session, &now, &round);
    }
    assert_int_equal(r, EVIDENCE_E_TRACKED);
}

static void test_gone(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceNow now = {.now_usec = time_now_usec(), .cpu_permille = 1000};
    EvidenceTarget target;
    EvidenceRound round;
    Team *team;

    need_write();
    target = machine_target(team_start(TEAM_OWN, false, &team));
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    assert_int_equal(evidence_round(session, &now, &round), 0);
    child_end(target.pid);
    assert_int_equal(evidence_round(session, &now, &round), EVIDENCE_E_GONE);
    session = evidence_end(session);
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), EVIDENCE_E_GONE);
}

/*
 * Rings of CPUs instead of threads
 */

typedef struct Heard {
    const Team *team;
    pid_t pid;
    size_t n_own[TEAM_THREADS], n_others;
} Heard;

static int hear(void *userdata, const FaultSample *sample)
{
    Heard *heard = userdata;
    bool own = false;

    for (unsigned i = 0; i < TEAM_THREADS; i++)
        if (sample->tid == heard->team->tid[i]) {
            assert_int_equal(sample->pid, heard->pid);
            heard->n_own[i]++;
            own = true;
        }
    heard->n_others += !own;
    return 0;
}

/* In a process with more threads than may have a ring each, the rings of CPUs report first touches by all threads. */
static void listen_to_cpus(pid_t pid, Team *team, int cgroup_fd, HintRingsScope scope, Heard *ret)
{
    const HintRingsOptions options = {
        .n_cpus = machine.topology->cpu_limit, .cgroup_fd = cgroup_fd, .max_threads = TEAM_THREADS - 1};
    CLEANUP(hint_rings_free_p) HintRings *rings = NULL;
    HintRingsCount count;
    pid_t tids[TEAM_THREADS];
    uint64_t pass;
    int r;

    for (unsigned i = 0; i < TEAM_THREADS; i++)
        tids[i] = team->tid[i];
    assert_int_equal(hint_rings_new(&options, &rings), 0);
    r = hint_rings_follow(rings, tids, TEAM_THREADS);
    if (r == -EACCES || r == -EPERM)
        contract_skip("no page-fault events: %s", strerror(-r));
    assert_int_equal(r, 0);
    assert_int_equal(hint_rings_scope(rings), scope);
    assert_int_equal(hint_rings_n(rings), machine.topology->n_cpus);
    *ret = (Heard){.team = team, .pid = pid};
    for (unsigned i = 0; i < TEAM_THREADS; i++) {
        pass = team->pass[i];
        while (team->pass[i] < pass + 2) {
            nap();
            assert_int_equal(hint_rings_read(rings, hear, ret, &count), 0);
            assert_int_equal(count.n_bad, 0);
        }
    }
    assert_int_equal(hint_rings_read(rings, hear, ret, &count), 0);
    contract_note("rings of CPUs: %zu, %zu, %zu and %zu samples of theirs, %zu of others, one of %" PRIu32,
                  ret->n_own[0], ret->n_own[1], ret->n_own[2], ret->n_own[3], ret->n_others, count.period);
    for (unsigned i = 0; i < TEAM_THREADS; i++)
        assert_true(ret->n_own[i] > 0);
}

static void test_rings_of_cpus(void **state)
{
    Heard heard;
    Team *team;
    pid_t pid = team_start(TEAM_GROW, false, &team);

    listen_to_cpus(pid, team, -1, HINT_RINGS_MACHINE, &heard);
}

static void test_rings_of_a_group(void **state)
{
    CLEANUP_CLOSE int fd = -1;
    Heard heard;
    Team *team;
    pid_t pid;

    groups_begin();
    group_make("heard");
    pid = team_start(TEAM_GROW, false, &team);
    assert_int_equal(group_join("heard", pid), 0);
    fd = open(GROUPS_ROOT "/heard", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    listen_to_cpus(pid, team, fd, HINT_RINGS_CGROUP, &heard);
    assert_int_equal(heard.n_others, 0);
}

/* With the first thread, one more than have a ring each. */
#define CROWD HINT_RINGS_THREADS

#define CROWD_BYTES ((size_t)64 << 10)

static void crowd_member(void *userdata, unsigned index)
{
    volatile char *p = (volatile char *)userdata + index * CROWD_BYTES;

    for (;; nap())
        for (size_t i = 0; i < CROWD_BYTES; i += 4096)
            p[i]++;
}

static void crowd_main(void *userdata)
{
    threads_run(CROWD, crowd_member, userdata);
}

static bool is_crowd(void *userdata)
{
    TaskStat stat;

    return task_stat(*(const pid_t *)userdata, &stat) && stat.threads > CROWD;
}

static bool is_heard(void *userdata)
{
    EvidenceNow now = {.now_usec = time_now_usec(), .period_usec = 100000, .cpu_permille = 2000};
    EvidenceRound round;

    nap();
    assert_int_equal(evidence_round(userdata, &now, &round), 0);
    return round.n_samples > 0;
}

/* Rings of CPUs follow a process to another group. */
static void test_moves_to_another_group(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    EvidenceTarget target;
    pid_t pid;

    need_write();
    groups_begin();
    if (machine.topology->cpu_limit * HINT_RINGS_PER_CPU > CROWD)
        contract_skip("too many CPUs");
    group_make("before");
    group_make("after");
    pid = child_start(crowd_main, shared_alloc(CROWD * CROWD_BYTES));
    assert_true(eventually(is_crowd, &pid));
    assert_int_equal(group_join("before", pid), 0);
    target = machine_target(pid);
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    assert_true(eventually(is_heard, session));
    assert_int_equal(group_join("after", pid), 0);
    (void)is_heard(session); /* what the earlier rings have recorded */
    assert_true(eventually(is_heard, session));
}

/*
 * The kernel's own
 */

static int balanced_teardown(void **state)
{
    (void)balancing_teardown(state);
    return children_teardown(state);
}

typedef struct Balanced {
    EvidenceSession *session;
    const Team *team;
    NodeIx node;
} Balanced;

/* True when all threads prefer the node they run on. That they form a group in time is for contract-numa-balancing. */
static bool is_told(void *userdata)
{
    const Balanced *balanced = userdata;
    EvidenceNow now = {.now_usec = time_now_usec(), .period_usec = 100000, .cpu_permille = 2000};
    Touches *touches = evidence_touches(balanced->session);
    EvidenceRound round;

    assert_int_equal(evidence_round(balanced->session, &now, &round), 0);
    assert_int_equal(round.protect_usec, 0);
    for (unsigned i = 0; i < TEAM_THREADS; i++) {
        const TouchThread *thread = touches_thread(touches, balanced->team->tid[i]);

        assert_non_null(thread);
        if (thread->preferred.i != balanced->node.i || thread->n_samples == 0 ||
            faults_memory(&thread->faults, balanced->node) == 0 ||
            touches_thread_class(thread) == BUDDY_CLASS_UNKNOWN)
            return false;
    }
    return true;
}

static void test_kernel(void **state)
{
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    Balanced balanced = {0};
    EvidenceMachine here;
    EvidenceTarget target;
    bool told;
    Team *team;

    need_balancing();
    need_nodes(2);
    /* The threads are at home before the kernel counts faults. Otherwise they would long prefer the nodes
     * they were on. */
    target = machine_target(team_start(TEAM_SHARED, false, &team));
    for (unsigned i = 0; i < TEAM_THREADS; i++)
        assert_int_equal(
            mask_set(team->tid[i], file_list("/sys/devices/system/node/node%u/cpulist", team->node)), 0);
    assert_int_equal(balancing_set("1"), 0);
    evidence_detect(machine.root_fd, true, &here);
    assert_int_equal(evidence_choose(&here, EVIDENCE_KERNEL), EVIDENCE_KERNEL);
    assert_int_equal(evidence_begin(&here, EVIDENCE_KERNEL, &target, &session), 0);
    balanced = (Balanced){session, team, topology_node_by_os(machine.topology, team->node)};
    told = eventually(is_told, &balanced);
    for (unsigned i = 0; i < TEAM_THREADS; i++) {
        const TouchThread *thread = touches_thread(evidence_touches(session), team->tid[i]);

        assert_non_null(thread);
        contract_note("kernel: thread %d prefers node %d, should %d; %" PRIu64 " faults, class %d",
                      thread->key.tid, thread->preferred.i, balanced.node.i, thread->n_samples,
                      thread->buddy.class);
    }
    assert_true(told);
}

/*
 * Detection
 */

static void test_detection(void **state)
{
    CLEANUP_FREE char *text = evidence_explain(&machine.evidence, EVIDENCE_MAX);
    EvidenceKind chosen = evidence_choose(&machine.evidence, EVIDENCE_MAX);

    assert_non_null(text);
    contract_note("evidence here: %s", text);
    contract_note("a fault costs %" PRIu32 " ns, protecting a page %" PRIu32 " ns",
                  machine.evidence.fault_nsec, machine.evidence.protect_nsec);
    assert_true(machine.evidence.abilities[chosen].works);
    /* The kernels of the lab have everything that is needed. */
    if (file_exists("/lab/info.json"))
        assert_true(machine.evidence.abilities[EVIDENCE_WRITE].works);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detection),
        cmocka_unit_test_teardown(test_own_huge, children_teardown),
        cmocka_unit_test_teardown(test_own_small, children_teardown),
        cmocka_unit_test_teardown(test_shared_huge, children_teardown),
        cmocka_unit_test_teardown(test_shared_small, children_teardown),
        cmocka_unit_test_teardown(test_held, children_teardown),
        cmocka_unit_test_teardown(test_tracked_before, children_teardown),
        cmocka_unit_test_teardown(test_tracked_meanwhile, children_teardown),
        cmocka_unit_test_teardown(test_gone, children_teardown),
        cmocka_unit_test_teardown(test_rings_of_cpus, children_teardown),
        cmocka_unit_test_teardown(test_rings_of_a_group, groups_teardown),
        cmocka_unit_test_teardown(test_moves_to_another_group, groups_teardown),
        cmocka_unit_test_setup_teardown(test_kernel, balancing_setup, balanced_teardown),
    };

    return cmocka_run_group_tests_name("contract-evidence", tests, machine_setup, machine_teardown);
}
