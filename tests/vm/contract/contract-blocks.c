/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Not of the kernel alone: the whole path from use of memory to its location. The threads of one process run
 * on two nodes. The memory of each is on the node of the other, and both use some. Write hint faults tell
 * which thread uses what, plan/memory/blocks.h says what goes where, and the mover moves it. */

#include "act/mover/mover.h"
#include "base/time.h"
#include "machine.h"
#include "memory.h"
#include "plan/memory/blocks.h"
#include "probe/memory/region-maps.h"
#include "threads.h"

#include <fcntl.h>

#define N_THREADS 2U
/* Huge pages, for each thread and for both. Small ones take long, above all in a guest. */
#define OWN_BYTES  (4 * HUGE)
#define BOTH_BYTES (2 * HUGE)
#define N_ROUNDS   6U
#define N_LOOKS    100U /* at most, for that many rounds */

typedef struct Team {
    unsigned node[N_THREADS];
    char *volatile own[N_THREADS];
    char *volatile both;
    volatile pid_t tid[N_THREADS];
    volatile uint64_t pass[N_THREADS];
    volatile bool stop;
    volatile bool checked[N_THREADS], good[N_THREADS];
} Team;

static void write_all(volatile char *p, size_t bytes, unsigned index)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        p[at + index]++;
}

/* True when each page of a thread's own memory says how often it was written. */
static bool check_all(const volatile char *p, size_t bytes, unsigned index, uint64_t n)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        if (p[at + index] != (char)n)
            return false;
    return true;
}

static void member_main(void *userdata, unsigned index)
{
    Team *team = userdata;
    uint64_t n = 0;

    team->tid[index] = gettid();
    while (!team->stop) {
        /* One thread begins with shared memory, the other ends with it, so that each comes first in some of it. */
        write_all(team->both + (index + n) * HUGE % BOTH_BYTES, HUGE, index);
        write_all(team->own[index], OWN_BYTES, index);
        write_all(team->both, BOTH_BYTES, index);
        team->pass[index] = ++n;
    }
    team->good[index] = check_all(team->own[index], OWN_BYTES, index, n);
    team->checked[index] = true;
}

static void team_main(void *userdata)
{
    Team *team = userdata;

    team->both = huge_on(team->node[0], BOTH_BYTES / HUGE);
    for (unsigned i = 0; i < N_THREADS; i++) {
        team->own[i] = huge_on(team->node[1 - i], OWN_BYTES / HUGE);
        memset(team->own[i], 0, OWN_BYTES);
    }
    threads_run(N_THREADS, member_main, team);
}

static bool has_begun(void *userdata)
{
    const Team *team = userdata;

    return team->pass[0] >= 2 && team->pass[1] >= 2;
}

static bool has_checked(void *userdata)
{
    const Team *team = userdata;

    return team->checked[0] && team->checked[1];
}

static pid_t team_start(Team **ret)
{
    Team *team = shared_alloc(sizeof(*team));
    pid_t pid;

    team->node[0] = bit_first(memory_nodes());
    team->node[1] = bit_last(memory_nodes());
    pid = child_start(team_main, team);
    assert_true(eventually(has_begun, team));
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(
            mask_set(team->tid[i], file_list("/sys/devices/system/node/node%u/cpulist", team->node[i])), 0);
    *ret = team;
    return pid;
}

/* The node that a thread runs on. */
static NodeIx node_of(void *userdata, pid_t tid, bool alone)
{
    const Team *team = userdata;

    for (unsigned i = 0; i < N_THREADS; i++)
        if (team->tid[i] == tid)
            return topology_node_by_os(machine.topology, team->node[i]);
    return NODE_NONE;
}

static void look(EvidenceSession *session, unsigned n_rounds)
{
    const Touches *touches = evidence_touches(session);
    uint32_t until = touches->n_rounds + n_rounds;

    for (unsigned i = 0; i < N_LOOKS && touches->n_rounds < until; i++) {
        EvidenceNow now = {.now_usec = time_now_usec(), .period_usec = 100000, .cpu_permille = 2000};
        EvidenceRound round;

        assert_int_equal(evidence_round(session, &now, &round), 0);
        while (time_now_usec() < round.due_usec)
            nap();
    }
    assert_int_equal(touches->n_rounds, until);
}

