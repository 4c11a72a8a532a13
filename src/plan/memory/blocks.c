/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Blocks and regions are both sorted by address. One walk over them takes a unit at a time: the part of a block that
 * lies in one region. Each owner of the block votes with its weight for the node it lives on. The block goes to the
 * node with all votes except one part in TOUCHES_MAY_DIFFER.
 *
 * The kernel moves a page when the same node asked for it twice in a row: with probability p * p for a share p of the
 * accesses. It takes a page as private when one task asked twice in a row, which happens every other time when two
 * tasks share it equally. Here weights halve with each round, so a node must have been alone for eight rounds, or for
 * ten in a process that uses much from several nodes. A block seen in few rounds may have other users. Before
 * BLOCKS_SURE_ROUNDS it is judged only if few blocks of the process are used from several nodes, and before
 * TOUCHES_ROUNDS_MIN only if threads work apart. In such a process a block that threads of one node share moves there
 * without a further test. Elsewhere it may be chance that these threads are on one node, and the kernel's rule for
 * shared pages decides: a page moves if that brings memory closer to use by a quarter, use(to) * memory(from) * 3 >
 * use(from) * memory(to) * 4. Equal use on both sides moves nothing.
 *
 * Example: a huge page on node 0 has one sample per round, always from a thread on node 1. It moves after ten rounds;
 * after three if few blocks of the process are used from several nodes; after one if eight blocks were touched again,
 * all by the same thread as before. If a thread of node 0 touches it every other round, it stays.
 *
 * What it does badly: a block of small pages of which only one was touched looks like a huge page. Moving it in vain
 * costs 2 MB, and only that page's user gains. */

#include "plan/memory/blocks.h"

#include "base/util.h"

#include <string.h>

const char *const blocks_verdict_names[] = {
    [BLOCKS_MOVE] = "move",      [BLOCKS_LOCAL] = "local",       [BLOCKS_UNKNOWN] = "unknown",
    [BLOCKS_MIXED] = "mixed",    [BLOCKS_BALANCED] = "balanced", [BLOCKS_OUTSIDE] = "outside",
    [BLOCKS_FILE] = "file",      [BLOCKS_HUGETLB] = "hugetlb",   [BLOCKS_DEVICE] = "device",
    [BLOCKS_BUSY] = "busy",      [BLOCKS_BOUND] = "bound",       [BLOCKS_GONE] = "gone",
    [BLOCKS_VERDICT_MAX] = NULL,
};

/* Before BLOCKS_SURE_ROUNDS a block is judged only if at most this share of all blocks is used from several
 * nodes. If two nodes used all blocks equally, three rounds would show that for three in four. */
#define MIXED_PERMILLE 250U

/* Where much is shared, all threads seen at a block may be on one node by chance, the more easily the more there are.
 * With more users than this no node is elected. v18 also takes this number of buddies on a node as many (P17). */
#define QUORUM 3U

/* Threads work apart if at least APART_MIN blocks were touched again, and at most APART_PERMILLE of them by
 * another thread. If two threads share everything, one process in thirty looks like that by chance. Where
 * threads work apart, one round shows a block's user: a thread that walks through much memory is seen at most
 * blocks only once in three rounds. */
#define APART_MIN      8U
#define APART_PERMILLE 150U

typedef struct Unit {
    const MemoryRegion *region; /* NULL: none */
    uint64_t start, end;
    NodeIx from; /* where it lies; NODE_NONE: not known */
    NodeIx to;   /* where all its owners live; NODE_NONE: on several nodes, or not known */
    bool known;  /* its owners have been known for long enough */
    bool shared; /* by several threads */
} Unit;

typedef struct Judge {
    Blocks *blocks;
    const Touches *touches;
    const MemoryRegions *regions;
    const BlocksRules *rules;
    const BlocksThreads *threads;
    uint32_t sure_rounds; /* rounds after which the users of a block are known */
    size_t region;        /* cursor */
} Judge;

int blocks_init(Blocks *blocks, uint32_t n_nodes)
{
    uint64_t *numbers = calloc((size_t)MAX(n_nodes, 1U) * 3, sizeof(*numbers));

    if (!numbers)
        return -ENOMEM;
    *blocks = (Blocks){
        .n_nodes = n_nodes,
        .votes = numbers,
        .use = numbers + n_nodes,
        .memory = numbers + (size_t)n_nodes * 2,
    };
    return 0;
}

void blocks_done(Blocks *blocks)
{
    free(blocks->votes); /* and the other arrays by node behind it */
    free(blocks->moves);
    tries_done(&blocks->tries);
    *blocks = (Blocks){0};
}

/*
 * A unit
 */

static bool is_node(const Judge *judge, NodeIx node)
{
    return node.i >= 0 && (uint32_t)node.i < judge->blocks->n_nodes;
}

