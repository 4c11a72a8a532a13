/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Samples of a round are sorted by address, and so are blocks and regions. One walk over all of them takes a unit at a
 * time: the part of a block that lies in one region. It asks plan/memory/pages.h about the unit as the kernel asks
 * about a page, and joins what moves.
 *
 * A worked example, blocks of 2 MB. A huge page has one sample per round. One thread on node 1 uses it, and it lies on
 * node 0. In the first round no earlier user is known, so it counts as shared: it moves if that brings memory and use
 * into balance. From the fourth round on it is known to be the thread's own, and moves. If nodes 0 and 1 use it in
 * turns, half each, one round in two asks for the node that the round before asked for. Then the balance decides, which
 * is even: it stays. A block of small pages, half of it used from node 0 and half from node 1, has samples from both in
 * each round. It is mixed and stays, whatever the order.
 *
 * The kernel moves whatever is asked for in the first four sequences. It takes a page for private when one task asked
 * for it twice in a row, which happens every other time when two tasks share it equally. A sampler may start in the
 * middle of a process's life, and has few samples. So here no other thread may have used a block as long as the block
 * remembers. Until that is ten rounds, the block decides only in a process of which few blocks are shared.
 *
 * What it does badly: a block of small pages of which only one was touched looks like a huge page. Moving it in vain
 * costs 2 MB, and only the user of that page gains. */

#include "plan/memory/blocks.h"

#include "base/util.h"
#include "plan/home/active.h"
#include "plan/memory/pages.h"

#include <math.h>
#include <string.h>

const char *const blocks_verdict_names[] = {
    [BLOCKS_MOVE] = "move",
    [BLOCKS_LOCAL] = "local",
    [BLOCKS_UNKNOWN] = "unknown",
    [BLOCKS_MIXED] = "mixed",
    [BLOCKS_OTHER_NODE] = "other-node",
    [BLOCKS_BALANCED] = "balanced",
    [BLOCKS_OUTSIDE] = "outside",
    [BLOCKS_FILE] = "file",
    [BLOCKS_HUGETLB] = "hugetlb",
    [BLOCKS_DEVICE] = "device",
    [BLOCKS_BUSY] = "busy",
    [BLOCKS_BOUND] = "bound",
    [BLOCKS_GONE] = "gone",
    [BLOCKS_VERDICT_MAX] = NULL,
};

/* What counts for one block in a round. */
#define BLOCK_WEIGHT ((uint64_t)TOUCHES_ROUND)

/* Averages are over eight rounds, as in numa/core v17, and show eight times the rate. Two, as in the kernel, are too
 * few for samples that are not counted in thousands. */
#define KEEP 8U

/* What is used more than this many standard deviations above what it might be is certain. Of 64 blocks that two
 * nodes use alike one round in twenty looks uneven by a quarter. */
#define CERTAIN 3.0

/* Before BLOCKS_SURE_ROUNDS a block that one thread was seen at is private when no more than this share of the
 * blocks is shared. */
#define SHARE_PERMILLE 250U

/* Threads work apart when of so many blocks that were touched again no more than this share was by somebody else. Of
 * two threads that share all each block is by chance the same one's, and one in thirty such processes looks like
 * that. Then a block is its user's after one round: who walks through much memory is seen at most blocks once in
 * three rounds. */
#define APART_MIN      8U
#define APART_PERMILLE 150U

typedef struct Unit {
    const MemoryRegion *region; /* NULL: none */
    uint64_t start, end;
    size_t first, n; /* samples */
    size_t block;    /* its first one in Touches.blocks */
    NodeIx to;       /* who uses it; NODE_NONE: several nodes, or not known */
    NodeIx from;     /* where it lies, as far as it is not at `to`; NODE_NONE: not known */
    bool voted;      /* somebody's node is known */
    pid_t tid;       /* 0: several */
    bool last_known, last_here, last_own; /* of the round before, as in PagesAccess */
} Unit;

