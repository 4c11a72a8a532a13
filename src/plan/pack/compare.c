/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves and exchanges (P6). A node is better for a task by the difference of the weights there and here, in permille of
 * its accesses. If nothing is free there, another task must come back in exchange, and the gain is the sum for both.
 *
 * Worked example: two full nodes, on each a task all of whose memory is on the other; no groups, equal load. Gain 1000
 * for one, 1000 for the other, and 1/8 more because that one comes home: 2250. The weights rise by 2000.
 *
 * Example of no gain: weights 480 here and 505 there are a difference of 25, less than 30. It would be followed one way
 * today and the other way tomorrow.
 *
 * No exchange inside a group, nor among tasks without one, if the destination has room: the kernel did such swaps
 * before 2022, and they only moved the same imbalance about.
 *
 * Two differences from the kernel make results depend less on the order of candidates and need fewer actions. A task
 * that comes home is preferred to one that does not, whichever is seen first, and only with the least gain and balanced
 * loads. And a plain move needs the least gain too. */

#include "plan/pack/compare.h"

#include "topo/imbalance.h"

/* By how much in percent demand must differ from capacity to matter: half of what the innermost NUMA domain allows,
 * whose imbalance_pct is 117. */
#define IMBALANCE_PERCENT 108U

#define SAME_GROUP_SHARE   16
#define AT_HOME_SHARE      16
#define SENDS_HOME_SHARE   8
#define RETRY_PERIOD_SHARE 16U
#define RETRY_MAX_USEC     1000000U

CompareNodeClass compare_classify(const CompareNode *node)
{
    uint64_t capacity = node->capacity, demand = (uint64_t)node->run + node->wait;
    bool run_above = node->run * (uint64_t)IMBALANCE_PERCENT > capacity * 100;
    bool run_below = node->run * (uint64_t)IMBALANCE_PERCENT < capacity * 100;
    bool demand_above = demand * 100 > capacity * IMBALANCE_PERCENT;
    bool demand_below = demand * 100 < capacity * IMBALANCE_PERCENT;

    if (node->n_running > node->n_cpus && (run_above || demand_above))
        return COMPARE_NODE_OVERLOADED;
    if (node->n_running < node->n_cpus || (run_below && demand_below))
        return COMPARE_NODE_SPARE;
    return COMPARE_NODE_BUSY;
}

void compare_weigh(CompareSubject *subject, const ScoreMachine *machine, const Faults *task,
                   const Faults *group, NodeIx here, NodeIx there)
{
    uint32_t limit = topology_distance(machine->topology, here, there);

    subject->task_here = task ? (int32_t)score_weight(machine, task, here, limit) : 0;
    subject->task_there = task ? (int32_t)score_weight(machine, task, there, limit) : 0;
    subject->group_here = group ? (int32_t)score_weight(machine, group, here, limit) : 0;
    subject->group_there = group ? (int32_t)score_weight(machine, group, there, limit) : 0;
}

static int32_t task_gain(const CompareSubject *subject)
{
    return subject->task_there - subject->task_here;
}

static int32_t group_gain(const CompareSubject *subject)
{
    return subject->group_there - subject->group_here;
}

bool compare_worth_trying(const CompareSubject *subject)
{
    return task_gain(subject) >= 0 || (subject->group_id && group_gain(subject) >= 0);
}

/* How far apart two loads are, each held against the capacity of the other node. */
static uint64_t apart(const CompareNode *src, const CompareNode *dst, int64_t shifted)
{
    int64_t src_load = (int64_t)src->run + src->wait - shifted;
    int64_t dst_load = (int64_t)dst->run + dst->wait + shifted;

    return (uint64_t)llabs(dst_load * src->capacity - src_load * dst->capacity);
}

static bool keeps_balance(const CompareNode *src, const CompareNode *dst, int64_t shifted)
{
    return apart(src, dst, shifted) <= apart(src, dst, 0);
}

