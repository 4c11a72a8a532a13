/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What limits a walk through the memory of a process, and what ends it, on a machine in memory. */

#include "mover-walk-fixture.h"

/*
 * Room and rate
 */

/* Adds a mapping of eight blocks in which each call stops after two pages: the first cannot be moved, and the
 * second not even be queued. */
static MachineArea *add_stopping(WalkFixture *f)
{
    MachineArea *heap = machine_add(&f->machine, HEAP, 8 * BLOCK, 0);

    for (size_t i = 0; i < heap->n_pages; i++)
        heap->flags[i] = i % 2 ? MACHINE_SHARED : MACHINE_PINNED;
    return heap;
}

/* S-OOM: nothing moves into the headroom, and what would have is counted. */
static void test_headroom(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);
    /* The watermark is 64 MiB, and a tenth of the node 1638.4 MiB. */
    const uint64_t keep = 64 * MIB + 16384 * MIB / 100 * 10;

    f->order.headroom_percent = 10;
    f->machine.free_bytes[1] = keep + 100 * MIB;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_true(f->machine.free_bytes[1] >= keep);
    assert_true(f->machine.free_bytes[1] <= keep + BLOCK);
    assert_int_equal(f->account.moved_bytes, machine_count(&f->machine, heap, 1) * f->machine.page_bytes);
    assert_true(f->account.refused_bytes[MOVER_REASON_HEADROOM] > 0);

    /* Without headroom all of it moves. */
    f->order.headroom_percent = 0;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
}

static void test_headroom_of_huge_pages(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);

    heap->huge = true;
    f->machine.free_bytes[1] = 64 * MIB + 11 * MIB;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_int_equal(f->account.moved_bytes, 10 * MIB);
    assert_int_equal(f->account.n_huge, 5);
    assert_int_equal(f->machine.free_bytes[1], 65 * MIB);
}

/* Cold page cache counts as room only if the request says so; the group's expected growth is kept free. */
static void test_room_by_order(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 32 * MIB, 0);

    f->machine.free_bytes[1] = 60 * MIB;
    f->machine.cache_bytes[1] = 100 * MIB;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_int_equal(f->account.n_calls, 0);
    f->order.spend_cache = true;
    f->order.reserve_bytes = 96 * MIB;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_int_equal(f->account.n_calls, 0);
    f->order.reserve_bytes = 0;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
}

/* S-RATE: moving all the memory takes its size at that rate, minus the burst. */
static void check_rate(WalkFixture *f, MachineArea *heap, uint64_t bytes_per_usec)
{
    uint64_t bytes = heap->n_pages * f->machine.page_bytes,
             burst = mover_bucket_burst(bytes_per_usec * 1000000);
    uint64_t began = f->machine.now_usec;

    memset(heap->node, 0, heap->n_pages);
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_in_range(f->machine.now_usec - began, (bytes - burst) / bytes_per_usec,
                    bytes / bytes_per_usec + 20000);
}

static void test_rate(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 512 * MIB, 0);

    for (int huge = 0; huge < 2; huge++) {
        heap->huge = huge;
        f->order.rate_bytes = 128000000;
        f->node.rate_bytes = 0;
        check_rate(f, heap, 128);
        /* The lower of the request's rate and the host's holds. */
        f->node.rate_bytes = 64000000;
        check_rate(f, heap, 64);
        f->order.rate_bytes = 0;
        check_rate(f, heap, 64);
    }
    /* Both are off when 0. */
    memset(heap->node, 0, heap->n_pages);
    f->node.rate_bytes = 0;
    f->paused_usec = 0;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->paused_usec, 0);
}

/* Pages that a call did not come to count against the rate only in the call that does. */
static void test_rate_of_stopped_calls(void **state)
{
    WalkFixture *f = *state;
    uint64_t began = f->machine.now_usec;

    (void)add_stopping(f);
    f->order.rate_bytes = 64000000;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.moved_bytes, 0);
    /* Each block is tried as one huge page, too. */
    assert_true(f->machine.now_usec - began <= 2 * WALK_TRIES * 8 * BLOCK / 64 + 100000);
}