typedef struct Judge {
    Blocks *blocks;
    const Touches *touches;
    const MemoryRegions *regions;
    const BlocksRules *rules;
    hwloc_const_bitmap_t active;
    bool few_shared;      /* of its blocks */
    bool apart;           /* its threads work apart */
    size_t region, block; /* cursors */
} Judge;

int blocks_init(Blocks *blocks, uint32_t n_nodes)
{
    uint64_t *numbers = calloc((size_t)MAX(n_nodes, 1U) * 4, sizeof(*numbers));

    if (!numbers)
        return -ENOMEM;
    *blocks = (Blocks){
        .n_nodes = n_nodes,
        .use = numbers,
        .memory = numbers + n_nodes,
        .use_now = numbers + (size_t)n_nodes * 2,
        .votes = numbers + (size_t)n_nodes * 3,
    };
    return 0;
}

void blocks_done(Blocks *blocks)
{
    free(blocks->use); /* and the other arrays by node behind it */
    free(blocks->moves);
    free(blocks->samples);
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

/* What of the block at an address lies in one region with it. */
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

/* The unit that begins with sample `first`. */
static Unit unit_at(Judge *judge, size_t first)
{
    const Touch *samples = judge->blocks->samples;
    Unit unit = unit_of(judge, samples[first].address);

    unit.first = first;
    unit.n = 1;
    while (first + unit.n < judge->touches->n_samples && samples[first + unit.n].address < unit.end)
        unit.n++;
    return unit;
}

/* The node that all of `n` votes are for, but one part in `may_differ`. */
static NodeIx elect(const Blocks *blocks, uint64_t n, uint32_t may_differ)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < blocks->n_nodes; i++)
        if (blocks->votes[i] > blocks->votes[best])
            best = i;
    return n > 0 && (n - blocks->votes[best]) * may_differ <= n ? (NodeIx){(int32_t)best} : NODE_NONE;
}

/* Whose it is in this round. */
static void vote(Judge *judge, Unit *unit)
{
    uint64_t *votes = judge->blocks->votes, n = 0;

    memset(votes, 0, judge->blocks->n_nodes * sizeof(*votes));
    unit->tid = judge->blocks->samples[unit->first].tid;
    for (size_t i = unit->first; i < unit->first + unit->n; i++) {
        const Touch *touch = &judge->blocks->samples[i];

        if (touch->tid != unit->tid)
            unit->tid = 0;
        if (!is_node(judge, touch->cpu_node))
            continue;
        votes[touch->cpu_node.i]++;
        n++;
    }
    unit->voted = n > 0;
    unit->to = elect(judge->blocks, n, BLOCKS_MAY_DIFFER);
    for (uint32_t i = 0; n > 0 && i < judge->blocks->n_nodes; i++)
        votes[i] = votes[i] * BLOCK_WEIGHT / n;
}

/* Whether who was seen there is who uses it. */
static bool is_known(const Judge *judge, const TouchBlock *block)
{
    return block->n_rounds >= (judge->few_shared ? 1 : BLOCKS_SURE_ROUNDS);
}

static bool is_alone(const Judge *judge, const TouchBlock *block)
{
    return block->owners[1].tid == 0 && is_known(judge, block);
}

