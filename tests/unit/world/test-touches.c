/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which threads access which memory. */

#include "../touches-test.h"
#include "sample.h"

#define BASE (512 * BLOCK)

static bool end_round(int32_t node)
{
    bool any;

    assert_int_equal(touches_gather(&touches), 0);
    for (size_t i = 0; i < touches.n_blocks; i++)
        touches.blocks[i].node.i = node;
    any = touches_fold(&touches);
    assert_true(touches_check(&touches));
    return any;
}

static uint64_t average(pid_t tid, int32_t node, FaultsKind kind)
{
    return touches_thread(&touches, tid)->faults.nodes[node].memory[kind];
}

/* That many rounds in which one thread touches one address. */
static void touch_rounds(unsigned n, pid_t tid, uint64_t address)
{
    for (unsigned i = 0; i < n; i++) {
        touch(tid, address);
        assert_true(end_round(0));
    }
}

/* The process with its threads up to `last`. */
static World *world_of(pid_t last)
{
    World *world = sample_empty();

    assert_int_equal(sample_process(world, 11, -1, -1), 0);
    for (pid_t tid = 11; tid <= last; tid++) {
        int at = sample_task(world, 11, tid, 0, 0);

        assert_true(at >= 0);
        world->tasks[at].start_ticks = 5;
    }
    return world;
}

static void test_blocks(void **state)
{
    /* In random order, several samples in one block. */
    touch(11, BASE + 3 * BLOCK + 4096);
    touch(12, BASE + 5);
    touch(11, BASE + 3 * BLOCK + 8192);
    touch(12, BASE + BLOCK - 1);
    touch(11, BASE + BLOCK);
    assert_true(end_round(1));
    assert_int_equal(touches.n_blocks, 3);
    assert_int_equal(touches.blocks[0].address, BASE + BLOCK - 1);
    assert_int_equal(touches.blocks[0].last_tid, 12);
    assert_int_equal(touches.blocks[1].address, BASE + BLOCK);
    assert_int_equal(touches.blocks[2].address, BASE + 3 * BLOCK + 8192);
    assert_int_equal(touches.blocks[2].owners[0].tid, 11);
    assert_int_equal(touches.blocks[2].owners[0].weight, TOUCHES_ROUND);
    assert_int_equal(touches.blocks[2].last_node.i, 0);
    /* A block counts the same whatever the number of its samples. */
    assert_int_equal(average(11, 1, FAULTS_KIND_PRIVATE), 2 * TOUCHES_ROUND);
    assert_int_equal(average(12, 1, FAULTS_KIND_PRIVATE), TOUCHES_ROUND);
    assert_int_equal(average(12, 0, FAULTS_KIND_PRIVATE), 0);
    assert_int_equal(touches_thread(&touches, 11)->n_samples, 3);
    assert_int_equal(touches_thread(&touches, 11)->n_blocks, 2);

    /* The next round is merged with the earlier ones. */
    touch(13, BASE + 2 * BLOCK);
    touch(12, BASE + 1);
    touch(12, BASE - 1);
    touch(12, BASE + 9 * BLOCK);
    assert_true(end_round(0));
    assert_int_equal(touches.n_blocks, 6);
    assert_int_equal(touches.blocks[1].n_rounds, 2);
    assert_int_equal(touches.blocks[1].owners[0].weight, TOUCHES_ROUND / 2 + TOUCHES_ROUND);
    assert_int_equal(touches.blocks[3].last_tid, 13);
    assert_int_equal(touches.blocks[5].last_round, 2);
    assert_int_equal(touches.n_taken, 9);
}

static void touch_on(pid_t tid, uint64_t address, int32_t node)
{
    const Touch one = {.address = address, .tid = tid, .cpu_node = {node}};

    assert_int_equal(touches_add(&touches, &one), 0);
}

