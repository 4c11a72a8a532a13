/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* P13 and P18: which blocks of a process move (S-2STAGE, S-PINGPONG, S-2M). */

#include "fixture.h"
#include "plan/memory/blocks.h"

#include <inttypes.h>

#define BLOCK   TOUCHES_BLOCK_BYTES
#define PAGE    UINT64_C(4096)
#define HEAP    (UINT64_C(1) << 32)
#define N_NODES 2U
#define A       101 /* threads */
#define B       102
#define C       199

typedef struct Bench {
    Blocks blocks;
    Touches touches;
    MemoryRegions regions;
    BlocksRules rules;
    hwloc_bitmap_t nodes;
    NodeIx where[256]; /* nodes of the blocks from HEAP on */
    uint64_t n_moved;
} Bench;

static MemoryRegion *add_region(Bench *b, uint64_t start, uint64_t bytes, RegionKind kind)
{
    const MemoryRegion region = {
        .start = start, .end = start + bytes, .kind = kind, .readable = true, .writable = true};

    assert_int_equal(regions_add(&b->regions, &region), 0);
    return &b->regions.list[b->regions.n - 1];
}

/* A heap of 256 blocks on node 0, and threads A and B. */
static void bench_init(Bench *b)
{
    *b = (Bench){.rules = {.two_stage = true}, .nodes = hwloc_bitmap_alloc()};
    assert_int_equal(blocks_init(&b->blocks, N_NODES), 0);
    touches_init(&b->touches, N_NODES);
    assert_int_equal(touches_add_thread(&b->touches, (TaskKey){.pid = 100, .tid = A}), 0);
    assert_int_equal(touches_add_thread(&b->touches, (TaskKey){.pid = 100, .tid = B}), 0);
    (void)add_region(b, HEAP, ARRAY_SIZE(b->where) * BLOCK, REGION_KIND_ANON);
    hwloc_bitmap_set_range(b->nodes, 0, N_NODES - 1);
    b->rules.to_nodes = b->nodes;
}

static void bench_done(Bench *b)
{
    blocks_done(&b->blocks);
    touches_done(&b->touches);
    regions_done(&b->regions);
    hwloc_bitmap_free(b->nodes);
}

static void touch(Bench *b, uint64_t address, pid_t tid, int32_t node)
{
    const Touch one = {.address = address, .tid = tid, .cpu_node = {node}};

    assert_int_equal(touches_add(&b->touches, &one), 0);
}

/* Adds one sample, as of a huge page. */
static void touch_block(Bench *b, uint64_t block, pid_t tid, int32_t node)
{
    touch(b, HEAP + block * BLOCK + 5 * PAGE, tid, node);
}

/* Home nodes of threads: A on node 0, B on node 1, any further ones alternate; C has none. */
static NodeIx home_of(void *userdata, pid_t tid, bool alone)
{
    unsigned *n_asked = userdata;

    (*n_asked)++;
    return (NodeIx){tid == C ? -1 : (tid - A) % 2};
}

/* Ends a round without moving anything. */
static void judge(Bench *b)
{
    unsigned n_asked = 0;
    const BlocksThreads threads = {home_of, &n_asked};

    assert_int_equal(touches_gather(&b->touches), 0);
    for (size_t i = 0; i < b->touches.n_blocks; i++) {
        uint64_t number = (b->touches.blocks[i].address - HEAP) / BLOCK;

        if (number < ARRAY_SIZE(b->where))
            b->touches.blocks[i].node = b->where[number];
    }
    (void)touches_fold(&b->touches);
    assert_int_equal(blocks_judge(&b->blocks, &b->touches, &b->regions, &b->rules, &threads), 0);
    assert_true(b->touches.n_blocks == 0 || n_asked > 0);
}

static void follow(Bench *b)
{
    for (size_t i = 0; i < b->blocks.n_moves; i++) {
        const BlocksRange *move = &b->blocks.moves[i];

        for (uint64_t at = move->start; at < move->end; at += BLOCK, b->n_moved++)
            b->where[(at - HEAP) / BLOCK] = move->to;
    }
}

static void moves_are(const Bench *b, const char *expected)
{
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < b->blocks.n_moves; i++) {
        const BlocksRange *move = &b->blocks.moves[i];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%" PRIx64 "-%" PRIx64 ":%d", i ? " " : "",
                                (move->start - HEAP) / PAGE, (move->end - HEAP) / PAGE, (int)move->to.i);
    }
    assert_string_equal(text, expected);
}

