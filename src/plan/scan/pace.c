/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel looks at a task for as long as it lives, and its first look is no more urgent than the others. A
 * process that the daemon discovers runs at half its speed until the users of its memory are known, and three
 * rounds show them. So the first rounds come as fast as they are cheap:
 *
 *     FIRST -- three rounds, nothing more to learn (or 24) ------> PACED -- a round --> adapted
 *       ^                                                            |
 *       '---- threads start or stop working; less is local; ---------'
 *                     there is more to learn
 *
 * Example, 100 MB, 1 s to 60 s: rounds after 0.05, 0.1 and 0.15 s, then a second later. All is private and
 * local from then on, so the period is 1.3 times the one before, and 2 times if all of it is on one node: 1,
 * 2, 4 .. 32, 60 s. Half of it remote and shared: 0.8 times, with a second as the minimum.
 *
 * If all memory is remote and private, the kernel does not hurry, because each fault moves its page. Nor does
 * the daemon: what moves is known after the first rounds, and while it moves they go on.
 *
 * To the kernel, memory that threads on two nodes share is local on both, and a fault moves private memory.
 * So threads that exchange what they work on would not shorten the period, but here it takes three rounds to
 * know the users. The local share then drops, and that shows at once.
 *
 * A thread that changes what it works on without a pause is noticed up to one period late. So the period
 * grows only as long as that saves something: a round that costs 5 ms comes every second, one of 100 ms every
 * 20 s, and so on up to the minute; once all has come together on one node, every 5 s and every minute. */

#include "plan/scan/pace.h"

#include "base/util.h"
#include "plan/home/active.h"
#include "plan/scan/converge.h"

/* The local share must drop by a tenth, and by three standard deviations of as many coin tosses: of 16 blocks
 * 8 may be local, and by chance 13; of 64 blocks 32 and 44. */
#define FEWER_PERMILLE 100U
#define CERTAIN        UINT64_C(2250000)

/* Memory that has come together is used locally to at least this share. */
#define NEAR_PERMILLE 900U

/* The period of a settled process is at most this many times the cost of a round; longer once its memory has
 * come together on a node, since what could be learnt would not move it. Choices of ours. */
#define SETTLED_COST_RATIO  200U
#define TOGETHER_COST_RATIO 1000U

static bool is_together(const ScanPaceRound *round)
{
    return round->strength >= CONVERGE_FREEZE &&
           round->n_near * 1000 >= (round->n_near + round->n_far) * NEAR_PERMILLE;
}

static ScanPeriodRange range_for(const ScanPaceRound *round)
{
    ScanPeriodRange range = round->range;
    uint64_t ratio = is_together(round) ? TOGETHER_COST_RATIO : SETTLED_COST_RATIO;

    if (round->cost_usec > 0)
        range.max_usec = MIN(range.max_usec, MAX(round->cost_usec * ratio, range.min_usec));
    return range;
}

/* Whether the local share has dropped. Updates pace->near_permille. */
static bool has_left(ScanPace *pace, const ScanPaceRound *round)
{
    uint64_t n = round->n_near + round->n_far, fewer;
    uint32_t near = n > 0 ? (uint32_t)(round->n_near * 1000 / n) : pace->near_permille;

    fewer = pace->near_permille - MIN(near, pace->near_permille);
    if (fewer < FEWER_PERMILLE || fewer * fewer * n < CERTAIN) {
        pace->near_permille = MAX(pace->near_permille, near);
        return false;
    }
    pace->near_permille = near;
    return true;
}

static bool is_first(const ScanPace *pace, const ScanPaceRound *round)
{
    return pace->n_rounds < SCAN_PACE_FIRST_ROUNDS ||
           (round->learning && pace->n_rounds < SCAN_PACE_LEARN_ROUNDS);
}

void scan_pace_round(ScanPace *pace, const ScanPaceRound *round)
{
    const ScanPeriodRange range = range_for(round);
    uint64_t before = pace->period_usec;

    if (has_left(pace, round))
        scan_pace_restart(pace);
    pace->n_rounds = MIN(pace->n_rounds + 1, SCAN_PACE_LEARN_ROUNDS);
    if (is_first(pace, round)) {
        pace->period_usec = 0;
        return;
    }
    if (!round->learning)
        pace->n_rounds = SCAN_PACE_FIRST_ROUNDS;
    if (before == 0) {
        pace->period_usec = range.min_usec;
        return;
    }
    pace->period_usec = scan_period_adapt(&range, before, &round->seen);
    if (is_together(round))
        pace->period_usec = MAX(pace->period_usec, MIN(before * 2, range.max_usec));
}