/* Requests with other limits, or without one, are no credit for a request, and do not slow it down. */
static void check_rate_beside(WalkFixture *f, uint64_t other_rate)
{
    static const MoverRange near = {HEAP, HEAP + 64 * MIB}, far = {HEAP + 128 * MIB, HEAP + 192 * MIB};
    MoverOrder other = f->order;
    WalkNode node;
    Walk *walk;
    uint64_t began = f->machine.now_usec, burst = mover_bucket_burst(64000000);

    (void)machine_add(&f->machine, HEAP, 192 * MIB, 0);
    f->order.ranges = &near;
    f->order.rate_bytes = 64000000;
    other.ranges = &far;
    other.rate_bytes = other_rate;
    f->order.n_ranges = other.n_ranges = 1;
    node = f->node;
    f->node = (WalkNode){0};
    walk_reset_node(f);
    assert_int_equal(walk_new(&f->order, f->accept, 0, 1, &f->walk), 0);
    assert_int_equal(walk_new(&other, f->accept, 0, 1, &walk), 0);
    while (walk_step(f->walk, &f->node, &f->host, &f->outcome, &f->error))
        (void)walk_step(walk, &node, &f->host, &f->outcome, &f->error);
    assert_int_equal(f->outcome, MOVER_DONE);
    assert_int_equal(walk_account(f->walk)->moved_bytes, 64 * MIB);
    assert_int_equal(walk_account(walk)->moved_bytes, 64 * MIB);
    assert_true(f->machine.now_usec - began >= (64 * MIB - burst) / 64);
    walk_free(walk);
    walk_node_done(&node);
}

static void test_rate_beside_unlimited(void **state)
{
    check_rate_beside(*state, 0);
}

static void test_rate_beside_higher(void **state)
{
    check_rate_beside(*state, 2000000000);
}

/* Calls take the time aimed at, whatever a page costs. */
static void test_pace(void **state)
{
    static const uint64_t costs[] = {1, 4, 50, 150};
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 256 * MIB, 0);

    for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
        memset(heap->node, 0, heap->n_pages);
        walk_reset_node(f);
        f->machine.page_usec = costs[i];
        assert_int_equal(walk_run(f), MOVER_DONE);
        assert_true(f->account.longest_usec <= 20000);
        /* The blocked time is that of the copies alone. */
        assert_int_equal(f->account.blocked_usec, heap->n_pages * costs[i]);
    }
}

/* Huge pages that take 90 ms each, as in an emulated machine, are moved one at a time. */
static void test_pace_of_huge_pages(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    heap->huge = true;
    f->machine.huge_usec = 90000;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.longest_usec, 90000);
    assert_int_equal(f->account.n_calls, 32);

    memset(heap->node, 0, heap->n_pages);
    f->machine.huge_usec = 250;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_true(f->account.n_calls < 32);
}

/* Also where only some of the blocks are huge pages. */
static void test_pace_of_mixed_pages(void **state)
{
    WalkFixture *f = *state;

    for (size_t i = 0; i < MACHINE_AREAS; i++)
        machine_add(&f->machine, HEAP + i * 2 * BLOCK, 2 * BLOCK, 0)->huge = i % 2;
    f->node.blocks_limit = WALK_BLOCKS;
    f->machine.huge_usec = 90000;
    f->machine.page_usec = 10;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_true(f->account.longest_usec > 20000);
    for (size_t i = 0; i < MACHINE_AREAS; i++)
        memset(f->machine.areas[i].node, 0, f->machine.areas[i].n_pages);
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_in_range(f->account.longest_usec, 90000, 90020);
}

/* A call that soon stopped does not show that all it was given can be moved in that time. */
static void test_pace_of_stopped_calls(void **state)
{
    WalkFixture *f = *state;
    MachineArea *next;

    (void)add_stopping(f);
    next = machine_add(&f->machine, HEAP + 16 * BLOCK, 32 * BLOCK, 0);
    f->machine.page_usec = 100;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, next, 1), next->n_pages);
    assert_true(f->account.longest_usec <= 20000);
}

/*
 * Small processes
 */

static void test_migrate(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, MIB / 8, 0);

    heap->node[3] = 2;
    heap->node[4] = -1;
    heap->node[5] = 1;
    heap->flags[6] = MACHINE_SHARED;
    f->machine.rss_pages = 60;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->machine.n_migrates, 1);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages - 2);
    assert_int_equal(f->account.moved_bytes, (heap->n_pages - 3) * f->machine.page_bytes);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_SHARED], f->machine.page_bytes);

    /* Nothing is elsewhere: no call. */
    heap->flags[6] = 0;
    heap->node[6] = 1;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->machine.n_migrates, 1);
    assert_int_equal(f->account.n_calls, 0);
}