/* Runs rounds in which A and B each touch eight blocks of their own on their own node, as threads that work
 * apart do. */
static void work_apart(Bench *b, int n_rounds)
{
    for (int round = 0; round < n_rounds; round++) {
        for (uint64_t i = 0; i < 8; i++) {
            b->where[240 + i].i = 0;
            b->where[248 + i].i = 1;
            touch_block(b, 240 + i, A, 0);
            touch_block(b, 248 + i, B, 1);
        }
        judge(b);
        assert_int_equal(b->blocks.n_moves, 0);
    }
}

/* Returns the round in which a block on node 0 moves to B, if A has the sample in the first `shared` rounds,
 * in a process in which `n_shared` more blocks are touched by both. */
static int rounds_until_moved(int shared, uint64_t n_shared, bool two_stage)
{
    CLEANUP(bench_done) Bench b;
    int n = 0;

    bench_init(&b);
    b.rules.two_stage = two_stage;
    do {
        for (uint64_t i = 0; i < n_shared; i++)
            touch_block(&b, 100 + i, (n + (int)i) % 2 ? A : B, 0);
        touch_block(&b, 3, n < shared ? A : B, 0);
        judge(&b);
        n++;
    } while (n < 40 && b.blocks.n_moves == 0);
    moves_are(&b, "600-800:1");
    return n;
}

/* Memory of one thread follows it: at once without the second stage; after three rounds if nothing is shared;
 * and after ten if much is shared, because the block might be. An earlier user must be forgotten first. */
static void test_two_stages(void **state)
{
    assert_int_equal(rounds_until_moved(0, 0, false), 1);
    assert_int_equal(rounds_until_moved(0, 0, true), TOUCHES_ROUNDS_MIN);
    assert_int_equal(rounds_until_moved(0, 8, true), BLOCKS_SURE_ROUNDS);
    assert_in_range(rounds_until_moved(4, 0, true), 4 + 7, 4 + 8);
    assert_in_range(rounds_until_moved(4, 8, true), 4 + 9, 4 + 11);
}

/* If threads are seen to work apart, their memory is theirs after one round. */
static void test_apart(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    work_apart(&b, 2);
    touch_block(&b, 3, B, 0);
    judge(&b);
    moves_are(&b, "600-800:1");
}

/* Samples a huge page on node 0, `permille` of whose accesses come from node 1. Returns the rounds in which
 * it would move there. */
static uint32_t count_moves(uint64_t seed, uint32_t permille, uint32_t n_rounds)
{
    uint32_t n = 0;
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    for (uint32_t i = 0; i < n_rounds; i++) {
        bool there = lcg_below(&seed, 1000) < permille;

        touch_block(&b, 7, there ? B : A, there);
        judge(&b);
        n += b.blocks.n_moves > 0;
        tries_done(&b.blocks.tries); /* it stays where it is, and must not become busy */
    }
    return n;
}

/* S-2STAGE: no more moves than with the kernel's two stages, which pass the square of the share; a page used
 * from one node only does move. */
static void test_share(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_int_equal(count_moves(seed, 50, 4000), 0);                /* the kernel's: 10 */
        assert_in_range(count_moves(seed, 250, 4000), 0, 20);            /* 250 */
        assert_in_range(count_moves(seed, 900, 4000), 1000, 3240);       /* 3240 */
        assert_in_range(count_moves(seed, 1000, 4000), 4000 - 10, 4000); /* 4000 */
    }
}

/* Threads, half of them on each of two nodes, share 64 huge pages equally; half of the pages lie on each
 * node. A random thread has the sample of a page in each round. Returns the remote samples. */
static uint64_t share(Bench *b, uint64_t seed, uint32_t n_threads)
{
    uint64_t n = 0;

    bench_init(b);
    for (uint32_t i = 2; i < n_threads; i++)
        assert_int_equal(touches_add_thread(&b->touches, (TaskKey){.pid = 100, .tid = A + (pid_t)i}), 0);
    for (int32_t i = 0; i < 64; i++)
        b->where[i].i = i % 2;
    for (int round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < 64; i++) {
            uint32_t thread = (uint32_t)lcg_below(&seed, n_threads);

            n += b->where[i].i != (int32_t)(thread % 2);
            touch_block(b, i, A + (pid_t)thread, (int32_t)(thread % 2));
        }
        judge(b);
        follow(b);
    }
    return n;
}

