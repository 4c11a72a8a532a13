/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tables/gains.h"

#include "plan/would.h"

#include <math.h>

typedef struct Looks {
    uint16_t values[GAIN_LOOKS]; /* permille, a ring */
    uint32_t n;                  /* ever taken */
} Looks;

typedef struct Entry {
    uint64_t group_id;
    uint64_t home_usec; /* Group.last_home_usec at the last look */
    bool changed;       /* `before` is known */
    bool at_home;       /* at the last look */
    bool seen;          /* in this look */
    uint64_t local_sum, local_of;
    GainSide before;
    Looks waits, local; /* since the last change */
} Entry;

struct Gains {
    Entry *entries; /* ascending group_id */
    size_t n, capacity;
};

Gains *gains_new(void)
{
    return calloc(1, sizeof(Gains));
}

Gains *gains_free(Gains *gains)
{
    if (gains)
        free(gains->entries);
    free(gains);
    return NULL;
}

static void take(Looks *looks, uint32_t permille)
{
    looks->values[looks->n++ % GAIN_LOOKS] = (uint16_t)permille;
}

static GainMean mean_of(const Looks *looks)
{
    uint32_t n = MIN(looks->n, GAIN_LOOKS);
    double sum = 0.0, squares = 0.0, mean;

    if (n < GAIN_LOOKS_MIN)
        return (GainMean){0};
    for (uint32_t i = 0; i < n; i++) {
        sum += looks->values[i];
        squares += (double)looks->values[i] * looks->values[i];
    }
    mean = sum / n;
    return (GainMean){
        .known = true,
        .permille = (uint32_t)(mean + 0.5),
        .noise = (uint32_t)(sqrt(MAX(squares / n - mean * mean, 0.0)) + 0.5),
    };
}

static GainSide side_of(const Entry *e)
{
    return (GainSide){.waits = mean_of(&e->waits), .local = mean_of(&e->local)};
}

/* A home that a group had when it was first seen has no before. A home that it has left is worth nothing. */
static void note_change(Entry *e, const Group *group)
{
    uint64_t home_usec = group->last_home_usec;
    bool left = e->at_home && !group->home;

    e->at_home = group->home;
    if (left) {
        e->changed = false;
        e->waits.n = e->local.n = 0;
    }
    if (e->home_usec == home_usec)
        return;
    e->home_usec = home_usec;
    e->before = side_of(e);
    e->changed = e->before.waits.known || e->before.local.known;
    e->waits.n = e->local.n = 0;
}

static Entry *find(const Gains *gains, uint64_t group_id)
{
    size_t at = LOWER_BOUND(i, gains->n, gains->entries[i].group_id < group_id);

    return at < gains->n && gains->entries[at].group_id == group_id ? &gains->entries[at] : NULL;
}

/* Valid until the next one is added. NULL: out of memory. */
static Entry *entry_of(Gains *gains, const Group *group)
{
    size_t at = LOWER_BOUND(i, gains->n, gains->entries[i].group_id < group->id);

    if (at < gains->n && gains->entries[at].group_id == group->id)
        return &gains->entries[at];
    if (!INSERT(gains->entries, gains->capacity, gains->n, at))
        return NULL;
    gains->entries[at] = (Entry){.group_id = group->id, .home_usec = group->last_home_usec};
    return &gains->entries[at];
}

/* Sums up the local shares of each group's processes, weighted by CPU time. */
static int sum_local(Gains *gains, const World *world)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        const Process *process = &world->processes[i];
        uint32_t local =
            process->gone || process->group.i < 0 ? WOULD_UNKNOWN : would_local_now(world, process);
        Entry *e;

        if (local == WOULD_UNKNOWN)
            continue;
        e = entry_of(gains, &world->groups[process->group.i]);
        if (!e)
            return -ENOMEM;
        e->local_sum += (uint64_t)local * (process->cpu_permille + 1);
        e->local_of += process->cpu_permille + 1;
    }
    return 0;
}

static void look_at(Entry *e, const World *world, const Group *group)
{
    uint32_t wants = group->run_permille + group->wait_permille;

    note_change(e, group);
    if (e->changed && world->now_usec < e->home_usec + GAIN_SETTLE_USEC)
        return;
    /* A group that sleeps says nothing. */
    if (wants < 10)
        return;
    take(&e->waits, (uint32_t)((uint64_t)group->wait_permille * 1000 / wants));
    if (e->local_of > 0)
        take(&e->local, (uint32_t)(e->local_sum / e->local_of));
}

int gains_look(Gains *gains, const World *world)
{
    size_t n = 0;

    for (size_t i = 0; i < gains->n; i++) {
        gains->entries[i].seen = false;
        gains->entries[i].local_sum = gains->entries[i].local_of = 0;
    }
    if (sum_local(gains, world) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < world->n_groups; i++) {
        Entry *e = world->groups[i].gone ? NULL : entry_of(gains, &world->groups[i]);

        if (world->groups[i].gone)
            continue;
        if (!e)
            return -ENOMEM;
        e->seen = true;
        look_at(e, world, &world->groups[i]);
    }
    for (size_t i = 0; i < gains->n; i++)
        if (gains->entries[i].seen)
            gains->entries[n++] = gains->entries[i];
    gains->n = n;
    return 0;
}

bool gains_find(const Gains *gains, uint64_t group_id, Gain *ret)
{
    const Entry *e = find(gains, group_id);

    if (!e || !e->changed)
        return false;
    *ret = (Gain){.since_usec = e->home_usec, .before = e->before, .after = side_of(e)};
    return (ret->before.waits.known && ret->after.waits.known) ||
           (ret->before.local.known && ret->after.local.known);
}

bool gains_now(const Gains *gains, uint64_t group_id, GainSide *ret)
{
    const Entry *e = find(gains, group_id);

    if (!e)
        return false;
    *ret = side_of(e);
    return true;
}