/* For how many rounds all samples of a thread have been on one node. */
static void test_node(void **state)
{
    const TouchThread *thread = touches_thread(&touches, 11);

    assert_int_equal(thread->node.i, -1);
    for (uint32_t i = 1; i <= 3; i++) {
        touch_on(11, BASE, 1);
        touch_on(11, BASE + 3 * BLOCK, 1);
        assert_true(end_round(0));
        assert_int_equal(thread->node.i, 1);
        assert_int_equal(thread->node_rounds, i);
    }
    touch_on(12, BASE, 0); /* a round without it changes nothing */
    assert_true(end_round(0));
    assert_int_equal(thread->node_rounds, 3);
    touch_on(11, BASE, 1); /* two nodes in one block */
    touch_on(11, BASE + 4096, 0);
    touch_on(11, BASE + 3 * BLOCK, 1);
    assert_true(end_round(0));
    assert_int_equal(thread->node.i, -1);
    assert_int_equal(thread->main_node.i, 1);
    assert_int_equal(thread->node_rounds, 0);
    touch_on(11, BASE, 0);
    assert_true(end_round(0));
    assert_int_equal(thread->node.i, 0);
    assert_int_equal(thread->node_rounds, 1);
    touch_on(11, BASE, 1);
    assert_true(end_round(0));
    assert_int_equal(thread->node.i, 1);
    assert_int_equal(thread->node_rounds, 1);
    touch_on(11, BASE, -1); /* not known */
    assert_true(end_round(0));
    assert_int_equal(thread->node.i, -1);
    touch_on(11, BASE, 1);
    assert_true(end_round(0));
    assert_int_equal(touches_forget_thread(&touches, 11), 0);
    assert_int_equal(thread->node.i, -1);
    assert_int_equal(thread->node_rounds, 0);
}

static void test_no_round(void **state)
{
    touch_rounds(1, 11, BASE);
    assert_false(end_round(0));
    assert_int_equal(touches.n_rounds, 1);
    assert_int_equal(average(11, 0, FAULTS_KIND_PRIVATE), TOUCHES_ROUND);
}

/* Blocks used by one thread, and blocks used by two in turn. */
static void test_private_and_shared(void **state)
{
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 8; i++) {
            touch(11, BASE + i * BLOCK);
            touch(round % 2 == 0 ? 13 : 14, BASE + (100 + i) * BLOCK);
        }
        assert_true(end_round(1));
        if (round + 1 < TOUCHES_ROUNDS_MIN) {
            assert_int_equal(touches_summary(&touches).n_judged, 0);
            assert_int_equal(touches_owner(&touches.blocks[0]), 0);
        }
    }
    assert_int_equal(touches_owner(&touches.blocks[0]), 11);
    assert_int_equal(touches_owner(&touches.blocks[15]), 0);
    assert_int_equal(touches_summary(&touches).n_judged, 16);
    assert_int_equal(touches_summary(&touches).overlap_permille, 500);
    /* The blocks of 11 are on another node. */
    assert_int_equal(touches_summary(&touches).n_remote, 8);
    assert_int_equal(touches_summary(&touches).n_local, 8);

    assert_int_equal(touches_thread_class(touches_thread(&touches, 11)), BUDDY_CLASS_PRIVATE);
    assert_int_equal(touches_thread_class(touches_thread(&touches, 13)), BUDDY_CLASS_SHARED);
    assert_int_equal(touches_thread_class(touches_thread(&touches, 14)), BUDDY_CLASS_SHARED);
    assert_int_equal(touches_thread_class(touches_thread(&touches, 12)), BUDDY_CLASS_UNKNOWN);
    /* The later thread has the earlier one as its buddy. */
    assert_int_equal(touches_thread(&touches, 14)->buddy.buddy.tid, 13);
    assert_int_equal(touches_thread(&touches, 13)->buddy.buddy.tid, 0);
}

/* Threads that share memory on another node find their buddies, too: they are to come together there. */
static void test_buddies_from_afar(void **state)
{
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 8; i++)
            touch(round % 2 == 0 ? 13 : 14, BASE + i * BLOCK);
        assert_true(end_round(0));
    }
    assert_int_equal(touches_summary(&touches).n_local, 0);
    assert_int_equal(touches_thread(&touches, 14)->buddy.buddy.tid, 13);
}

/* Threads are identified by start time as well: 13 is another thread in this World. */
static void test_told(void **state)
{
    CLEANUP(world_free_p) World *world = world_of(14);

    world->tasks[2].start_ticks = 6;
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 8; i++) {
            touch(11, BASE + i * BLOCK);
            touch(round % 2 == 0 ? 13 : 14, BASE + (100 + i) * BLOCK);
        }
        assert_true(end_round(1));
    }
    assert_int_equal(touches_tell(&touches, world, 77), 0);
    assert_int_equal(world->tasks[0].use->pages[0], 0);
    assert_int_equal(world->tasks[0].use->pages[1], average(11, 1, FAULTS_KIND_PRIVATE));
    assert_int_equal(world->tasks[0].use->private_permille,
                     898); /* 23.5 of 24.5; the lower end of that interval */
    assert_int_equal(world->tasks[0].use->buddy.tid, 0);
    assert_int_equal(world->tasks[0].use->measured_usec, 77);
    assert_null(world->tasks[1].use); /* not seen */
    assert_null(world->tasks[2].use);
    assert_true(world->tasks[3].use->private_permille < 500);
    assert_int_equal(world->tasks[3].use->buddy.tid, 13);
    assert_int_equal(world->tasks[3].use->buddy.start_ticks, 5);
}

