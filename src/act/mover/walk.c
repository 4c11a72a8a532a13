/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Walks through memory.
 *
 * maps says what there is to examine. It is cut into blocks of 2 MB, which go through this sixteen at a time:
 *
 *              five of its pages are queried
 *                 |            |            |
 *          all in place     all on one   anything else
 *          or not there     wrong node      |
 *                 |            |            |
 *             (left out)     WHOLE        PAGES
 *                              |            |
 *              its first page is moved      |
 *                 |            |            |
 *          the others came   they did not   |
 *          along: huge         `----------->|
 *                 |                 all pages are queried,
 *                 |                 those elsewhere are moved
 *               done                        |
 *                                  done, or again later
 *
 * So a huge page costs nine queries and one move, and a block of small pages one query per page. Where the
 * samples are in place or not there, a page that is elsewhere is missed. In mappings of up to 16 MB (stacks,
 * arenas, or ranges of a request), where such a page would be a large share, every page is queried. Memory
 * that the process maps or touches later is not seen; that takes another request.
 *
 * A block that could not be moved completely is tried again after everything else (WALK_TRIES). */

#include "act/mover/walk-internal.h"

#define PROBES 5U

/* What one call moves at first: 64 small pages, or one huge page. The cost of either is unknown, and may be
 * fifty times the usual in an emulated machine. */
#define PAGES_LIMIT_FIRST  64U
#define BLOCKS_LIMIT_FIRST 1U

int walk_node_init(WalkNode *node)
{
    size_t n = (size_t)(WALK_BLOCKS * WALK_BLOCK_BYTES / node->page_bytes);

    node->pages_limit = PAGES_LIMIT_FIRST;
    node->blocks_limit = BLOCKS_LIMIT_FIRST;
    node->capacity = n;
    node->pages = calloc(n, sizeof(*node->pages));
    node->nodes = calloc(n, sizeof(*node->nodes));
    node->status = calloc(n, sizeof(*node->status));
    node->where = calloc(n, sizeof(*node->where));
    node->owner = calloc(n, sizeof(*node->owner));
    if (!node->pages || !node->nodes || !node->status || !node->where || !node->owner) {
        walk_node_done(node);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        node->nodes[i] = (int)node->os_index;
    return 0;
}

void walk_node_done(WalkNode *node)
{
    free(node->pages);
    free(node->nodes);
    free(node->status);
    free(node->where);
    free(node->owner);
    *node = (WalkNode){0};
}

int walk_new(const MoverOrder *order, hwloc_const_bitmap_t accept_os, uint32_t part, uint32_t n_parts,
             Walk **ret)
{
    Walk *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->order = order;
    w->accept_os = accept_os;
    w->part = part;
    w->n_parts = n_parts;
    w->process_fd = -1;
    w->lead = w;
    w->share = WALK_BLOCKS;
    (void)pthread_mutex_init(&w->lock, NULL);
    *ret = w;
    return 0;
}

Walk *walk_free(Walk *w)
{
    if (!w)
        return NULL;
    if (w->lead == w)
        close_p(&w->process_fd);
    (void)pthread_mutex_destroy(&w->lock);
    free(w->regions);
    free(w->again);
    free(w);
    return NULL;
}

const MoverAccount *walk_account(const Walk *w)
{
    return &w->account;
}

/*
 * Blocks
 */

static MoverReason reason_of(int status)
{
    switch (status) {
    case -EACCES:
        return MOVER_REASON_SHARED;
    case -ENOMEM:
        return MOVER_REASON_NO_MEMORY;
    case -EBUSY:
    case -EAGAIN:
        return MOVER_REASON_BUSY;
    default:
        return status >= 0 || status == WALK_UNSAID ? MOVER_REASON_BUSY : MOVER_REASON_OTHER;
    }
}

/* Records what became of a small page. */
static void take_status(Walk *w, size_t i)
{
    uint64_t bytes = w->node->page_bytes;
    WalkBlock *block = &w->blocks[w->node->owner[i]];
    int status = w->node->status[i];
    MoverReason reason;

    if (status == -ENOENT || status == -EFAULT)
        return; /* unmapped, or swapped out, in the meantime */
    if (status == (int)w->node->os_index)
        w->account.moved_bytes += bytes;
    if (status >= 0 && !walk_misplaced(w, status))
        return;
    reason = reason_of(status);
    block->refused_bytes[reason] += bytes;
    if (reason == MOVER_REASON_BUSY || reason == MOVER_REASON_NO_MEMORY)
        block->again = true;
}

static uint64_t page_address(const Walk *w, const WalkBlock *block, uint32_t page)
{
    return block->start + page * w->node->page_bytes;
}

static uint32_t probe_page(const WalkBlock *block, uint32_t i)
{
    /* The last index is odd, so when pages are interleaved over two nodes, the five are not all on one. */
    return (uint32_t)((uint64_t)(block->n_pages - 1) * i / (PROBES - 1));
}

static bool is_aligned(const Walk *w, const WalkBlock *block)
{
    return block->n_pages * w->node->page_bytes == WALK_BLOCK_BYTES && block->start % WALK_BLOCK_BYTES == 0;
}

static WalkBlockState state_of(const Walk *w, const WalkBlock *block, const int *status)
{
    bool same = true, wrong = false;

    for (size_t i = 0; i < PROBES; i++) {
        same = same && status[i] == status[0];
        wrong = wrong || walk_misplaced(w, status[i]);
    }
    if (same && wrong && is_aligned(w, block))
        return WALK_BLOCK_WHOLE;
    return wrong || block->thorough ? WALK_BLOCK_PAGES : WALK_BLOCK_PLACED;
}

static MoverOutcome probe_blocks(Walk *w)
{
    size_t n = 0;
    MoverOutcome outcome;

    for (size_t i = 0; i < w->n_blocks; i++)
        for (uint32_t k = 0; k < PROBES; k++)
            walk_put_page(w->node, &n, page_address(w, &w->blocks[i], probe_page(&w->blocks[i], k)), i);
    outcome = walk_ask(w, 0, n, w->node->status);
    for (size_t i = 0; i < w->n_blocks && outcome == MOVER_DONE; i++)
        w->blocks[i].state = (uint8_t)state_of(w, &w->blocks[i], w->node->status + i * PROBES);
    return outcome;
}

/* Finds out which blocks moved as a whole, of those whose first pages, pages[0..n) of the node, were to be
 * moved. A refusal says nothing about the rest of the block. */
static MoverOutcome find_huge(Walk *w, size_t n)
{
    WalkNode *node = w->node;
    uint8_t moved[WALK_BLOCKS];
    size_t n_moved = 0, n_pages = 0, n_huge = 0;
    MoverOutcome outcome;

    for (size_t i = 0; i < n; i++)
        if (node->status[i] == (int)node->os_index)
            moved[n_moved++] = node->owner[i];
    for (size_t i = 0; i < n_moved; i++)
        for (uint32_t k = 1; k < PROBES; k++)
            walk_put_page(node, &n_pages,
                          page_address(w, &w->blocks[moved[i]], probe_page(&w->blocks[moved[i]], k)),
                          moved[i]);
    outcome = walk_ask(w, 0, n_pages, node->status);
    if (outcome != MOVER_DONE)
        return outcome;
    for (size_t i = 0; i < n_moved; i++) {
        const int *status = node->status + i * (PROBES - 1);
        bool huge = true;

        for (size_t k = 0; k < PROBES - 1; k++)
            huge = huge && status[k] == (int)node->os_index;
        if (huge)
            w->blocks[moved[i]].state = WALK_BLOCK_PLACED;
        w->account.moved_bytes += huge ? WALK_BLOCK_BYTES : node->page_bytes;
        w->account.n_huge += huge;
        n_huge += huge;
    }
    walk_return(w, (n_moved - n_huge) * (WALK_BLOCK_BYTES - node->page_bytes));
    /* The time that small pages took says nothing about huge ones. */
    if (n_huge == n && n > 0)
        node->blocks_limit = node->blocks_next;
    return MOVER_DONE;
}

static MoverOutcome move_whole(Walk *w)
{
    MoverOutcome outcome, found;
    size_t n = 0;

    for (size_t i = 0; i < w->n_blocks; i++)
        if (w->blocks[i].state == WALK_BLOCK_WHOLE) {
            walk_put_page(w->node, &n, w->blocks[i].start, i);
            w->blocks[i].state = WALK_BLOCK_PAGES; /* unless it turns out to be huge */
        }
    outcome = walk_pour(w, n, WALK_BLOCK_BYTES, &n);
    /* However it ended, what was moved counts. */
    found = find_huge(w, n);
    return outcome == MOVER_DONE ? found : outcome;
}

static MoverOutcome move_small(Walk *w)
{
    WalkNode *node = w->node;
    MoverOutcome outcome;
    size_t n = 0;

    for (size_t i = 0; i < w->n_blocks; i++)
        for (uint32_t k = 0; w->blocks[i].state == WALK_BLOCK_PAGES && k < w->blocks[i].n_pages; k++)
            walk_put_page(node, &n, page_address(w, &w->blocks[i], k), i);
    outcome = walk_ask(w, 0, n, node->status);
    if (outcome != MOVER_DONE)
        return outcome;
    outcome = walk_pour(w, walk_keep_misplaced(w, n), node->page_bytes, &n);
    for (size_t i = 0; i < n; i++)
        take_status(w, i);
    return outcome;
}

/* Keeps a block that failed in part for another attempt, or gives it up. */
static MoverOutcome finish_block(Walk *w, WalkBlock *block, bool last)
{
    block->tries++;
    if (block->again && !last && block->tries < WALK_TRIES && w->n_again - w->again_first < WALK_AGAIN_MAX) {
        if (!GROW(w->again, w->again_capacity, w->n_again + 1))
            return walk_fail(w, -ENOMEM);
        w->again[w->n_again++] = *block;
        return MOVER_DONE;
    }
    for (size_t k = 0; k < MOVER_REASON_MAX; k++)
        w->account.refused_bytes[k] += block->refused_bytes[k];
    return MOVER_DONE;
}

static MoverOutcome move_blocks(Walk *w)
{
    MoverOutcome outcome = probe_blocks(w), r;

    if (outcome == MOVER_DONE)
        outcome = move_whole(w);
    if (outcome == MOVER_DONE)
        outcome = move_small(w);
    for (size_t i = 0; i < w->n_blocks; i++) {
        r = finish_block(w, &w->blocks[i], outcome != MOVER_DONE);
        outcome = outcome == MOVER_DONE ? r : outcome;
    }
    return outcome;
}

/* Takes the next blocks of the regions. With a rate limit, takes at most the burst: what a huge page took
 * from the bucket then fits back in if the block turns out to be small pages. */
static void take_next(Walk *w)
{
    uint64_t rate = walk_rate(w);
    size_t n = rate == 0 ? WALK_BLOCKS : MIN(WALK_BLOCKS, mover_bucket_burst(rate) / WALK_BLOCK_BYTES);

    walk_take(w, n);
}

/* Takes the next blocks to be tried again, all of the same attempt. */
static void take_again(Walk *w)
{
    if (w->again[w->again_first].tries != w->round) {
        w->round = w->again[w->again_first].tries;
        w->host->pause(w->host->userdata, WALK_AGAIN_USEC);
    }
    while (w->n_blocks < WALK_BLOCKS && w->again_first < w->n_again &&
           w->again[w->again_first].tries == w->round) {
        const WalkBlock *block = &w->again[w->again_first++];

        w->blocks[w->n_blocks++] = (WalkBlock){
            .start = block->start, .n_pages = block->n_pages, .tries = block->tries, .thorough = true};
    }
    if (w->again_first == w->n_again)
        w->again_first = w->n_again = 0;
}

/*
 * Steps
 */

/* Takes one step; sets *ret_over if it was the last. */
static MoverOutcome step(Walk *w, bool *ret_over)
{
    w->n_blocks = 0;
    if (!walk_go_on(w))
        return MOVER_CANCELLED;
    switch (w->phase) {
    case WALK_PHASE_BEGIN:
        w->phase = WALK_PHASE_ALL;
        return walk_begin(w);
    case WALK_PHASE_ALL:
        take_next(w);
        if (w->n_blocks > 0)
            return move_blocks(w);
        w->phase = WALK_PHASE_AGAIN;
        return MOVER_DONE;
    case WALK_PHASE_AGAIN:
    default:
        *ret_over = w->n_again == 0;
        if (*ret_over)
            return MOVER_DONE;
        take_again(w);
        return move_blocks(w);
    }
}

bool walk_step(Walk *w, WalkNode *node, const WalkHost *host, MoverOutcome *ret_outcome, int *ret_error)
{
    bool over = false;
    MoverOutcome outcome;

    w->node = node;
    w->host = host;
    outcome = step(w, &over);
    if (outcome == MOVER_DONE && !over)
        return true;
    *ret_outcome = outcome;
    *ret_error = w->error;
    return false;
}
