/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The samples of a round are collected, sorted by block, and merged with the blocks in one walk over both: no
 * hash table, and the result does not depend on the order in which rings were read.
 *
 * Worked example: two threads write all of one huge page all the time; the one that comes first after the
 * page was protected gives the sample. In the rounds A, B, B the weights are A 512; A 256, B 512; A 128, B
 * 768. B has 857 permille and owns the page for now. After another A, that has 512 + 64 of 960: shared. A
 * page of A alone has 512, 768, 896, all of it. With twenty such pages, half of the shared ones look owned
 * after three rounds, and overlap is 500 permille, not 0.
 *
 * What it does badly: samples of writes contain no reads, so a block that many threads read and one writes
 * looks private. */

#include "world/touches.h"

#include "base/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The private part of all threads is a prior for each, with the weight of this many blocks. With four, an idle
 * main thread seemed to have memory of its own in the lab; with none, threads became known one after the
 * other, and memory moved twice (S-APART). */
#define PRIOR_BLOCKS 2

/* Fewer blocks accessed again say nothing about sharing. A choice of ours, as for the samples of a thread. */
#define AGAIN_MIN TOUCHES_SAMPLES_MIN

/* What one block adds to the averages of Buddy, which keep fifteen sixteenths. */
#define AVERAGE_BLOCK (TOUCHES_ROUND / 16)

void touches_init(Touches *touches, uint32_t n_nodes)
{
    *touches = (Touches){.n_nodes = n_nodes};
}

void touches_done(Touches *touches)
{
    for (size_t i = 0; i < touches->n_threads; i++)
        faults_done(&touches->threads[i].faults);
    free(touches->threads);
    free(touches->blocks);
    free(touches->samples);
    *touches = (Touches){0};
}

/*
 * Threads
 */

/* Index of the first thread with this tid or a higher one. */
static size_t thread_place(const Touches *touches, pid_t tid)
{
    return LOWER_BOUND(i, touches->n_threads, touches->threads[i].key.tid < tid);
}

TouchThread *touches_thread(Touches *touches, pid_t tid)
{
    size_t at = thread_place(touches, tid);

    return at < touches->n_threads && touches->threads[at].key.tid == tid ? &touches->threads[at] : NULL;
}

int touches_add_thread(Touches *touches, TaskKey key)
{
    size_t at = thread_place(touches, key.tid);
    TouchThread thread = {
        .key = key, .preferred = NODE_NONE, .node = NODE_NONE, .main_node = NODE_NONE, .set = key.tid};
    int r;

    if (at < touches->n_threads && touches->threads[at].key.tid == key.tid)
        return -EEXIST;
    if (touches->n_threads >= TOUCHES_THREADS_MAX)
        return -E2BIG;
    r = faults_init(&thread.faults, touches->n_nodes);
    if (r < 0)
        return r;
    if (!INSERT(touches->threads, touches->threads_capacity, touches->n_threads, at)) {
        faults_done(&thread.faults);
        return -ENOMEM;
    }
    touches->threads[at] = thread;
    return 0;
}

static void sort_owners(TouchBlock *block)
{
    for (size_t i = 1; i < TOUCHES_OWNERS; i++)
        for (size_t k = i; k > 0; k--) {
            TouchOwner *a = &block->owners[k - 1], *b = &block->owners[k], swap = *a;

            if (a->weight > b->weight || (a->weight == b->weight && a->tid <= b->tid))
                break;
            *a = *b;
            *b = swap;
        }
}

static void forget_in_blocks(Touches *touches, pid_t tid)
{
    for (size_t i = 0; i < touches->n_blocks; i++) {
        TouchBlock *block = &touches->blocks[i];

        if (block->last_tid == tid)
            block->last_tid = 0;
        for (size_t k = 0; k < TOUCHES_OWNERS; k++)
            if (block->owners[k].tid == tid)
                block->owners[k] = (TouchOwner){0};
        sort_owners(block);
    }
}