/* S-PINGPONG: memory that two nodes use alike stays. With two threads some blocks now and then look private to one. */
static void test_ping_pong(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CLEANUP(bench_done) Bench b;

        assert_true(share(&b, seed, 16) > 6000);
        assert_int_equal(b.n_moved, 0);
        bench_done(&b);
        assert_true(share(&b, seed, 2) > 6000);
        assert_in_range(b.n_moved, 0, 30);
    }
}

/* S-2M: blocks of small pages. The first is used by B, the second half by A and half by B; of the third one
 * page in eight is A's. The last two are mixed. */
static void test_pages(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    work_apart(&b, 2);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 512; i++) {
            touch(&b, HEAP + 8 * BLOCK + i * PAGE, B, 1);
            touch(&b, HEAP + 10 * BLOCK + i * PAGE, i < 256 ? A : B, i >= 256);
            touch(&b, HEAP + 12 * BLOCK + i * PAGE, i % 8 > 0 ? B : A, i % 8 > 0);
        }
        judge(&b);
        moves_are(&b, "1000-1200:1");
    }
    assert_int_equal(b.blocks.n[BLOCKS_MIXED], 6);
}

static void test_refused(void **state)
{
    static const BlocksVerdict verdicts[] = {BLOCKS_FILE, BLOCKS_HUGETLB, BLOCKS_DEVICE, BLOCKS_BOUND,
                                             BLOCKS_GONE};
    const uint64_t base = HEAP * 2;
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    (void)add_region(&b, base, BLOCK, REGION_KIND_FILE);
    (void)add_region(&b, base + BLOCK, BLOCK, REGION_KIND_HUGETLB);
    (void)add_region(&b, base + 2 * BLOCK, BLOCK, REGION_KIND_DEVICE);
    add_region(&b, base + 3 * BLOCK, BLOCK, REGION_KIND_ANON)->bound = true;
    b.rules.two_stage = false;
    for (uint64_t i = 0; i < ARRAY_SIZE(verdicts); i++)
        touch(&b, base + i * BLOCK, B, 1);
    judge(&b);
    moves_are(&b, "");
    for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
        assert_int_equal(b.blocks.n[verdicts[i]], 1);

    /* The user's node is outside the home; then the block's node is not known. */
    hwloc_bitmap_clr(b.nodes, 1);
    touch_block(&b, 0, B, 1);
    judge(&b);
    assert_int_equal(b.blocks.n[BLOCKS_OUTSIDE], 1);
    hwloc_bitmap_set(b.nodes, 1);
    b.where[0] = NODE_NONE;
    touch_block(&b, 0, B, 1);
    judge(&b);
    assert_int_equal(b.blocks.n[BLOCKS_UNKNOWN], 1);
}

/* A page that does not move is left alone until it lies where it belongs. Its neighbour has a count of its own. */
static void test_busy(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    work_apart(&b, 2);
    for (uint32_t i = 0; i < BLOCKS_TRIES; i++) {
        touch_block(&b, 20, B, 1);
        if (i == 1)
            touch_block(&b, 21, B, 1);
        judge(&b);
        moves_are(&b, i == 0 ? "2800-2a00:1" : "2800-2c00:1");
    }
    judge(&b);
    moves_are(&b, "2a00-2c00:1");
    assert_int_equal(b.blocks.n[BLOCKS_BUSY], 1);

    b.where[20].i = 1;
    judge(&b);
    b.where[20].i = 0;
    judge(&b);
    moves_are(&b, "2800-2a00:1");
}

/* A block whose ends lie in two regions is two units, and moves as two. */
static void test_regions(void **state)
{
    const uint64_t at = HEAP + 30 * BLOCK;
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    b.regions.n = 0;
    (void)add_region(&b, HEAP, 30 * BLOCK + 3 * PAGE, REGION_KIND_ANON);
    (void)add_region(&b, at + 4 * PAGE, 4 * PAGE, REGION_KIND_ANON);
    (void)add_region(&b, at + 8 * PAGE, BLOCK, REGION_KIND_FILE);
    b.rules.two_stage = false;
    touch(&b, at + PAGE, B, 1);
    judge(&b);
    moves_are(&b, "3c00-3c03:1");
    touch(&b, at + 3 * PAGE, B, 1); /* in the gap */
    judge(&b);
    moves_are(&b, "");
    touch(&b, at + 7 * PAGE, B, 1);
    judge(&b);
    moves_are(&b, "3c04-3c08:1");
    touch(&b, at + 8 * PAGE, B, 1);
    judge(&b);
    assert_int_equal(b.blocks.n[BLOCKS_GONE], 1);
    assert_int_equal(b.blocks.n[BLOCKS_FILE], 1);
}