/* Two threads in one block in one round: the block is shared, in halves. */
static void test_together(void **state)
{
    for (unsigned round = 0; round < 3; round++) {
        touch(11, BASE);
        touch(12, BASE + 4096);
        touch(12, BASE + 8192);
        touch(12, BASE + 12288);
        assert_true(end_round(0));
    }
    assert_int_equal(touches.blocks[0].last_tid, 12);
    assert_int_equal(touches_owner(&touches.blocks[0]), 0);
    assert_int_equal(average(11, 0, FAULTS_KIND_PRIVATE), 0);
    /* 128, 64 + 128, 96 + 128. */
    assert_int_equal(average(11, 0, FAULTS_KIND_SHARED), 224);
    assert_int_equal(touches_summary(&touches).overlap_permille, 1000);
}

/* The thread that touched everything first does not hide the block's user for long, and not at all once it is
 * forgotten. */
static void test_forgotten(void **state)
{
    touch_rounds(5, 11, BASE);
    assert_int_equal(touches_owner(&touches.blocks[0]), 11);
    assert_int_equal(touches_forget_thread(&touches, 11), 0);
    assert_true(touches_check(&touches));
    assert_int_equal(touches_owner(&touches.blocks[0]), 0);
    assert_int_equal(average(11, 0, FAULTS_KIND_PRIVATE), 0);
    touch_rounds(1, 12, BASE);
    assert_int_equal(touches_owner(&touches.blocks[0]), 12);
    assert_int_equal(average(12, 0, FAULTS_KIND_PRIVATE), TOUCHES_ROUND);

    assert_int_equal(touches_remove_thread(&touches, 12), 0);
    assert_null(touches_thread(&touches, 12));
    assert_int_equal(touches_remove_thread(&touches, 12), -ENOENT);
    assert_int_equal(touches_forget_thread(&touches, 12), -ENOENT);
    assert_int_equal(touches.blocks[0].last_tid, 0);
    assert_int_equal(touches.n_threads, 3);
    assert_non_null(touches_thread(&touches, 13));
}

/* A new owner takes over a block in two rounds. One round is not enough for an intruder. */
static void test_changes_hands(void **state)
{
    touch_rounds(8, 11, BASE);
    touch_rounds(1, 13, BASE);
    assert_int_equal(touches_owner(&touches.blocks[0]), 0);
    touch_rounds(2, 13, BASE);
    assert_int_equal(touches_owner(&touches.blocks[0]), 13);
}

/* Adds threads up to `last`. */
static void add_threads(pid_t last)
{
    for (pid_t tid = 15; tid <= last; tid++)
        assert_int_equal(touches_add_thread(&touches, (TaskKey){11, tid, 5}), 0);
}

/* If more threads use a block than are remembered, the existence of the others is not forgotten. */
static void test_many(void **state)
{
    add_threads(21);
    for (int round = 0; round < 12; round++) {
        for (pid_t tid = 11; tid <= 21; tid++)
            touch(tid, BASE + (uint64_t)tid * 4096);
        assert_true(end_round(0));
    }
    assert_in_range(touches_weight(&touches.blocks[0]), 2 * TOUCHES_ROUND - 32, 2 * TOUCHES_ROUND);
    assert_true(touches.blocks[0].others > TOUCHES_ROUND / 8);
    assert_true(touches_shared(&touches.blocks[0]));
    touch_rounds(10, 13, BASE);
    assert_int_equal(touches.blocks[0].others, 0);
    assert_int_equal(touches_owner(&touches.blocks[0]), 13);
}

/* Two threads that share all blocks, each taking half at random, are now and then alone at a block by chance.
 * That does not make it theirs. */
