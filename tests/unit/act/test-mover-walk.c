/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a walk through the memory of a process moves, and what is refused, on a machine in memory. */

#include "mover-walk-fixture.h"

/*
 * What is moved
 */

static void test_small_pages(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->account.moved_bytes, 64 * MIB);
    assert_int_equal(f->account.n_huge, 0);
    assert_int_equal(walk_refused(f), 0);
    /* Once more: nothing to do, and few queries. */
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.n_calls, 0);
    assert_int_equal(f->account.n_asked, 32 * 5);
    /* Several walks run at a time, so a file that may be very long is read line by line. */
    assert_in_range(f->machine.whole_max, 1, 4 * MIB);
}

/* A huge page takes nine queries and one move. */
static void test_huge_pages(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    heap->huge = true;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->account.moved_bytes, 64 * MIB);
    assert_int_equal(f->account.n_huge, 32);
    assert_int_equal(f->account.n_asked, 32 * 9);
    assert_int_equal(walk_refused(f), 0);
}

/* Areas that begin and end inside blocks, and have holes. */
static void test_odd_pieces(void **state)
{
    WalkFixture *f = *state;
    uint64_t page = f->machine.page_bytes;
    MachineArea *heap = machine_add(&f->machine, HEAP + BLOCK - 3 * page, 2 * BLOCK, 0);
    MachineArea *one = machine_add(&f->machine, HEAP + 100 * BLOCK, page, 3);
    MachineArea *stack = machine_add(&f->machine, HEAP + 200 * BLOCK, 4 * BLOCK, -1);

    heap->node[5] = -1;
    heap->node[6] = 1;
    heap->node[7] = 2;
    stack->node[stack->n_pages - 2] = 0; /* only the end of a stack is used */
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages - 1);
    assert_int_equal(machine_count(&f->machine, one, 1), 1);
    assert_int_equal(machine_count(&f->machine, stack, 1), 1);
    assert_int_equal(f->account.moved_bytes, (heap->n_pages - 2 + 2) * page);
}

/* Pages that alternate between nodes are not taken for a block on one node. */
static void test_interleaved(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);

    for (size_t i = 1; i < heap->n_pages; i += 2)
        heap->node[i] = 1;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->account.moved_bytes, 32 * MIB);
}

/* Memory on any of the accepted nodes stays. */
static void test_accepted_nodes(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 32 * MIB, 0);

    assert_int_equal(hwloc_bitmap_set(f->accept, 2), 0);
    memset(heap->node, 2, heap->n_pages / 2);
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 2), heap->n_pages / 2);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages / 2);
}

/* S-ILV: each part moves its own blocks, chosen by their address. */
static void test_parts(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 32 * MIB, 0);
    size_t per_block = walk_pages(f, BLOCK);
    uint64_t first = HEAP / BLOCK % 2;

    machine_map(&f->machine, "1000-5000 r--p 00000000 08:01 5  /usr/lib/x\n");
    assert_int_equal(walk_run_part(f, 1, 2), MOVER_DONE);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_FILE], 0);
    for (size_t i = 0; i < heap->n_pages; i++)
        assert_int_equal(heap->node[i], (i / per_block + first) % 2);
    assert_int_equal(f->account.moved_bytes, 16 * MIB);
    /* One of the parts reports what cannot be moved. */
    assert_int_equal(walk_run_part(f, 0, 2), MOVER_DONE);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_FILE], 0x4000);
}

static void test_ranges(void **state)
{
    WalkFixture *f = *state;
    uint64_t page = f->machine.page_bytes;
    MachineArea *heap = machine_add(&f->machine, HEAP, 32 * MIB, 0);
    MachineArea *other = machine_add(&f->machine, HEAP + 32 * MIB, 4 * MIB, 0);
    const MoverRange ranges[] = {
        {0x1000, 0x2000},
        {HEAP + 1, HEAP + 2},             /* one page */
        {HEAP + 4 * MIB, HEAP + 8 * MIB}, /* two blocks */
        {HEAP + 31 * MIB + page - 1, HEAP + 33 * MIB + 1} /* over the border */,
        {HEAP + 40 * MIB, UINT64_MAX},
    };

    f->order.ranges = ranges;
    f->order.n_ranges = ARRAY_SIZE(ranges);
    machine_map(&f->machine, "700000000000-700000004000 r--p 00000000 08:01 5  /usr/lib/x\n");
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(heap->node[0], 1);
    assert_int_equal(heap->node[1], 0);
    assert_int_equal(machine_count(&f->machine, heap, 1), 1 + walk_pages(f, 4 * MIB) + walk_pages(f, MIB));
    assert_int_equal(machine_count(&f->machine, other, 1), walk_pages(f, MIB) + 1);
    assert_int_equal(walk_refused(f), 0);
}

