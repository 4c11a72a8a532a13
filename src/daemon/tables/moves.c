/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A fixed ring and a fixed table, allocated as they fill: 2048 of each are about 600 KiB. Masks and names are
 * interned in a separate pool, because the World's is swept of what the World does not hold. This pool is
 * swept once in each round of the ring; with at most hundreds of masks in use, that is cheap and rare. */

#include "daemon/tables/moves.h"

#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Key of a refusal; zeroed before it is filled, because the hash is over its bytes. */
typedef struct RefusalKey {
    uint64_t group_id;
    uint64_t start_ticks;
    int32_t pid, tid;
    int32_t reason;
    int32_t pad;
} RefusalKey;

typedef struct Entry {
    MoveRefusal refusal; /* first: an Entry is found from it */
    RefusalKey key;
    UT_hash_handle hh;
} Entry;

struct Moves {
    InternPool *pool;
    Move *ring; /* grows to MOVES_MAX, then wraps */
    size_t n_ring, ring_capacity;
    uint64_t last;
    uint64_t swept_at; /* value of `last` at the last sweep */

    Entry *by_key;
    MoveRefusal *refusals; /* oldest first */
};

Moves *moves_new(void)
{
    Moves *moves = calloc(1, sizeof(*moves));

    if (!moves)
        return NULL;
    moves->pool = intern_pool_new();
    if (!moves->pool)
        return moves_free(moves);
    return moves;
}

static void drop_refusal(Moves *moves, Entry *e)
{
    DL_DELETE2(moves->refusals, &e->refusal, older, newer);
    HASH_DEL(moves->by_key, e);
    free(e);
}

Moves *moves_free(Moves *moves)
{
    Entry *e, *next;

    if (!moves)
        return NULL;
    HASH_ITER (hh, moves->by_key, e, next)
        drop_refusal(moves, e);
    free(moves->ring);
    intern_pool_free(moves->pool);
    free(moves);
    return NULL;
}

static void sweep(Moves *moves)
{
    intern_pool_begin(moves->pool);
    for (size_t i = 0; i < moves->n_ring; i++) {
        intern_mark_string(moves->pool, moves->ring[i].workload);
        intern_mark_mask(moves->pool, moves->ring[i].from);
        intern_mark_mask(moves->pool, moves->ring[i].to);
        intern_mark_mask(moves->pool, moves->ring[i].home_nodes);
        intern_mark_mask(moves->pool, moves->ring[i].memory_from);
        intern_mark_mask(moves->pool, moves->ring[i].memory_to);
        intern_mark_mask(moves->pool, moves->ring[i].memory_help);
    }
    for (const MoveRefusal *r = moves->refusals; r; r = r->newer)
        intern_mark_string(moves->pool, r->workload);
    intern_pool_sweep(moves->pool);
    moves->swept_at = moves->last;
}

static Move *ring_at(const Moves *moves, uint64_t sequence)
{
    return &moves->ring[(sequence - 1) % MOVES_MAX];
}

static const char *workload_name(const World *world, WorkloadIx workload)
{
    return workload.i >= 0 && (size_t)workload.i < world->n_workloads ? world->workloads[workload.i].name
                                                                      : NULL;
}

static bool keep_mask(Moves *moves, CpuMask mask, CpuMask *ret)
{
    *ret = mask ? intern_mask(moves->pool, mask) : NULL;
    return !mask || *ret;
}

static bool keep_string(Moves *moves, const char *s, const char **ret)
{
    *ret = intern_string(moves->pool, s);
    return !s || *ret;
}

/* Finds a recent action that is the same and had the same outcome. */
static Move *find_same(Moves *moves, const PlanAction *action, PlanOutcome outcome)
{
    uint64_t end = moves->last > MOVES_FOLD_MAX ? moves->last - MOVES_FOLD_MAX : 0;

    for (uint64_t s = moves->last; s > end; s--) {
        Move *m = ring_at(moves, s);

        if (m->subject.pid == action->subject.pid && m->subject.tid == action->subject.tid &&
            m->subject.start_ticks == action->subject.start_ticks && m->kind == action->kind &&
            m->rule == action->rule && m->cpu.i == action->cpu.i)
            return m->outcome == outcome ? m : NULL;
    }
    return NULL;
}

static void copy_comm(World *world, const TaskKey *key, char *comm)
{
    const Task *task = NULL;

    if (key->tid > 0)
        task = world_task_by_tid(world, key->pid, key->tid);
    if (task) {
        memcpy(comm, task->comm, WORLD_COMM_SIZE);
    } else {
        const Process *process = world_process(world, key->pid);

        if (process && process->comm)
            (void)strncpy(comm, process->comm, WORLD_COMM_SIZE - 1);
    }
    comm[WORLD_COMM_SIZE - 1] = '\0';
}