/* What was known before of the blocks it touches, and where they lie. */
static void recall(Judge *judge, Unit *unit)
{
    const Touches *touches = judge->touches;
    size_t at = judge->block;

    unit->last_here = unit->last_own = true;
    for (size_t i = unit->first; i < unit->first + unit->n; i++) {
        uint64_t number = judge->blocks->samples[i].address / TOUCHES_BLOCK_BYTES;
        const TouchBlock *block;

        while (at < touches->n_blocks && touches->blocks[at].address / TOUCHES_BLOCK_BYTES < number)
            at++;
        if (at == touches->n_blocks || touches->blocks[at].address / TOUCHES_BLOCK_BYTES != number)
            continue;
        block = &touches->blocks[at];
        unit->last_known |= block->last_node.i >= 0;
        unit->last_here &= unit->to.i >= 0 && block->last_node.i == unit->to.i;
        unit->last_own &= unit->tid != 0 && block->last_tid == unit->tid && is_alone(judge, block);
        if (is_node(judge, block->node) && (unit->from.i < 0 || unit->from.i == unit->to.i))
            unit->from = block->node;
    }
    judge->block = MIN(at, touches->n_blocks);
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

/* An average less what chance may have added, if it was counted in single blocks. */
static uint64_t certain(const Blocks *blocks, uint64_t use)
{
    double n = (double)use / (double)(KEEP * BLOCK_WEIGHT) * blocks->n_rounds;
    double most = n - CERTAIN * sqrt(n);

    return most > 0 ? (uint64_t)((double)use * most / n) : 0;
}

static BlocksVerdict judge_access(const Judge *judge, const Unit *unit)
{
    const Blocks *blocks = judge->blocks;
    const PagesAccess access = {
        .last_known = unit->last_known,
        .last_own = unit->last_own,
        .last_here = unit->last_here,
        .to_has_memory = hwloc_bitmap_isset(judge->rules->to_nodes, (unsigned)unit->to.i),
        .has_preferred = true,
        .n_sequences = PAGES_EARLY_SEQUENCES + 1, /* never early */
        .two_stage = judge->rules->two_stage,
        .has_group = judge->touches->n_threads > 1,
        .cpu_from = blocks->use[unit->from.i],
        .cpu_to = certain(blocks, blocks->use[unit->to.i]),
        .memory_from = blocks->memory[unit->from.i],
        .memory_to = blocks->memory[unit->to.i],
    };
    PagesVerdict verdict = pages_judge(&access);

    if (pages_moves(verdict))
        return BLOCKS_MOVE;
    if (verdict == PAGES_STAY_NO_MEMORY)
        return BLOCKS_OUTSIDE;
    return verdict == PAGES_STAY_OTHER_NODE ? BLOCKS_OTHER_NODE : BLOCKS_BALANCED;
}

/* All that is said by where it lies and who uses it; BLOCKS_MOVE: nothing is said against it. */
static BlocksVerdict judge_nodes(const Unit *unit)
{
    BlocksVerdict verdict = judge_region(unit->region);

    if (verdict != BLOCKS_MOVE)
        return verdict;
    if (!unit->voted)
        return BLOCKS_UNKNOWN;
    if (unit->to.i < 0)
        return BLOCKS_MIXED;
    if (unit->from.i < 0)
        return BLOCKS_UNKNOWN;
    return unit->from.i == unit->to.i ? BLOCKS_LOCAL : BLOCKS_MOVE;
}

static BlocksVerdict judge_unit(const Judge *judge, const Unit *unit)
{
    BlocksVerdict verdict = judge_nodes(unit);

    return verdict == BLOCKS_MOVE ? judge_access(judge, unit) : verdict;
}

/* Counts how often a block was to move: what is local now is forgotten. *verdict may become BLOCKS_BUSY. 0 or
 * -ENOMEM. */
static int note_tried(Judge *judge, const Unit *unit, BlocksVerdict *verdict)
{
    uint32_t n;
    int r = tries_ask(&judge->blocks->tries, unit->start, &n);

    if (r < 0)
        return r;
    if (*verdict == BLOCKS_MOVE && n >= BLOCKS_TRIES)
        *verdict = BLOCKS_BUSY;
    else if (*verdict == BLOCKS_MOVE)
        n++;
    else if (*verdict == BLOCKS_LOCAL || *verdict == BLOCKS_GONE)
        n = 0;
    return tries_keep(&judge->blocks->tries, unit->start, n);
}

/*
 * A round
 */

/* What is to move counts at once: the blocks behind are judged by that. */
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
    if (!GROW(blocks->moves, blocks->moves_capacity, blocks->n_moves + 1))
        return -ENOMEM;
    blocks->moves[blocks->n_moves++] = (BlocksRange){unit->start, unit->end, unit->to};
    return 0;
}