/* Each range goes to its own node, and also leaves another target node of the request for it. */
static void test_sent(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 8 * MIB, 0);
    const MoverRange ranges[] = {
        {HEAP, HEAP + 2 * MIB, {0}},
        {HEAP + 2 * MIB, HEAP + 3 * MIB, {1}},
        {HEAP + 5 * MIB, HEAP + 8 * MIB, {1}},
    };

    f->order.ranges = ranges;
    f->order.n_ranges = ARRAY_SIZE(ranges);
    f->order.sent = true;
    for (size_t i = 0; i < walk_pages(f, MIB); i++)
        heap->node[i] = 1;
    machine_map(&f->machine, "700000000000-700000004000 r--p 00000000 08:01 5  /usr/lib/x\n");
    assert_int_equal(walk_run_part(f, 1, 2), MOVER_DONE);
    assert_int_equal(f->account.moved_bytes, 4 * MIB);
    for (size_t i = 0; i < heap->n_pages; i++) {
        size_t mib = i / walk_pages(f, MIB);

        assert_int_equal(heap->node[i], mib == 0 || mib == 2 || mib >= 5 ? 1 : 0);
    }
}

/* What cannot be moved is refused with a reason, and left alone. */
static void test_kinds(void **state)
{
    WalkFixture *f = *state;

    f->machine.mountinfo = "26 24 0:22 / /dev/shm rw - tmpfs tmpfs rw\n";
    machine_map(&f->machine, "100000-200000 rw-p 00000000 00:00 0 [heap]\n"
                             "300000-301000 r--p 00000000 08:01 5 /usr/lib/x\n"
                             "400000-600000 rw-s 00000000 00:0f 5 /anon_hugepage (deleted)\n"
                             "700000-703000 rw-s 00000000 00:05 5 /dev/mem\n"
                             "800000-900000 rw-s 00000000 00:16 5 /dev/shm/x\n"
                             "rubbish\n"
                             "a00000-b00000 ---p 00000000 00:00 0\n"
                             "10000000000-30000000000 rw-p 00000000 00:00 0\n");
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_FILE], 0x1000);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_HUGETLB], 0x200000);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_DEVICE], 0x3000);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_FOREIGN], f->machine.page_bytes);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_VAST], UINT64_C(1) << 41);
    assert_int_equal(f->account.n_calls, 0);
    /* [heap] and the segment: samples, then page by page. */
    assert_int_equal(f->account.n_asked, 2 * (5 + walk_pages(f, MIB)));
}

/* Without mountinfo, memory on a tmpfs counts as a file. */
static void test_no_mountinfo(void **state)
{
    WalkFixture *f = *state;

    f->machine.mountinfo = NULL;
    machine_map(&f->machine, "800000-900000 rw-s 00000000 00:16 5 /dev/shm/x\n");
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_FILE], 0x100000);
}

/*
 * What is refused
 */

static void test_pinned(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 64 * MIB, 0);
    static const size_t pinned[] = {0, 1, 700, 701, 5000, 16000};

    if (f->machine.page_bytes != 4096)
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(pinned); i++)
        heap->flags[pinned[i]] = MACHINE_PINNED;
    assert_int_equal(walk_run(f), MOVER_DONE);
    /* All others moved, although the kernel stopped at each of these. */
    assert_int_equal(machine_count(&f->machine, heap, 0), ARRAY_SIZE(pinned));
    assert_int_equal(f->account.moved_bytes, 64 * MIB - ARRAY_SIZE(pinned) * 4096);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_BUSY], ARRAY_SIZE(pinned) * 4096);
    /* Three attempts in all: two pauses. */
    assert_int_equal(f->paused_usec, (WALK_TRIES - 1) * WALK_AGAIN_USEC);
    assert_true(f->account.n_calls < 64);
}

/* The kernel reports a page that cannot be queued, and then stops because of one before it. */
static void test_pinned_before_others(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, BLOCK, 0);

    for (size_t i = 2; i < heap->n_pages; i += 4) {
        heap->flags[i] = MACHINE_PINNED;
        heap->flags[i + 1] = MACHINE_SHARED;
    }
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages / 2);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_BUSY], BLOCK / 4);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_SHARED], BLOCK / 4);
}

/* A page that was busy only for a moment moves later. */
static void test_busy_for_a_moment(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 8 * MIB, 0);
    bool more = true;

    memset(heap->flags, MACHINE_BUSY, 10);
    assert_int_equal(walk_new(&f->order, f->accept, 0, 1, &f->walk), 0);
    while (more) {
        more = walk_step(f->walk, &f->node, &f->host, &f->outcome, &f->error);
        if (f->machine.moved_bytes > 0)
            memset(heap->flags, 0, heap->n_pages);
    }
    f->account = *walk_account(f->walk);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->account.moved_bytes, 8 * MIB);
    assert_int_equal(walk_refused(f), 0);
}

static void test_shared(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 8 * MIB, 0);

    memset(heap->flags, MACHINE_SHARED, heap->n_pages);
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 0), heap->n_pages);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_SHARED], 8 * MIB);
    /* Trying that again would not help. */
    assert_int_equal(f->paused_usec, 0);

    f->order.shared = true;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(walk_refused(f), 0);
}