/* The part of the block at `address` that lies in the same region. */
static Unit unit_of(Judge *judge, uint64_t address)
{
    Unit unit = {.start = address & ~(TOUCHES_BLOCK_BYTES - 1), .to = NODE_NONE, .from = NODE_NONE};
    const MemoryRegion *list = judge->regions->list;

    if (__builtin_add_overflow(unit.start, TOUCHES_BLOCK_BYTES, &unit.end))
        unit.end = UINT64_MAX;
    while (judge->region < judge->regions->n && list[judge->region].end <= address)
        judge->region++;
    if (judge->region < judge->regions->n && list[judge->region].start <= address) {
        unit.region = &list[judge->region];
        unit.start = MAX(unit.start, unit.region->start);
        unit.end = MIN(unit.end, unit.region->end);
    } else if (judge->region < judge->regions->n) {
        unit.end = MIN(unit.end, list[judge->region].start);
    }
    return unit;
}

/* The node that has all of `n` votes except one part in TOUCHES_MAY_DIFFER; where much is shared, all votes
 * of at most QUORUM owners. Else NODE_NONE. */
static NodeIx elect(const Judge *judge, const TouchBlock *block, uint64_t n)
{
    const uint64_t *votes = judge->blocks->votes;
    bool doubts = judge->sure_rounds == BLOCKS_SURE_ROUNDS;
    uint64_t may_differ = doubts ? 0 : n / TOUCHES_MAY_DIFFER;
    uint32_t best = 0;

    if (doubts && block->owners[QUORUM].tid != 0)
        return NODE_NONE;

    for (uint32_t i = 1; i < judge->blocks->n_nodes; i++)
        if (votes[i] > votes[best])
            best = i;
    return n > 0 && n - votes[best] <= may_differ ? (NodeIx){(int32_t)best} : NODE_NONE;
}

/* Adds the weights of the block's owners to the nodes they live on. */
static void vote(const Judge *judge, const TouchBlock *block, uint64_t *votes)
{
    for (size_t i = 0; i < TOUCHES_OWNERS && block->owners[i].tid; i++) {
        pid_t tid = block->owners[i].tid;
        NodeIx node = judge->threads->node_of(judge->threads->userdata, tid, tid == touches_owner(block));

        if (is_node(judge, node))
            votes[node.i] += block->owners[i].weight;
    }
}

static Unit unit_of_block(Judge *judge, const TouchBlock *block)
{
    Unit unit = unit_of(judge, block->address);
    uint64_t *votes = judge->blocks->votes, n = touches_weight(block);

    memset(votes, 0, judge->blocks->n_nodes * sizeof(*votes));
    vote(judge, block, votes);
    unit.known = n > 0 && block->n_rounds >= judge->sure_rounds;
    unit.to = elect(judge, block, n);
    unit.shared = block->owners[1].tid != 0;
    if (is_node(judge, block->node))
        unit.from = block->node;
    return unit;
}

/*
 * Verdicts
 */

static BlocksVerdict judge_region(const MemoryRegion *region)
{
    if (!region)
        return BLOCKS_GONE;
    if (region->kind == REGION_KIND_FILE)
        return BLOCKS_FILE;
    if (region->kind == REGION_KIND_HUGETLB)
        return BLOCKS_HUGETLB;
    if (region->kind == REGION_KIND_DEVICE)
        return BLOCKS_DEVICE;
    return region->bound ? BLOCKS_BOUND : BLOCKS_MOVE;
}

/* Whether the kernel's rule for shared memory decides, see brings_balance(). */
static bool needs_balance(const Judge *judge)
{
    return judge->sure_rounds == BLOCKS_SURE_ROUNDS && !judge->rules->any_balance;
}

static void sum_up(const Judge *judge)
{
    Blocks *blocks = judge->blocks;

    memset(blocks->use, 0, blocks->n_nodes * sizeof(*blocks->use));
    memset(blocks->memory, 0, blocks->n_nodes * sizeof(*blocks->memory));
    for (size_t i = 0; i < judge->touches->n_blocks; i++) {
        vote(judge, &judge->touches->blocks[i], blocks->use);
        if (is_node(judge, judge->touches->blocks[i].node))
            blocks->memory[judge->touches->blocks[i].node.i]++;
    }
}

/* The kernel's rule for shared memory: use per memory at the source is below three quarters of that at the
 * destination. */
static bool brings_balance(const Judge *judge, const Unit *unit)
{
    const Blocks *blocks = judge->blocks;

    return blocks->use[unit->to.i] * blocks->memory[unit->from.i] * 3 >
           blocks->use[unit->from.i] * blocks->memory[unit->to.i] * 4;
}