/* For the averages and the period of scans (P10). */
static void count(const Judge *judge, const Unit *unit)
{
    Blocks *blocks = judge->blocks;
    bool is_private = unit->tid != 0 && (!unit->last_known || unit->last_own);
    FaultsKind kind = is_private ? FAULTS_KIND_PRIVATE : FAULTS_KIND_SHARED;

    for (uint32_t i = 0; unit->voted && i < blocks->n_nodes; i++)
        blocks->use_now[i] += blocks->votes[i];
    if (is_private)
        blocks->seen.private_faults++;
    else
        blocks->seen.shared_faults++;
    if (unit->from.i < 0 || unit->to.i < 0)
        return;
    if (active_is_local(judge->active, kind, unit->to, unit->from))
        blocks->seen.local++;
    else
        blocks->seen.remote++;
}

static int judge_all(Judge *judge)
{
    Blocks *blocks = judge->blocks;
    Unit unit;
    int r;

    for (size_t i = 0; i < judge->touches->n_samples; i += unit.n) {
        BlocksVerdict verdict;

        unit = unit_at(judge, i);
        vote(judge, &unit);
        recall(judge, &unit);
        verdict = judge_unit(judge, &unit);
        r = note_tried(judge, &unit, &verdict);
        if (r == 0 && verdict == BLOCKS_MOVE)
            r = add_move(blocks, &unit);
        if (r < 0)
            return r;
        blocks->n[verdict]++;
        count(judge, &unit);
    }
    return 0;
}

static int compare_samples(const void *va, const void *vb)
{
    const Touch *a = va, *b = vb;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return (a->cpu_node.i > b->cpu_node.i) - (a->cpu_node.i < b->cpu_node.i);
}

/* Of all blocks that are known, not only of this round's: a window of a scan may show one node's memory only. */
static void count_memory(Blocks *blocks, const Touches *touches)
{
    memset(blocks->memory, 0, blocks->n_nodes * sizeof(*blocks->memory));
    for (size_t i = 0; i < touches->n_blocks; i++) {
        int32_t node = touches->blocks[i].node.i;

        if (node >= 0 && (uint32_t)node < blocks->n_nodes)
            blocks->memory[node]++;
    }
}

static int begin(Blocks *blocks, const Touches *touches, hwloc_bitmap_t active)
{
    tries_begin(&blocks->tries);
    blocks->n_moves = 0;
    blocks->seen = (ScanPeriodSeen){0};
    memset(blocks->use_now, 0, blocks->n_nodes * sizeof(*blocks->use_now));
    count_memory(blocks, touches);
    if (!GROW(blocks->samples, blocks->samples_capacity, touches->n_samples + 1))
        return -ENOMEM;
    if (touches->n_samples > 0)
        memcpy(blocks->samples, touches->samples, touches->n_samples * sizeof(*blocks->samples));
    qsort(blocks->samples, touches->n_samples, sizeof(*blocks->samples), compare_samples);
    return active_nodes(blocks->use, blocks->n_nodes, active);
}

/* The mean of the rounds so far, then a decaying one. */
static uint64_t average(uint64_t before, uint64_t now, uint32_t n_rounds)
{
    return before - before / n_rounds + now * KEEP / n_rounds;
}

static int end(Blocks *blocks)
{
    int r = tries_end(&blocks->tries);

    if (r < 0)
        return r;
    blocks->n_rounds = MIN(blocks->n_rounds + 1, KEEP);
    for (uint32_t i = 0; i < blocks->n_nodes; i++)
        blocks->use[i] = average(blocks->use[i], blocks->use_now[i], blocks->n_rounds);
    return 0;
}