/* A process that is not small, or must not be moved as a whole, is moved page by page. */
static void test_no_migrate(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, MIB / 8, 0);
    const MoverRange range = {HEAP, HEAP + MIB};
    static const char *const why[] = {"ranges", "shared", "rss", "room", "refused", "hugetlb"};

    for (size_t i = 0; i < ARRAY_SIZE(why); i++) {
        unsigned before = f->machine.n_migrates;

        memset(heap->node, 0, heap->n_pages);
        f->node.pages_limit = 64;
        f->machine.rss_pages = i == 2 ? 65 : 60;
        f->order.ranges = i == 0 ? &range : NULL;
        f->order.n_ranges = i == 0;
        f->order.shared = i == 1;
        f->machine.free_bytes[1] = 64 * MIB + (i == 3 ? 16 * f->machine.page_bytes : 64 * MIB);
        f->machine.migrate_error = i == 4 ? -EPERM : 0;
        if (i == 5)
            machine_map(&f->machine, "400000-600000 rw-s 00000000 00:0f 5 /anon_hugepage (deleted)\n");
        assert_int_equal(walk_run(f), i == 3 ? MOVER_NO_ROOM : MOVER_DONE);
        assert_int_equal(f->machine.n_migrates - before, i == 4);
        if (i != 3)
            assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
        else
            assert_int_equal(machine_count(&f->machine, heap, 1), 16);
    }
}

/* What was to be moved as a whole, and is moved page by page, counts once against the rate. */
static void test_rate_without_migrate(void **state)
{
    static const uint64_t rate = 1000;
    WalkFixture *f = *state;
    uint64_t burst = mover_bucket_burst(rate);

    (void)machine_add(&f->machine, HEAP, MIB / 8, 0);
    f->order.rate_bytes = rate;
    f->machine.rss_pages = 60;
    f->machine.migrate_error = -EPERM;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.moved_bytes, MIB / 8);
    assert_int_equal(mover_gate_own(f->node.gate, rate)->bucket.level, burst - MIB / 8);

    f->machine.areas[0].node[0] = f->machine.areas[0].node[1] = 0;
    f->machine.free_bytes[1] = 64 * MIB + f->machine.page_bytes;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_int_equal(f->account.moved_bytes, f->machine.page_bytes);
    assert_int_equal(mover_gate_own(f->node.gate, rate)->bucket.level,
                     burst - MIB / 8 - f->machine.page_bytes);
}

/*
 * What ends a request
 */

static void test_gone(void **state)
{
    WalkFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    f->order.start_ticks++;
    assert_int_equal(walk_run(f), MOVER_GONE);
    assert_int_equal(f->machine.n_asks, 0);
    f->order.start_ticks--;
    f->order.pid = MACHINE_PID + 1;
    assert_int_equal(walk_run(f), MOVER_GONE);
    assert_int_equal(f->machine.n_asks, 0);
}

/* What a call may have done to the next process with this PID is not counted, and no further call is made. */
static void test_dies_meanwhile(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    heap->flags[777] = MACHINE_PINNED;
    for (unsigned i = 1; i < 40; i++) {
        memset(heap->node, 0, heap->n_pages);
        f->machine.dead = false;
        f->machine.die_in_move = i;
        f->machine.n_moves = 0;
        f->machine.moved_bytes = 0;
        walk_reset_node(f);
        assert_int_equal(walk_run(f), MOVER_GONE);
        assert_int_equal(f->machine.n_moves, i);
        assert_true(f->account.moved_bytes <= f->machine.moved_alive);
    }
}

/* After a cancel at any call, the account says what was done, and nothing more is done. */
static void test_cancel_anywhere(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 16 * MIB, 0);
    unsigned n_all;

    heap->flags[100] = MACHINE_PINNED;
    assert_int_equal(walk_run(f), MOVER_DONE);
    n_all = f->n_go_on;
    assert_true(n_all > 10);
    for (unsigned i = 1; i < n_all; i++) {
        memset(heap->node, 0, heap->n_pages);
        f->n_go_on = 0;
        f->stop_after = i;
        f->machine.moved_bytes = 0;
        if (walk_run(f) != MOVER_CANCELLED)
            break; /* the pace has changed by now */
        assert_int_equal(f->n_go_on, i + 1);
        assert_int_equal(f->account.moved_bytes, f->machine.moved_bytes);
    }
}