int touches_forget_thread(Touches *touches, pid_t tid)
{
    TouchThread *thread = touches_thread(touches, tid);

    if (!thread)
        return -ENOENT;
    memset(thread->faults.nodes, 0, thread->faults.n_nodes * sizeof(*thread->faults.nodes));
    thread->faults.n_sequences = 0;
    thread->buddy = (Buddy){0};
    thread->n_samples = thread->n_blocks = 0;
    thread->node = thread->main_node = NODE_NONE;
    thread->node_rounds = thread->round_lead = 0;
    thread->seen = thread->wanders = false;
    memset(thread->now, 0, sizeof(thread->now));
    thread->own_now = thread->own_average = 0;
    thread->set = tid;
    thread->within_now = thread->beyond_now = thread->within = thread->beyond = 0;
    memset(thread->partners, 0, sizeof(thread->partners));
    forget_in_blocks(touches, tid);
    return 0;
}

int touches_remove_thread(Touches *touches, pid_t tid)
{
    size_t at = thread_place(touches, tid);
    int r = touches_forget_thread(touches, tid);

    if (r < 0)
        return r;
    touches_forget_partner(touches, tid);
    faults_done(&touches->threads[at].faults);
    touches->n_threads--;
    memmove(&touches->threads[at], &touches->threads[at + 1],
            (touches->n_threads - at) * sizeof(*touches->threads));
    return 0;
}

/*
 * Samples
 */

static uint64_t block_of(uint64_t address)
{
    return address / TOUCHES_BLOCK_BYTES;
}

int touches_add(Touches *touches, const Touch *touch)
{
    if (!touches_thread(touches, touch->tid)) {
        touches->n_foreign++;
        return 0;
    }
    if (touches->n_samples >= TOUCHES_SAMPLES_MAX) {
        touches->n_dropped++;
        return 0;
    }
    if (APPEND(touches->samples, touches->samples_capacity, touches->n_samples, *touch) < 0)
        return -ENOMEM;
    touches->n_taken++;
    return 0;
}

static int compare_samples(const void *va, const void *vb)
{
    const Touch *a = va, *b = vb;
    uint64_t block_a = block_of(a->address), block_b = block_of(b->address);

    if (block_a != block_b)
        return block_a < block_b ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->cpu_node.i > b->cpu_node.i) - (a->cpu_node.i < b->cpu_node.i);
}

/* The number of samples from `from` on that belong to one block, or to one thread in it. */
static size_t run_length(const Touches *touches, size_t from, bool of_thread)
{
    const Touch *first = &touches->samples[from];
    size_t n = 1;

    while (from + n < touches->n_samples &&
           block_of(touches->samples[from + n].address) == block_of(first->address) &&
           (!of_thread || touches->samples[from + n].tid == first->tid))
        n++;
    return n;
}

/* Drops samples of new blocks for which there is no room, those with the highest addresses. Returns the
 * number of new blocks. */
static size_t make_room(Touches *touches)
{
    size_t at = 0, kept = 0, n_new = 0;

    for (size_t i = 0, n; i < touches->n_samples; i += n) {
        uint64_t block = block_of(touches->samples[i].address);

        n = run_length(touches, i, false);
        while (at < touches->n_blocks && block_of(touches->blocks[at].address) < block)
            at++;
        if (at == touches->n_blocks || block_of(touches->blocks[at].address) != block) {
            if (touches->n_blocks + n_new == TOUCHES_BLOCKS_MAX) {
                touches->n_dropped += n;
                continue;
            }
            n_new++;
        }
        memmove(&touches->samples[kept], &touches->samples[i], n * sizeof(*touches->samples));
        kept += n;
    }
    touches->n_samples = kept;
    return n_new;
}

/* Merges the sorted samples into the sorted blocks, from the end of the array. */
static void merge(Touches *touches, size_t n_new)
{
    size_t old = touches->n_blocks, to = touches->n_blocks + n_new, end = touches->n_samples;

    while (end > 0) {
        const Touch *last = &touches->samples[end - 1];
        uint64_t block = block_of(last->address);

        while (old > 0 && block_of(touches->blocks[old - 1].address) > block)
            touches->blocks[--to] = touches->blocks[--old];
        if (old > 0 && block_of(touches->blocks[old - 1].address) == block) {
            touches->blocks[--to] = touches->blocks[--old];
            touches->blocks[to].address = last->address;
        } else {
            touches->blocks[--to] =
                (TouchBlock){.address = last->address, .node = NODE_NONE, .last_node = NODE_NONE};
        }
        while (end > 0 && block_of(touches->samples[end - 1].address) == block)
            end--;
    }
    touches->n_blocks += n_new;
}