bool compare_may_move(const CompareNode *src, const CompareNode *dst, const CompareSubject *subject,
                      uint32_t allowed)
{
    uint32_t src_running = src->n_running - MIN(subject->n_tasks, src->n_running);
    uint32_t dst_running = dst->n_running + subject->n_tasks;

    if (compare_classify(dst) != COMPARE_NODE_SPARE)
        return keeps_balance(src, dst, subject->load);
    return imbalance_adjust(dst_running - MIN(src_running, dst_running), dst_running, allowed) == 0;
}

CompareMove compare_begin(const CompareNode *src, const CompareNode *dst, const CompareSubject *subject,
                          uint32_t allowed, uint32_t gain_min)
{
    return (CompareMove){
        .src = *src,
        .dst = *dst,
        .dst_class = compare_classify(dst),
        .may_move = compare_may_move(src, dst, subject, allowed),
        .gain_min = (int32_t)gain_min,
        .gain_move = subject->group_id ? group_gain(subject) : task_gain(subject),
        .subject = *subject,
    };
}

/* Whole groups are compared by the group's table, which holds what a task shares with its fellows; where that says
 * nothing, because both are in one group or one is in none, the task's own counts. */
static int32_t exchange_gain(const CompareMove *move, const CompareSubject *other)
{
    int32_t gain = move->gain_move;

    if (other->group_id == move->subject.group_id) {
        gain = task_gain(&move->subject) + task_gain(other);
        gain -= other->group_id ? gain / SAME_GROUP_SHARE : 0;
    } else {
        gain += other->group_id && move->subject.group_id ? group_gain(other) : task_gain(other);
    }
    if (other->preferred.i == move->dst.node.i)
        gain -= gain / AT_HOME_SHARE;
    if (other->preferred.i == move->src.node.i)
        gain += gain / SENDS_HOME_SHARE;
    return gain;
}

static CompareVerdict offer_move(const CompareMove *move, CompareBest *best)
{
    if (!move->may_move)
        return COMPARE_IMBALANCE;
    if (move->gain_move < move->gain_min || move->gain_move < best->gain)
        return COMPARE_SMALL_GAIN;
    *best = (CompareBest){.found = true, .gain = move->gain_move};
    return COMPARE_TAKEN;
}

static bool is_better(const CompareMove *move, const CompareBest *best, const CompareBest *offer)
{
    if (offer->gain < move->gain_min)
        return false;
    if (best->exchange && best->sends_home != offer->sends_home)
        return offer->sends_home;
    return !best->found || offer->gain > best->gain + move->gain_min / 2;
}

CompareVerdict compare_offer(const CompareMove *move, const CompareSubject *other, size_t candidate,
                             CompareBest *best)
{
    CompareBest offer;

    if (!other)
        return offer_move(move, best);
    if (other->group_id == move->subject.group_id && move->dst_class == COMPARE_NODE_SPARE)
        return COMPARE_SAME_GROUP;

    offer = (CompareBest){
        .found = true,
        .exchange = true,
        .sends_home = other->preferred.i == move->src.node.i,
        .candidate = candidate,
        .gain = exchange_gain(move, other),
    };
    if (move->gain_move > offer.gain && move->gain_move > best->gain &&
        offer_move(move, best) == COMPARE_TAKEN)
        return COMPARE_PLAIN_MOVE;
    if (!is_better(move, best, &offer))
        return COMPARE_SMALL_GAIN;
    if (!keeps_balance(&move->src, &move->dst, (int64_t)move->subject.load - other->load))
        return COMPARE_IMBALANCE;
    *best = offer;
    return COMPARE_TAKEN;
}

uint64_t compare_retry_at(uint64_t now_usec, uint64_t scan_period_usec)
{
    return now_usec + MIN(scan_period_usec / RETRY_PERIOD_SHARE, RETRY_MAX_USEC);
}