static void judge(Blocks *blocks, EvidenceSession *session, Team *team, pid_t pid)
{
    const BlocksThreads threads = {node_of, team};
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    BlocksRules rules = {.two_stage = true, .to_nodes = nodes};
    CLEANUP_CLOSE int dir_fd = -1;
    MemoryRegions regions = {0};
    char path[64];

    assert_non_null(nodes);
    for (unsigned i = 0; i < N_THREADS; i++)
        hwloc_bitmap_set(nodes, (unsigned)topology_node_by_os(machine.topology, team->node[i]).i);
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(region_maps_read(dir_fd, true, NULL, &regions), 0);
    assert_int_equal(blocks_judge(blocks, evidence_touches(session), &regions, &rules, &threads), 0);
    contract_note("judged: %zu ranges to move; so far %u move, %u local, %u unknown, %u mixed, %u busy",
                  blocks->n_moves, (unsigned)blocks->n[BLOCKS_MOVE], (unsigned)blocks->n[BLOCKS_LOCAL],
                  (unsigned)blocks->n[BLOCKS_UNKNOWN], (unsigned)blocks->n[BLOCKS_MIXED],
                  (unsigned)blocks->n[BLOCKS_BUSY]);
    regions_done(&regions);
    hwloc_bitmap_free(nodes);
}

static bool is_over(void *userdata)
{
    MoverResult result;
    const MoverAccount *account = &result.account;

    if (mover_collect(userdata, &result) == 0)
        return false;
    contract_note("moved: %s, %u KiB in %u calls, which took %u ms, the longest %u ms",
                  mover_outcome_names[result.outcome], (unsigned)(account->moved_bytes >> 10),
                  (unsigned)account->n_calls, (unsigned)(account->blocked_usec / 1000),
                  (unsigned)(account->longest_usec / 1000));
    assert_int_equal(result.outcome, MOVER_DONE);
    return true;
}

/* Submits one migration request for each node. */
static void carry_out(const Blocks *blocks, Mover *mover, const EvidenceTarget *target)
{
    hwloc_bitmap_t node = hwloc_bitmap_alloc();
    MoverRange *ranges = calloc(blocks->n_moves + 1, sizeof(*ranges));

    assert_true(node && ranges);
    for (uint32_t i = 0; i < machine.topology->n_nodes; i++) {
        MoverOrder order = {
            .pid = target->pid, .start_ticks = target->start_ticks, .ranges = ranges, .to_nodes = node};
        uint64_t id;

        for (size_t k = 0; k < blocks->n_moves; k++)
            if ((uint32_t)blocks->moves[k].to.i == i)
                ranges[order.n_ranges++] = (MoverRange){blocks->moves[k].start, blocks->moves[k].end};
        if (order.n_ranges == 0)
            continue;
        hwloc_bitmap_only(node, i);
        assert_int_equal(mover_submit(mover, &order, &id), 0);
        assert_true(eventually(is_over, mover));
    }
    free(ranges);
    hwloc_bitmap_free(node);
}

static size_t count(const Team *team, pid_t pid, unsigned index, unsigned node)
{
    return pages_count(pid, team->own[index], OWN_BYTES / PAGE, (int)node);
}

static void test_follow(void **state)
{
    const size_t n_pages = OWN_BYTES / PAGE, n_shared = BOTH_BYTES / PAGE;
    CLEANUP(evidence_end_p) EvidenceSession *session = NULL;
    CLEANUP(mover_free_p) Mover *mover = NULL;
    EvidenceTarget target;
    size_t shared = 0;
    Blocks blocks;
    Team *team;

    need_nodes(2);
    need_write();
    target = machine_target(team_start(&team));
    assert_int_equal(mover_new(NULL, NULL, machine.root_fd, machine.topology, &mover), 0);
    assert_int_equal(evidence_begin(&machine.evidence, EVIDENCE_WRITE, &target, &session), 0);
    assert_int_equal(blocks_init(&blocks, machine.topology->n_nodes), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(count(team, target.pid, i, team->node[i]), 0);

    /* Memory that was not touched during one turn has another chance, and shared memory may look like one
     * thread's at first. */
    for (unsigned i = 0; i < 3; i++) {
        look(session, N_ROUNDS);
        judge(&blocks, session, team, target.pid);
        carry_out(&blocks, mover, &target);
        if (i == 0)
            shared = pages_count(target.pid, team->both, n_shared, (int)team->node[0]);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        contract_note("thread %u: %zu of %zu pages are where it lives", i,
                      count(team, target.pid, i, team->node[i]), n_pages);
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_true(count(team, target.pid, i, team->node[i]) >= n_pages * 7 / 8);
    /* But it does not move back and forth. */
    assert_int_equal(pages_count(target.pid, team->both, n_shared, (int)team->node[0]), shared);

    team->stop = true;
    assert_true(eventually(has_checked, team));
    assert_true(team->good[0] && team->good[1]);
    blocks_done(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_follow, children_teardown),
    };

    return cmocka_run_group_tests_name("contract-blocks", tests, machine_setup, machine_teardown);
}