int touches_gather(Touches *touches)
{
    size_t n_new;

    if (touches->n_samples == 0)
        return 0;
    qsort(touches->samples, touches->n_samples, sizeof(*touches->samples), compare_samples);
    n_new = make_room(touches);
    if (!GROW(touches->blocks, touches->blocks_capacity, touches->n_blocks + n_new)) {
        touches->n_samples = 0;
        return -ENOMEM;
    }
    merge(touches, n_new);
    return 0;
}

/*
 * Counting
 */

/* Adds to the weight of a thread in the block. The weakest owner makes room if it is weaker. */
static void own(TouchBlock *block, pid_t tid, uint32_t weight)
{
    TouchOwner *last = &block->owners[TOUCHES_OWNERS - 1];

    for (size_t i = 0; i < TOUCHES_OWNERS; i++)
        if (block->owners[i].tid == tid) {
            block->owners[i].weight += weight;
            sort_owners(block);
            return;
        }
    if (last->tid != 0)
        block->others += MIN(last->weight, weight);
    if (last->tid == 0 || last->weight < weight)
        *last = (TouchOwner){tid, weight};
    sort_owners(block);
}

static void fade(TouchBlock *block)
{
    block->others /= 2;
    for (size_t i = 0; i < TOUCHES_OWNERS; i++) {
        block->owners[i].weight /= 2;
        if (block->owners[i].weight == 0)
            block->owners[i] = (TouchOwner){0};
    }
}

static bool is_alone(const TouchBlock *block, pid_t tid)
{
    return block->others == 0 && block->owners[0].tid == tid && block->owners[1].tid == 0;
}

static uint32_t n_owners(const TouchBlock *block)
{
    uint32_t n = 0;

    for (size_t i = 0; i < TOUCHES_OWNERS; i++)
        n += block->owners[i].tid != 0;
    return MAX(n, 1U);
}

static void count_thread(Touches *touches, TouchThread *thread, const TouchBlock *block, const Touch *touch,
                         FaultsKind kind, uint32_t weight, size_t n_samples)
{
    TouchThread *other;

    thread->n_samples += n_samples;
    thread->n_blocks++;
    /* The first access to a block counts as private (P11), but says nothing about how the thread uses memory. */
    if (kind == FAULTS_KIND_SHARED || block->last_tid != 0) {
        thread->now[kind] += weight;
        thread->own_now += kind == FAULTS_KIND_PRIVATE && is_alone(block, touch->tid) ? weight : 0;
    }
    if (block->node.i < 0)
        return;
    faults_accessed(&thread->faults, block->node, kind, weight);
    if (kind != FAULTS_KIND_SHARED || block->last_tid == touch->tid)
        return;
    other = touches_thread(touches, block->last_tid);
    if (!other)
        return;
    buddy_accessed(&thread->buddy, thread->key, other->key, weight);
    touches_add_partner(thread, other, weight / n_owners(block));
}

/* Folds one block and its `n` samples from `from` on. */
static void fold_block(Touches *touches, TouchBlock *block, size_t from, size_t n)
{
    bool several = run_length(touches, from, true) < n;
    size_t most = 0, n_of;
    pid_t last_tid = 0;
    NodeIx last_node = NODE_NONE;

    fade(block);
    for (size_t i = from; i < from + n; i += n_of) {
        const Touch *touch = &touches->samples[i];
        bool alone = !several && (block->last_tid == 0 || block->last_tid == touch->tid);
        TouchThread *thread = touches_thread(touches, touch->tid);
        uint32_t weight;

        n_of = run_length(touches, i, true);
        if (!thread)
            continue;
        weight = MAX((uint32_t)(TOUCHES_ROUND * n_of / n), 1U);
        count_thread(touches, thread, block, touch, alone ? FAULTS_KIND_PRIVATE : FAULTS_KIND_SHARED, weight,
                     n_of);
        own(block, touch->tid, weight);
        touches_note_node(touches, thread, i, n_of);
        if (n_of > most) {
            most = n_of;
            last_tid = touch->tid;
            last_node = touch->cpu_node;
        }
    }
    block->last_tid = last_tid;
    block->last_node = last_node;
    block->n_rounds++;
    block->last_round = touches->n_rounds;
}