int moves_add(Moves *moves, World *world, const PlanAction *action, PlanOutcome outcome,
              uint64_t realtime_usec, const Move **ret_new)
{
    Move move = {
        .sequence = moves->last + 1,
        .time_usec = world->now_usec,
        .realtime_usec = realtime_usec,
        .tick = world->tick,
        .kind = action->kind,
        .rule = action->rule,
        .outcome = outcome,
        .count = 1,
        .subject = action->subject,
        .group_id = action->group_id,
        .cpu = action->cpu,
        .lease_usec = action->lease_usec,
        .distance = action->distance,
        .value = action->value,
        .limit = action->limit,
        .mechanism = action->mechanism,
        .cross_node = action->cross_node,
        .memory_bytes = action->memory.bytes,
    };

    if (outcome != PLAN_OUTCOME_DONE) {
        Move *same = find_same(moves, action, outcome);

        if (same) {
            same->count += same->count < UINT32_MAX;
            same->time_usec = move.time_usec;
            same->realtime_usec = realtime_usec;
            same->tick = move.tick;
            *ret_new = NULL;
            return 0;
        }
    }

    if (moves->n_ring < MOVES_MAX && !GROW(moves->ring, moves->ring_capacity, moves->n_ring + 1))
        return -ENOMEM;
    if (moves->last - moves->swept_at >= MOVES_MAX)
        sweep(moves);
    if (!keep_mask(moves, action->from, &move.from) || !keep_mask(moves, action->to, &move.to) ||
        !keep_mask(moves, action->home_nodes, &move.home_nodes) ||
        !keep_mask(moves, action->memory.from, &move.memory_from) ||
        !keep_mask(moves, action->memory.to, &move.memory_to) ||
        !keep_mask(moves, action->memory.help, &move.memory_help) ||
        !keep_string(moves, workload_name(world, action->workload), &move.workload))
        return -ENOMEM;
    if (action->kind == PLAN_KIND_RELEASE && outcome == PLAN_OUTCOME_FOREIGN)
        move.to = move.from; /* the earlier mask was not put back */
    copy_comm(world, &action->subject, move.comm);

    moves->last++;
    if (moves->n_ring < MOVES_MAX)
        moves->n_ring++;
    *ring_at(moves, moves->last) = move;
    *ret_new = ring_at(moves, moves->last);
    return 0;
}

int moves_refuse(Moves *moves, const World *world, const PlanRefusal *refusal)
{
    RefusalKey key;
    Entry *e = NULL;

    memset(&key, 0, sizeof(key));
    key.group_id = refusal->group_id;
    key.start_ticks = refusal->subject.start_ticks;
    key.pid = refusal->subject.pid;
    key.tid = refusal->subject.tid;
    key.reason = refusal->reason;

    HASH_FIND(hh, moves->by_key, &key, sizeof(key), e);
    if (e) {
        DL_DELETE2(moves->refusals, &e->refusal, older, newer);
    } else {
        if (HASH_COUNT(moves->by_key) >= MOVES_REFUSALS_MAX)
            drop_refusal(moves, (Entry *)moves->refusals);
        e = calloc(1, sizeof(*e));
        if (!e)
            return -ENOMEM;
        e->key = key;
        HASH_ADD(hh, moves->by_key, key, sizeof(e->key), e);
        if (!e->hh.tbl) {
            free(e);
            return -ENOMEM;
        }
    }

    e->refusal.reason = refusal->reason;
    e->refusal.subject = refusal->subject;
    e->refusal.group_id = refusal->group_id;
    e->refusal.mechanism = refusal->mechanism;
    e->refusal.cpu = refusal->cpu;
    e->refusal.value = refusal->value;
    e->refusal.limit = refusal->limit;
    e->refusal.count++;
    e->refusal.time_usec = world->now_usec;
    e->refusal.tick = world->tick;
    DL_APPEND2(moves->refusals, &e->refusal, older, newer);
    return keep_string(moves, workload_name(world, refusal->workload), &e->refusal.workload) ? 0 : -ENOMEM;
}

uint64_t moves_last(const Moves *moves)
{
    return moves->last;
}

const Move *moves_next(const Moves *moves, uint64_t after)
{
    uint64_t oldest = moves->last - moves->n_ring + 1;
    uint64_t sequence = MAX(after + 1, oldest);

    if (after == UINT64_MAX || sequence > moves->last || moves->n_ring == 0)
        return NULL;
    return ring_at(moves, sequence);
}

const MoveRefusal *moves_refusals(const Moves *moves)
{
    return moves->refusals;
}

void moves_forget_nodes(Moves *moves)
{
    Entry *e, *next;

    for (size_t i = 0; i < moves->n_ring; i++) {
        Move *move = &moves->ring[i];

        move->home_nodes = move->memory_from = move->memory_to = move->memory_help = NULL;
    }
    HASH_ITER (hh, moves->by_key, e, next)
        drop_refusal(moves, e);
}