/* A pinned huge page is refused as a whole; its neighbours move. */
static void test_huge_pinned(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 32 * MIB, 0);
    size_t per_block = walk_pages(f, BLOCK);

    heap->huge = true;
    memset(heap->flags + 3 * per_block, MACHINE_PINNED, per_block);
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 0), per_block);
    assert_int_equal(f->account.moved_bytes, 30 * MIB);
    assert_int_equal(f->account.n_huge, 15);
    assert_int_equal(f->account.refused_bytes[MOVER_REASON_BUSY], BLOCK);
}

/* If each page of an unrecognized huge page is named, it still moves once. */
static void test_huge_by_all_names(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 4 * MIB, 0);
    const MoverRange range = {HEAP + f->machine.page_bytes, HEAP + 4 * MIB - 1};

    heap->huge = true;
    f->order.ranges = &range;
    f->order.n_ranges = 1;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(f->machine.moved_bytes, 4 * MIB);
    assert_int_equal(walk_refused(f), 0);
}

static void test_no_memory(void **state)
{
    WalkFixture *f = *state;
    MachineArea *heap = machine_add(&f->machine, HEAP, 8 * MIB, 0);

    f->machine.fail_move = 1;
    f->machine.move_error = -ENOMEM;
    assert_int_equal(walk_run(f), MOVER_DONE);
    assert_int_equal(machine_count(&f->machine, heap, 1), heap->n_pages);
    assert_int_equal(walk_refused(f), 0);
}

/*
 * Random memory
 */

/* Fills an area with pages on random nodes and with random flags; those of a huge page are the same. */
static void fill_area(const WalkFixture *f, MachineArea *area, uint64_t *seed)
{
    static const uint8_t flags[] = {MACHINE_PINNED, MACHINE_BUSY, MACHINE_SHARED};
    size_t n = area->huge ? walk_pages(f, BLOCK) : 1;
    uint32_t n_odd = machine_random(seed) % 3 == 0 ? 0 : 1 + machine_random(seed) % 50;

    for (size_t i = 0; i < area->n_pages; i += n) {
        int8_t node = (int8_t)(machine_random(seed) % 100 < 80 ? 0 : (int)(machine_random(seed) % 5) - 1);
        bool odd = machine_random(seed) % 1000 < n_odd * n;

        memset(area->node + i, node, n);
        memset(area->flags + i, odd ? flags[machine_random(seed) % 3] : 0, n);
    }
}

/* Bytes elsewhere with the flag. */
static uint64_t flagged(const WalkFixture *f, const MachineArea *area, unsigned flag)
{
    size_t n = 0;

    for (size_t i = 0; i < area->n_pages; i++)
        n += area->node[i] >= 0 && area->node[i] != 1 && (area->flags[i] & flag);
    return n * f->machine.page_bytes;
}

/* Whatever can move does, what cannot is counted under its reason, and the counts are those of the machine. */
static void test_random(void **state)
{
    WalkFixture *f = *state;
    uint64_t seed = 1, page = f->machine.page_bytes;
    MachineArea *areas[6];

    for (size_t i = 0; i < ARRAY_SIZE(areas); i++) {
        uint64_t blocks = 1 + machine_random(&seed) % 7, start = HEAP + i * 64 * MIB;

        areas[i] = machine_add(&f->machine, start + (i % 2 ? 0 : 5 * page),
                               blocks * BLOCK - (i == 4 ? 9 * page : 0), 0);
        areas[i]->huge = i % 2;
    }
    for (unsigned round = 0; round < 300; round++) {
        uint64_t busy = 0, shared = 0;

        for (size_t i = 0; i < ARRAY_SIZE(areas); i++) {
            fill_area(f, areas[i], &seed);
            busy += flagged(f, areas[i], MACHINE_PINNED | MACHINE_BUSY);
            shared += flagged(f, areas[i], MACHINE_SHARED);
        }
        for (size_t i = 0; i < MACHINE_NODES; i++)
            f->machine.free_bytes[i] = 8192 * MIB;
        f->machine.moved_bytes = 0;
        assert_int_equal(walk_run(f), MOVER_DONE);
        for (size_t i = 0; i < ARRAY_SIZE(areas); i++)
            for (size_t k = 0; k < areas[i]->n_pages; k++)
                if (areas[i]->node[k] >= 0 && areas[i]->node[k] != 1 && areas[i]->flags[k] == 0)
                    fail_msg("round %u: page %zu of area %zu stayed on node %d", round, k, i,
                             areas[i]->node[k]);
        assert_int_equal(f->account.moved_bytes, f->machine.moved_bytes);
        assert_int_equal(f->account.refused_bytes[MOVER_REASON_BUSY], busy);
        assert_int_equal(f->account.refused_bytes[MOVER_REASON_SHARED], shared);
        assert_int_equal(walk_refused(f), busy + shared);
    }
}

TEST_MAIN(walk_setup, walk_teardown, test_small_pages, test_huge_pages, test_odd_pieces, test_interleaved,
          test_accepted_nodes, test_parts, test_ranges, test_sent, test_kinds, test_no_mountinfo, test_pinned,
          test_pinned_before_others, test_busy_for_a_moment, test_shared, test_huge_pinned,
          test_huge_by_all_names, test_no_memory, test_random)