/*
 * By owners
 */

/* The unit of a block, asked for by its owners from where they live. */
static Unit unit_of_owners(Judge *judge, const TouchBlock *block, const BlocksThreads *threads)
{
    Unit unit = unit_of(judge, block->address);
    uint64_t *votes = judge->blocks->votes, n = 0;

    memset(votes, 0, judge->blocks->n_nodes * sizeof(*votes));
    for (size_t i = 0; i < TOUCHES_OWNERS; i++) {
        const TouchOwner *owner = &block->owners[i];
        NodeIx node = owner->tid ? threads->node_of(threads->userdata, owner->tid) : NODE_NONE;

        n += owner->weight;
        if (is_node(judge, node))
            votes[node.i] += owner->weight;
    }
    unit.voted = n > 0 && (!judge->rules->two_stage || judge->apart ||
                           (block->n_rounds >= TOUCHES_ROUNDS_MIN && is_known(judge, block)));
    unit.to = elect(judge->blocks, n, TOUCHES_MAY_DIFFER);
    if (is_node(judge, block->node))
        unit.from = block->node;
    unit.tid = touches_owner(block);
    return unit;
}

static BlocksVerdict judge_owners(const Judge *judge, const Unit *unit)
{
    BlocksVerdict verdict = judge_nodes(unit);

    if (verdict == BLOCKS_MOVE && !hwloc_bitmap_isset(judge->rules->to_nodes, (unsigned)unit->to.i))
        return BLOCKS_OUTSIDE;
    return verdict;
}

static int judge_all_owners(Judge *judge, const BlocksThreads *threads)
{
    for (size_t i = 0; i < judge->touches->n_blocks; i++) {
        const TouchBlock *block = &judge->touches->blocks[i];
        Unit unit = unit_of_owners(judge, block, threads);
        BlocksVerdict verdict = judge_owners(judge, &unit);
        int r = note_tried(judge, &unit, &verdict);

        if (r == 0 && verdict == BLOCKS_MOVE)
            r = add_move(judge->blocks, &unit);
        if (r < 0)
            return r;
        judge->blocks->n[verdict]++;
        if (block->last_round == judge->touches->n_rounds)
            count(judge, &unit);
    }
    return 0;
}

/*
 * Beginning and end
 */

/* `threads` NULL: by the samples of the round. */
static int run(Judge *judge, const BlocksThreads *threads)
{
    Blocks *blocks = judge->blocks;
    TouchesSummary summary = touches_summary(judge->touches);
    hwloc_bitmap_t active = hwloc_bitmap_alloc();
    int r = active ? begin(blocks, judge->touches, active) : -ENOMEM;

    judge->active = active;
    judge->apart =
        summary.n_again >= APART_MIN && summary.n_others * 1000 <= summary.n_again * APART_PERMILLE;
    judge->few_shared = summary.n_judged > 0 && summary.overlap_permille <= SHARE_PERMILLE;
    if (r == 0)
        r = threads ? judge_all_owners(judge, threads) : judge_all(judge);
    if (r == 0 && (threads || judge->touches->n_samples > 0))
        r = end(blocks);
    if (r < 0)
        blocks->n_moves = 0;
    hwloc_bitmap_free(active);
    return r;
}

int blocks_judge(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                 const BlocksRules *rules)
{
    Judge judge = {.blocks = blocks, .touches = touches, .regions = regions, .rules = rules};

    return run(&judge, NULL);
}

int blocks_judge_owners(Blocks *blocks, const Touches *touches, const MemoryRegions *regions,
                        const BlocksRules *rules, const BlocksThreads *threads)
{
    Judge judge = {.blocks = blocks, .touches = touches, .regions = regions, .rules = rules};

    return run(&judge, threads);
}

void blocks_take_back(Blocks *blocks, uint64_t start, uint64_t end)
{
    tries_take_back(&blocks->tries, start, end);
}