/* What two threads of one node share moves to it after three rounds, if no threads of other nodes are seen
 * there: pairs of threads. */
static void test_pairs(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    assert_int_equal(touches_add_thread(&b.touches, (TaskKey){.pid = 100, .tid = A + 2}), 0);
    assert_int_equal(touches_add_thread(&b.touches, (TaskKey){.pid = 100, .tid = B + 2}), 0);
    for (int round = 0; round < (int)TOUCHES_ROUNDS_MIN; round++) {
        moves_are(&b, "");
        for (uint32_t i = 0; i < 8; i++) {
            touch_block(&b, i, round % 2 ? A : A + 2, 0);
            touch_block(&b, 8 + i, round % 2 ? B : B + 2, 1);
        }
        judge(&b);
    }
    moves_are(&b, "1000-2000:1");
}

/* Where much is shared, what is to be moved counts as moved for blocks behind it: four blocks of B leave node 0, and a
 * fifth, which B shares, would have to go only if they stayed. */
static void test_balance(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    assert_int_equal(touches_add_thread(&b.touches, (TaskKey){.pid = 100, .tid = B + 2}), 0);
    for (int32_t i = 0; i < 16; i++)
        b.where[100 + i].i = i >= 5;
    for (int round = 0; round < (int)BLOCKS_SURE_ROUNDS; round++) {
        moves_are(&b, "");
        for (uint64_t i = 0; i < 4; i++)
            touch_block(&b, i, B, 1);
        touch_block(&b, 4, round % 2 ? B : B + 2, 1);
        for (uint64_t i = 0; i < 16; i++)
            touch_block(&b, 100 + i, ((uint64_t)round + i) % 2 ? A : B, 0);
        judge(&b);
    }
    moves_are(&b, "0-800:1");
    assert_int_equal(b.blocks.n[BLOCKS_BALANCED], 1);
}

/* Blocks by owners: threads of one process get their own memory where they live, wherever they ran when they
 * were seen. What two nodes share stays, and what two threads of one node share goes there. */
static void test_owners(void **state)
{
    CLEANUP(bench_done) Bench b;

    bench_init(&b);
    assert_int_equal(touches_add_thread(&b.touches, (TaskKey){.pid = 100, .tid = C}), 0);
    for (int round = 0; round < 4; round++) {
        touch_block(&b, 1, B, 0);
        touch_block(&b, 2, B, 0);
        touch_block(&b, 3, A, 0);
        for (uint64_t i = 0; i < 8; i++) {
            touch(&b, HEAP + 4 * BLOCK + i * PAGE, i % 2 ? A : B, 0);
            touch(&b, HEAP + 5 * BLOCK + i * PAGE, C, 0);
            touch(&b, HEAP + 6 * BLOCK + i * PAGE, B, 1);
        }
        touch_block(&b, 7, round == 0 ? A : B, 1);
        judge(&b);
        moves_are(&b, round < 2 ? "" : "200-600:1 c00-e00:1");
    }
    /* Block 4; block 5, whose user has no known node; block 7, about which three rounds in a row say little. */
    assert_int_equal(b.blocks.n[BLOCKS_MIXED], 6);
    assert_int_equal(b.blocks.n[BLOCKS_LOCAL], 2);
    for (int round = 0; round < 6; round++) {
        touch_block(&b, 7, B, 1);
        judge(&b);
    }
    moves_are(&b, "e00-1000:1");

    /* Memory never leaves the nodes of the home. */
    hwloc_bitmap_clr(b.nodes, 1);
    touch_block(&b, 1, B, 0);
    judge(&b);
    moves_are(&b, "");
    assert_int_equal(b.blocks.n[BLOCKS_OUTSIDE], 4);
    hwloc_bitmap_set(b.nodes, 1);

    /* At first sight. */
    b.rules.two_stage = false;
    touch_block(&b, 20, B, 0);
    judge(&b);
    assert_true(b.blocks.n_moves > 0);
    assert_int_equal(b.blocks.moves[b.blocks.n_moves - 1].start, HEAP + 20 * BLOCK);
}

TEST_MAIN(NULL, NULL, test_two_stages, test_apart, test_share, test_ping_pong, test_pages, test_refused,
          test_busy, test_regions, test_owners, test_pairs, test_balance)