static void test_shared_by_halves(void **state)
{
    CLEANUP(world_free_p) World *world = world_of(12);
    uint32_t seed = 1;

    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 8; i++) {
            seed = seed * 1103515245U + 12345U;
            touch((pid_t)(11 + (seed >> 16) % 2), BASE + i * BLOCK);
        }
        assert_true(end_round(1));
        if (round < 10)
            continue;
        assert_int_equal(touches_tell(&touches, world, 77), 0);
        for (int i = 0; i < 2; i++)
            assert_in_range(world->tasks[i].use->private_permille, 0, 250);
    }
}

/* Six threads share memory in threes. In each three, all but the first have a buddy, of the same three. */
static void test_sets(void **state)
{
    add_threads(16);
    for (int round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 8; i++) {
            touch((pid_t)(11 + (i + (unsigned)round) % 3), BASE + i * BLOCK);
            touch((pid_t)(14 + (i + (unsigned)round) % 3), BASE + (8 + i) * BLOCK);
        }
        assert_true(end_round(0));
    }
    for (pid_t tid = 11; tid <= 16; tid++) {
        pid_t first = tid < 14 ? 11 : 14, buddy = touches_thread(&touches, tid)->buddy.buddy.tid;

        assert_true(tid == first ? buddy == 0 : buddy >= first && buddy < tid);
    }
}

/* The state of a set: NEW when it has just formed, or a thread joined or left; later, whether its threads
 * also share with others. */
static void test_set_states(void **state)
{
    TouchSet of;

    assert_null(touches_set(&touches, 10, &of));
    for (int round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 8; i++)
            touch((pid_t)(11 + (i + (unsigned)round) % 2), BASE + i * BLOCK);
        assert_true(end_round(0));
        assert_non_null(touches_set(&touches, 12, &of));
        assert_int_equal(of, round < 2 ? TOUCH_SET_NEW : TOUCH_SET_CLOSED);
    }
    assert_int_equal(touches_set(&touches, 12, &of)->key.tid, 11);
    /* 13 and 14 use the same memory. Buddies are kept for some rounds. */
    for (unsigned i = 0; i < 8; i++)
        touch((pid_t)(13 + i % 2), BASE + i * BLOCK);
    assert_true(end_round(0));
    assert_non_null(touches_set(&touches, 12, &of));
    assert_int_equal(of, TOUCH_SET_NEW);
    assert_int_equal(touches_set(&touches, 14, &of)->key.tid, 11);
    /* 11 follows 14, which then ends: another thread may get its TID. */
    for (unsigned i = 1; i < 8; i += 2)
        touch(11, BASE + i * BLOCK);
    assert_true(end_round(0));
    assert_int_equal(touches_remove_thread(&touches, 14), 0);
    for (size_t i = 0; i < touches.n_threads; i++)
        for (size_t k = 0; k < TOUCHES_PARTNERS; k++)
            assert_int_not_equal(touches.threads[i].partners[k].tid, 14);
    for (unsigned i = 0; i < 8; i++)
        touch(11, BASE + i * BLOCK);
    assert_true(end_round(0));
    assert_null(touches_set(&touches, 14, &of));
}

/* Two pairs, and a main thread that meets all of them in one block: it does not connect them. */
static void test_common_block(void **state)
{
    TouchSet of;

    add_threads(15);
    for (int round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 8; i++) {
            touch((pid_t)(12 + (i + (unsigned)round) % 2), BASE + i * BLOCK);
            touch((pid_t)(14 + (i + (unsigned)round) % 2), BASE + (8 + i) * BLOCK);
        }
        for (pid_t tid = 11; tid <= 15; tid++)
            touch(tid == 11 + round % 5 ? 11 : tid, BASE + 16 * BLOCK + (uint64_t)tid * 4096);
        assert_true(end_round(0));
    }
    for (pid_t tid = 11; tid <= 15; tid++)
        assert_int_equal(touches_set(&touches, tid, &of)->key.tid, tid == 11 ? 11 : tid < 14 ? 12 : 14);
    assert_int_equal(of, TOUCH_SET_CLOSED);
}

/* A thread ends between its sample and the fold. */
static void test_ends_in_the_round(void **state)
{
    touch(11, BASE);
    touch(12, BASE);
    assert_int_equal(touches_remove_thread(&touches, 11), 0);
    assert_true(end_round(0));
    assert_int_equal(touches.blocks[0].owners[0].tid, 12);
    assert_int_equal(touches.blocks[0].owners[1].tid, 0);
    touch(11, BASE);
    assert_int_equal(touches.n_foreign, 1);
    assert_false(end_round(0));
    assert_int_equal(touches_add_thread(&touches, (TaskKey){11, 12, 6}), -EEXIST);
}