static BlocksVerdict judge_unit(const Judge *judge, const Unit *unit)
{
    BlocksVerdict verdict = judge_region(unit->region);

    if (verdict != BLOCKS_MOVE)
        return verdict;
    if (!unit->known)
        return BLOCKS_UNKNOWN;
    if (unit->to.i < 0)
        return BLOCKS_MIXED;
    if (unit->from.i < 0)
        return BLOCKS_UNKNOWN;
    if (unit->from.i == unit->to.i)
        return BLOCKS_LOCAL;
    if (!hwloc_bitmap_isset(judge->rules->to_nodes, (unsigned)unit->to.i))
        return BLOCKS_OUTSIDE;
    return unit->shared && needs_balance(judge) && !brings_balance(judge, unit) ? BLOCKS_BALANCED
                                                                                : BLOCKS_MOVE;
}

/* Counts attempts to move a block until it is local or gone. *verdict may become BLOCKS_BUSY. Returns 0 or -ENOMEM. */
static int note_tried(Judge *judge, const Unit *unit, BlocksVerdict *verdict)
{
    uint32_t n;
    int r = tries_ask(&judge->blocks->tries, unit->start, &n);

    if (r < 0)
        return r;
    if (*verdict == BLOCKS_MOVE && n >= BLOCKS_TRIES && !judge->rules->any_tries)
        *verdict = BLOCKS_BUSY;
    else if (*verdict == BLOCKS_MOVE)
        n++;
    else if (*verdict == BLOCKS_LOCAL || *verdict == BLOCKS_GONE)
        n = 0;
    return tries_keep(&judge->blocks->tries, unit->start, n);
}

/*
 * A judgement
 */

/* Adds a move. It counts in `memory` for the blocks judged after it. */
static int add_move(Blocks *blocks, const Unit *unit)
{
    BlocksRange *last = blocks->n_moves > 0 ? &blocks->moves[blocks->n_moves - 1] : NULL;
    uint64_t n = MIN(blocks->memory[unit->from.i], 1U);

    blocks->memory[unit->from.i] -= n;
    blocks->memory[unit->to.i] += n;
    if (last && last->end == unit->start && last->to.i == unit->to.i) {
        last->end = unit->end;
        return 0;
    }
    if (APPEND(blocks->moves, blocks->moves_capacity, blocks->n_moves,
               (BlocksRange){unit->start, unit->end, unit->to}) < 0)
        return -ENOMEM;
    return 0;
}

static int judge_all(Judge *judge)
{
    for (size_t i = 0; i < judge->touches->n_blocks; i++) {
        Unit unit = unit_of_block(judge, &judge->touches->blocks[i]);
        BlocksVerdict verdict = judge_unit(judge, &unit);
        int r = note_tried(judge, &unit, &verdict);

        if (r == 0 && verdict == BLOCKS_MOVE)
            r = add_move(judge->blocks, &unit);
        if (r < 0)
            return r;
        judge->blocks->n[verdict]++;
    }
    return 0;
}

/* Whether nearly all accesses seen were by one thread, or by threads of one node. */
static bool is_of_one_node(const Judge *judge, const TouchBlock *block)
{
    uint64_t *votes = judge->blocks->votes, most = 0;

    memset(votes, 0, judge->blocks->n_nodes * sizeof(*votes));
    vote(judge, block, votes);
    for (uint32_t i = 0; i < judge->blocks->n_nodes; i++)
        most = MAX(most, votes[i]);
    return touches_owner(block) != 0 || most * 1000 >= touches_weight(block) * TOUCHES_OWNED_PERMILLE;
}

static bool few_are_mixed(const Judge *judge)
{
    size_t n = 0, n_mixed = 0;

    for (size_t i = 0; i < judge->touches->n_blocks; i++) {
        const TouchBlock *block = &judge->touches->blocks[i];

        if (block->n_rounds < TOUCHES_ROUNDS_MIN)
            continue;
        n++;
        n_mixed += !is_of_one_node(judge, block);
    }
    return n > 0 && n_mixed * 1000 <= n * MIXED_PERMILLE;
}

static uint32_t sure_rounds(const Judge *judge)
{
    TouchesSummary summary = touches_summary(judge->touches);

    if (!judge->rules->two_stage ||
        (summary.n_again >= APART_MIN && summary.n_others * 1000 <= summary.n_again * APART_PERMILLE))
        return 0;
    return few_are_mixed(judge) ? TOUCHES_ROUNDS_MIN : BLOCKS_SURE_ROUNDS;
}

int blocks_judge(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                 const BlocksRules *rules, const BlocksThreads *threads)
{
    Judge judge = {
        .blocks = blocks,
        .touches = touches,
        .regions = regions,
        .rules = rules,
        .threads = threads,
    };
    int r;

    judge.sure_rounds = sure_rounds(&judge);
    if (needs_balance(&judge))
        sum_up(&judge);
    tries_begin(&blocks->tries);
    blocks->n_moves = 0;
    r = judge_all(&judge);
    if (r == 0)
        r = tries_end(&blocks->tries);
    if (r < 0)
        blocks->n_moves = 0;
    return r;
}

void blocks_take_back(Blocks *blocks, uint64_t start, uint64_t end)
{
    tries_take_back(&blocks->tries, start, end);
}