static void fold_threads(Touches *touches)
{
    for (size_t i = 0; i < touches->n_threads; i++) {
        TouchThread *thread = &touches->threads[i];

        faults_fold(&thread->faults);
        buddy_fold(&thread->buddy, thread->now[FAULTS_KIND_PRIVATE], thread->now[FAULTS_KIND_SHARED]);
        thread->own_average = (15 * thread->own_average + thread->own_now) / 16;
        memset(thread->now, 0, sizeof(thread->now));
        thread->own_now = 0;
        touches_fold_node(touches, thread);
    }
}

static void forget_old(Touches *touches)
{
    size_t kept = 0;

    for (size_t i = 0; i < touches->n_blocks; i++)
        if (touches->n_rounds - touches->blocks[i].last_round < TOUCHES_ROUNDS_KEPT)
            touches->blocks[kept++] = touches->blocks[i];
    touches->n_blocks = kept;
}

bool touches_fold(Touches *touches)
{
    size_t at = 0;

    if (touches->n_samples == 0)
        return false;
    touches->n_rounds++;
    for (size_t i = 0, n; i < touches->n_samples; i += n) {
        n = run_length(touches, i, false);
        while (block_of(touches->blocks[at].address) < block_of(touches->samples[i].address))
            at++;
        fold_block(touches, &touches->blocks[at], i, n);
    }
    touches->n_samples = 0;
    fold_threads(touches);
    touches_fold_sets(touches);
    forget_old(touches);
    return true;
}

/*
 * Results
 */

uint64_t touches_weight(const TouchBlock *block)
{
    uint64_t total = block->others;

    for (size_t i = 0; i < TOUCHES_OWNERS; i++)
        total += block->owners[i].weight;
    return total;
}

bool touches_shared(const TouchBlock *block)
{
    uint64_t total = touches_weight(block);

    return (total - block->owners[0].weight) * TOUCHES_MAY_DIFFER > total;
}

pid_t touches_owner(const TouchBlock *block)
{
    uint64_t total = touches_weight(block);

    if (block->n_rounds < TOUCHES_ROUNDS_MIN)
        return 0;
    return block->owners[0].weight * 1000ULL >= total * TOUCHES_OWNED_PERMILLE ? block->owners[0].tid : 0;
}

TouchesSummary touches_summary(const Touches *touches)
{
    TouchesSummary summary = {0};

    for (size_t i = 0; i < touches->n_blocks; i++) {
        const TouchBlock *block = &touches->blocks[i];

        if (block->n_rounds > 1 && block->owners[0].tid != 0) {
            summary.n_again++;
            summary.n_others += block->owners[1].tid != 0;
        }
        if (block->n_rounds >= TOUCHES_ROUNDS_MIN) {
            summary.n_judged++;
            summary.n_shared += touches_owner(block) == 0;
        }
        if (block->node.i < 0 || block->last_node.i < 0)
            continue;
        if (block->node.i == block->last_node.i)
            summary.n_local++;
        else
            summary.n_remote++;
    }
    if (summary.n_judged > 0)
        summary.overlap_permille = (uint32_t)(summary.n_shared * 1000 / summary.n_judged);
    return summary;
}

BuddyClass touches_thread_class(const TouchThread *thread)
{
    return thread->n_samples < TOUCHES_SAMPLES_MIN ? BUDDY_CLASS_UNKNOWN : thread->buddy.class;
}

/* The private part of the blocks accessed again, of all threads; -1 if there are too few. First accesses
 * count as private (P11) and say nothing about sharing, and a single block may be all that is shared. */
static double private_part(const Touches *touches)
{
    uint64_t own = 0, all = 0;

    for (size_t i = 0; i < touches->n_threads; i++) {
        own += touches->threads[i].own_average;
        all += touches->threads[i].buddy.private_average + touches->threads[i].buddy.shared_average;
    }
    return all >= (uint64_t)AGAIN_MIN * AVERAGE_BLOCK ? (double)own / (double)all : -1;
}