void scan_pace_restart(ScanPace *pace)
{
    pace->period_usec = 0;
    pace->n_rounds = 0;
}

void scan_pace_moved(ScanPace *pace, const ScanPeriodRange *range, uint64_t moved_usec)
{
    if (moved_usec <= pace->moved_usec)
        return;
    pace->moved_usec = moved_usec;
    if (pace->period_usec > 0)
        pace->period_usec = MIN(pace->period_usec, range->min_usec);
}

uint64_t scan_pace_moved_usec(const Group *group)
{
    return MAX(group->last_home_usec, group->apart_usec);
}

uint64_t scan_pace_usec(const ScanPace *pace)
{
    return pace->period_usec > 0 ? pace->period_usec : SCAN_PACE_FIRST_USEC;
}

/*
 * What a round says
 */

static bool is_of_round(const Touches *touches, const TouchBlock *block)
{
    return block->last_round == touches->n_rounds;
}

static int find_active(const Touches *touches, hwloc_bitmap_t active)
{
    CLEANUP_FREE uint64_t *used = calloc(MAX(touches->n_nodes, 1U), sizeof(*used));

    if (!used)
        return -ENOMEM;
    for (size_t i = 0; i < touches->n_blocks; i++)
        if (is_of_round(touches, &touches->blocks[i]) && touches->blocks[i].last_node.i >= 0)
            used[touches->blocks[i].last_node.i]++;
    return active_nodes(used, touches->n_nodes, active);
}

/* A block of which only one user was seen counts as private, even if seen too rarely to have an owner. */
static FaultsKind kind_of(const TouchBlock *block)
{
    return touches_shared(block) ? FAULTS_KIND_SHARED : FAULTS_KIND_PRIVATE;
}

static void add_block(const TouchBlock *block, hwloc_const_bitmap_t active, ScanPaceRound *round)
{
    FaultsKind kind = kind_of(block);
    ScanPeriodSeen *seen = &round->seen;

    seen->private_faults += kind == FAULTS_KIND_PRIVATE;
    seen->shared_faults += kind == FAULTS_KIND_SHARED;
    if (block->node.i < 0 || block->last_node.i < 0)
        return;
    round->n_near += block->last_node.i == block->node.i;
    round->n_far += block->last_node.i != block->node.i;
    if (active_is_local(active, kind, block->last_node, block->node))
        seen->local++;
    else
        seen->remote++;
}

static void add_thread(const TouchThread *thread, ScanPaceRound *round)
{
    uint64_t total = faults_total(&thread->faults),
             local = thread->preferred.i >= 0 ? faults_memory(&thread->faults, thread->preferred) : 0;

    round->seen.private_faults += faults_kind(&thread->faults, FAULTS_KIND_PRIVATE);
    round->seen.shared_faults += faults_kind(&thread->faults, FAULTS_KIND_SHARED);
    round->seen.local += local;
    round->seen.remote += total - local;
    round->n_near += local;
    round->n_far += total - local;
}

int scan_pace_read(const Touches *touches, ScanPaceRound *ret)
{
    hwloc_bitmap_t active = hwloc_bitmap_alloc();
    int r = active ? find_active(touches, active) : -ENOMEM;
    size_t n_known = 0;

    ret->seen = (ScanPeriodSeen){0};
    ret->n_near = ret->n_far = 0;
    for (size_t i = 0; i < touches->n_blocks && r == 0; i++) {
        n_known += touches->blocks[i].n_rounds >= TOUCHES_ROUNDS_MIN;
        if (is_of_round(touches, &touches->blocks[i]))
            add_block(&touches->blocks[i], active, ret);
    }
    for (size_t i = 0; i < touches->n_threads && touches->n_blocks == 0; i++)
        add_thread(&touches->threads[i], ret);
    ret->learning = n_known * 4 < touches->n_blocks * 3;
    hwloc_bitmap_free(active);
    return r;
}