/* The node of a block is not known: the block has an owner, but no averages change. */
static void test_nowhere(void **state)
{
    for (unsigned round = 0; round < 3; round++) {
        touch(11, BASE);
        assert_true(end_round(-1));
    }
    assert_int_equal(touches_owner(&touches.blocks[0]), 11);
    assert_int_equal(faults_total(&touches_thread(&touches, 11)->faults), 0);
    assert_int_equal(touches_summary(&touches).n_local + touches_summary(&touches).n_remote, 0);
}

static void test_old_blocks(void **state)
{
    touch_rounds(1, 11, BASE);
    for (unsigned round = 0; round < TOUCHES_ROUNDS_KEPT; round++) {
        assert_int_equal(touches.blocks[0].address, BASE);
        touch_rounds(1, 11, BASE + BLOCK);
    }
    assert_int_equal(touches.n_blocks, 1);
    assert_int_equal(touches.blocks[0].address, BASE + BLOCK);
}

static void test_limits(void **state)
{
    for (unsigned i = 0; i < TOUCHES_SAMPLES_MAX + 3; i++)
        touch(11, BASE + i * 4096ULL);
    assert_int_equal(touches.n_dropped, 3);
    assert_true(end_round(0));
    assert_int_equal(touches.n_blocks, TOUCHES_SAMPLES_MAX / 512);

    for (unsigned i = 0; i < TOUCHES_SAMPLES_MAX; i++)
        touch(11, BASE + i * BLOCK);
    assert_true(end_round(0));
    assert_int_equal(touches.n_blocks, TOUCHES_BLOCKS_MAX);
    /* Blocks at the lowest addresses still fit; known blocks are counted as before. */
    touch(11, BASE - BLOCK);
    touch(11, BASE + BLOCK);
    assert_true(end_round(0));
    assert_int_equal(touches.n_blocks, TOUCHES_BLOCKS_MAX);
    assert_int_equal(touches.n_dropped, 4);
    assert_int_equal(touches.blocks[1].n_rounds, 3);

    for (pid_t tid = 100; touches.n_threads < TOUCHES_THREADS_MAX; tid++)
        assert_int_equal(touches_add_thread(&touches, (TaskKey){11, tid, 5}), 0);
    assert_int_equal(touches_add_thread(&touches, (TaskKey){11, 99, 5}), -E2BIG);
}

/* Two threads share all blocks. By chance, 11 was alone at five of the six blocks it touched again, which is
 * more than three quarters. */
static void test_alone_by_chance(void **state)
{
    CLEANUP(world_free_p) World *world = world_of(12);

    for (unsigned i = 0; i < 6; i++)
        touch(11, BASE + i * BLOCK);
    assert_true(end_round(0));
    for (unsigned i = 0; i < 6; i++)
        touch(i == 5 ? 12 : 11, BASE + i * BLOCK);
    assert_true(end_round(0));
    for (unsigned i = 0; i < 6; i++)
        touch(i == 5 ? 11 : 12, BASE + i * BLOCK);
    assert_true(end_round(0));
    assert_int_equal(touches_tell(&touches, world, 77), 0);
    assert_in_range(world->tasks[0].use->private_permille, 500, 700);
}

/* One of two threads touched the block the last three times and owns it. The block is still shared until the
 * other thread has not been seen for long enough. */
static void test_shared_for_long(void **state)
{
    touch_rounds(1, 12, BASE);
    assert_false(touches_shared(&touches.blocks[0]));
    touch_rounds(3, 11, BASE);
    assert_int_equal(touches_owner(&touches.blocks[0]), 11);
    assert_true(touches_shared(&touches.blocks[0]));
    touch_rounds(6, 11, BASE);
    assert_false(touches_shared(&touches.blocks[0]));
}

TEST_MAIN(setup, teardown, test_blocks, test_node, test_no_round, test_private_and_shared,
          test_buddies_from_afar, test_told, test_alone_by_chance, test_shared_for_long, test_together,
          test_forgotten, test_changes_hands, test_ends_in_the_round, test_many, test_sets, test_set_states,
          test_common_block, test_shared_by_halves, test_nowhere, test_old_blocks, test_limits)