/* Each errno, of queries and of moves. */
static void test_errors(void **state)
{
    static const struct {
        int error;
        MoverOutcome outcome;
    } rows[] = {
        {-ESRCH, MOVER_GONE},    {-EACCES, MOVER_OUTSIDE}, {-EPERM, MOVER_DENIED},  {-EINVAL, MOVER_DENIED},
        {-ENODEV, MOVER_FAILED}, {-EFAULT, MOVER_FAILED},  {-ENOSYS, MOVER_FAILED},
    };
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        for (unsigned k = 1; k < 4; k++) {
            memset(heap->node, 0, heap->n_pages);
            f->machine.fail_move = k;
            f->machine.move_error = rows[i].error;
            assert_int_equal(walk_run(f), rows[i].outcome);
            assert_int_equal(f->error, rows[i].outcome == MOVER_FAILED ? rows[i].error : 0);

            memset(heap->node, 0, heap->n_pages);
            f->machine.fail_ask = k;
            f->machine.ask_error = rows[i].error;
            assert_int_equal(walk_run(f), rows[i].outcome);
        }
}

/* A reading that fails or makes no sense leads to no move (I10). */
static void test_unreadable(void **state)
{
    static const struct {
        const char *path;
        int error;
        MoverOutcome outcome;
    } rows[] = {
        {"maps", -ENOENT, MOVER_GONE},        {"maps", -ESRCH, MOVER_GONE},
        {"maps", -EACCES, MOVER_DENIED},      {"maps", -EFBIG, MOVER_FAILED},
        {"zoneinfo", -EIO, MOVER_FAILED},     {"meminfo", -ENOENT, MOVER_FAILED},
        {"mountinfo", -ENOMEM, MOVER_FAILED},
    };
    WalkFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        f->machine.fail_path = rows[i].path;
        f->machine.fail_read = 1;
        f->machine.read_error = rows[i].error;
        assert_int_equal(walk_run(f), rows[i].outcome);
        assert_int_equal(f->machine.n_moves, 0);
    }
    f->machine.open_error = -EMFILE;
    assert_int_equal(walk_run(f), MOVER_FAILED);
    assert_int_equal(f->error, -EMFILE);
}

/* A node that does not exist has no watermark. */
static void test_no_such_node(void **state)
{
    WalkFixture *f = *state;

    (void)machine_add(&f->machine, HEAP, 64 * MIB, 0);
    f->node.os_index = 9;
    assert_int_equal(walk_run(f), MOVER_FAILED);
    assert_int_equal(f->error, -EINVAL);
    assert_int_equal(f->machine.n_moves, 0);
}

/* A kernel that says repeatedly that it has no memory is believed. */
static long always_exhausted(void *context, pid_t pid, size_t n, void **pages, const int *nodes, int *status,
                             bool shared)
{
    return nodes ? -ENOMEM : machine_ops.move_pages(context, pid, n, pages, nodes, status, shared);
}

static void test_exhausted(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    MoverOps ops = machine_ops;

    ops.move_pages = always_exhausted;
    f->node.ops = &ops;
    assert_int_equal(walk_run(f), MOVER_NO_ROOM);
    assert_int_equal(machine_count(&f->machine, heap, 0), heap->n_pages);
    assert_true(f->account.refused_bytes[MOVER_REASON_NO_MEMORY] > 0);
    assert_int_equal(f->account.n_calls, WALK_TRIES);
}

TEST_MAIN(walk_setup, walk_teardown, test_headroom, test_headroom_of_huge_pages, test_room_by_order,
          test_rate, test_rate_of_stopped_calls, test_rate_beside_unlimited, test_rate_beside_higher,
          test_pace, test_pace_of_huge_pages, test_pace_of_mixed_pages, test_pace_of_stopped_calls,
          test_migrate, test_no_migrate, test_rate_without_migrate, test_gone, test_dies_meanwhile,
          test_cancel_anywhere, test_errors, test_unreadable, test_no_such_node, test_exhausted)