/* A lower bound of the private part of a thread's use, in permille: the part of the blocks accessed again at which no
 * other thread is remembered, less one standard deviation (E. B. Wilson's interval). `part` is that of all threads,
 * and counts like PRIOR_BLOCKS blocks. Of two threads that share everything, each is alone at half of the blocks after
 * two rounds, and at hardly any after ten. If nothing is shared, it is n of n + 1 blocks. */
static uint32_t private_permille(const TouchThread *thread, double part)
{
    const Buddy *buddy = &thread->buddy;
    double own = (double)thread->own_average / AVERAGE_BLOCK,
           n = (double)(buddy->private_average + buddy->shared_average) / AVERAGE_BLOCK + PRIOR_BLOCKS;

    part = (own + part * PRIOR_BLOCKS) / n;
    return (uint32_t)(MAX(part + 0.5 / n - sqrt(part * (1 - part) / n + 0.25 / (n * n)), 0.0) / (1 + 1 / n) *
                      1000);
}

/* The buddy to report: none of an open set, and the one reported before of a new set. */
static TaskKey told_buddy(const Touches *touches, const TouchThread *thread, const Task *task)
{
    TouchSet state;

    if (!touches_set(touches, thread->key.tid, &state) || state == TOUCH_SET_OPEN)
        return (TaskKey){0};
    if (state == TOUCH_SET_NEW && thread->tied.tid != 0)
        return task->use ? task->use->buddy : (TaskKey){0};
    return thread->tied;
}

static int tell_thread(const Touches *touches, const TouchThread *thread, double part, World *world,
                       uint64_t *pages, uint64_t now_usec)
{
    uint64_t all = faults_total(&thread->faults), own = faults_kind(&thread->faults, FAULTS_KIND_PRIVATE);
    Task *task = world_task(world, thread->key);
    int r;

    if (!task || task->gone)
        return 0;
    if (thread->n_samples < TOUCHES_SAMPLES_MIN || all == 0) {
        if (task->use)
            task->use->stay.node = NODE_NONE;
        return 0;
    }
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        pages[i] = faults_memory(&thread->faults, (NodeIx){(int32_t)i});
    /* Evidence without blocks is reported as it was counted. */
    r = world_set_task_use(world, task, pages,
                           touches->n_blocks > 0 ? private_permille(thread, part)
                                                 : (uint32_t)(own * 1000 / all),
                           told_buddy(touches, thread, task), now_usec);
    if (r == 0)
        touches_tell_node(thread, &task->use->stay, now_usec);
    return r;
}

int touches_tell(const Touches *touches, World *world, uint64_t now_usec)
{
    CLEANUP_FREE uint64_t *pages = calloc(MAX(world->topology->n_nodes, 1U), sizeof(*pages));
    double part = private_part(touches);
    int r = pages ? 0 : -ENOMEM;

    /* With blocks, nothing is reported before some have been accessed again. */
    for (size_t i = 0; i < touches->n_threads && r == 0 && (part >= 0 || touches->n_blocks == 0); i++)
        r = tell_thread(touches, &touches->threads[i], part, world, pages, now_usec);
    return r;
}

bool touches_check(const Touches *touches)
{
    bool good = touches->n_blocks <= TOUCHES_BLOCKS_MAX && touches->n_threads <= TOUCHES_THREADS_MAX &&
                touches->n_samples <= TOUCHES_SAMPLES_MAX;

    for (size_t i = 1; i < touches->n_threads; i++)
        good = good && touches->threads[i - 1].key.tid < touches->threads[i].key.tid;
    for (size_t i = 0; i < touches->n_blocks; i++) {
        const TouchBlock *block = &touches->blocks[i];

        good = good && (i == 0 || block_of(block[-1].address) < block_of(block->address));
        for (size_t k = 0; k < TOUCHES_OWNERS; k++)
            good = good && (block->owners[k].tid == 0) == (block->owners[k].weight == 0) &&
                   block->owners[k].weight < 2 * TOUCHES_ROUND + TOUCHES_OWNERS &&
                   (k == 0 || block->owners[k - 1].weight >= block->owners[k].weight);
    }
    return good;
}
