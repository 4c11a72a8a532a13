/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A cpuset is always read from the cgroup, never taken from an answer: a service manager answers before it
 * writes, and somebody else may have written since. A set that is neither the original nor ours is somebody
 * else's decision. It is restored from then on, and the fence stays down for a while. */

#include "act/fence/fence.h"

#include "act/fence/aside.h"
#include "act/fence/dropin.h"
#include "act/fence/internal.h"
#include "act/fence/unit.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"

#include <string.h>

/* A change not visible after this time is taken back. A manager in a daemon-reload can take seconds. */
#define CHANGE_USEC (5U * USEC_PER_SEC)

/* Time until the next try after a refused change. */
#define REFUSED_USEC (60U * USEC_PER_SEC)

/* The kernel refuses to take all its own CPUs from a cgroup in which something runs (ENOSPC). So one that had
 * none first gets all CPUs, the same in effect, and then none. That succeeds where nothing else needs the
 * controller, and else does no harm. */

static const FenceOps ops_list = {.set = fence_write};

static const char *const properties[] = {"AllowedCPUs", "AllowedMemoryNodes"};
static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};

static Fence *fence_free(Fence *fence)
{
    if (!fence)
        return NULL;
    free(fence->name);
    free(fence->path);
    free(fence->moved);
    free(fence->members);
    hwloc_bitmap_free(fence->before);
    hwloc_bitmap_free(fence->outer);
    hwloc_bitmap_free(fence->target);
    hwloc_bitmap_free(fence->away);
    hwloc_bitmap_free(fence->nodes);
    free(fence);
    return NULL;
}

DEFINE_CLEANUP(Fence *, fence_free)

void fence_read_online(Fences *fences)
{
    (void)root_read_list(fences->root_fd, "sys/devices/system/cpu/online", fences->online[false]);
}

/* Sets up what serves CPUs, or memory. False when out of memory. */
static bool make_means(Fences *fences, bool memory)
{
    fences->possible[memory] = hwloc_bitmap_alloc();
    fences->online[memory] = hwloc_bitmap_alloc_full();
    fences->units[memory] = fence_units_new(properties[memory], NULL);
    if (!fences->possible[memory] || !fences->online[memory] || !fences->units[memory])
        return false;
    (void)root_read_list(fences->root_fd,
                         memory ? "sys/devices/system/node/possible" : "sys/devices/system/cpu/possible",
                         fences->possible[memory]);
    fences_set_ops(fences, ACT_FENCE_UNIT, memory, &fence_ops_unit, fences->units[memory]);
    return true;
}

/* CPU lists are written at once. */
static bool make_writers(Fences *fences)
{
    for (ActFenceKind kind = ACT_FENCE_CGROUP2; kind < ACT_FENCE_MAX; kind++) {
        for (int memory = false; memory <= true; memory++)
            fences->lists[memory][kind] = (FenceList){fences->root_fd, kind, memory};
        fences->aside[kind] = fence_aside_new(fence_write, &fences->lists[true][kind]);
        if (!fences->aside[kind])
            return false;
        fences_set_ops(fences, kind, false, &ops_list, &fences->lists[false][kind]);
        fences_set_ops(fences, kind, true, &fence_ops_aside, fences->aside[kind]);
    }
    return true;
}

Fences *fences_new(Journal *journal, int root_fd)
{
    CLEANUP(fences_free_p) Fences *fences = calloc(1, sizeof(*fences));

    if (!fences)
        return NULL;
    fences->journal = journal;
    fences->root_fd = root_fd;
    fences->scratch = hwloc_bitmap_alloc();
    fences->difference = hwloc_bitmap_alloc();
    if (!fences->scratch || !fences->difference || !make_means(fences, false) || !make_means(fences, true) ||
        !make_writers(fences))
        return NULL;
    fence_host_read(root_fd, &fences->host);
    return TAKE_PTR(fences);
}

Fences *fences_free(Fences *fences)
{
    if (!fences)
        return NULL;
    for (size_t i = 0; i < fences->n_fences; i++)
        fence_free(fences->fences[i]);
    free(fences->fences);
    free(fences->groups);
    for (size_t i = 0; i < ARRAY_SIZE(fences->aside); i++)
        fence_aside_free(fences->aside[i]);
    for (int memory = false; memory <= true; memory++) {
        fence_units_free(fences->units[memory]);
        hwloc_bitmap_free(fences->possible[memory]);
        hwloc_bitmap_free(fences->online[memory]);
    }
    hwloc_bitmap_free(fences->scratch);
    hwloc_bitmap_free(fences->difference);
    free(fences);
    return NULL;
}

void fences_set_ops(Fences *fences, ActFenceKind kind, bool memory, const FenceOps *ops, void *context)
{
    fences->means[memory][kind] = (FenceMeans){.ops = ops, .context = context};
}

Fence *fence_find(const Fences *fences, const char *name, bool memory)
{
    for (size_t i = 0; i < fences->n_fences; i++)
        if (fences->fences[i]->memory == memory && strcmp(fences->fences[i]->name, name) == 0)
            return fences->fences[i];
    return NULL;
}

/* Changing */

int fence_read_now(const Fences *fences, ActFenceKind kind, const char *path, bool memory, hwloc_bitmap_t ret)
{
    return fence_read(fences->root_fd, kind, path, files[memory], ret);
}

static int read_now(const Fences *fences, const Fence *fence, hwloc_bitmap_t ret)
{
    return fence_read_now(fences, fence->kind, fence_path(fence), fence->memory, ret);
}

int fence_result(const Fences *fences, ActFenceKind kind, const char *name, bool memory)
{
    const FenceMeans *means = &fences->means[memory][kind];

    return means->ops->result ? means->ops->result(means->context, name) : 0;
}

static int result(const Fences *fences, const Fence *fence)
{
    return fence_result(fences, fence->kind, fence_name(fence), fence->memory);
}

static const FenceMeans *means_of(const Fences *fences, const Fence *fence)
{
    return &fences->means[fence->memory][fence->kind];
}

static bool alike(const Fences *fences, const Fence *fence, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    return fence_alike(fences, fence->memory, a, b);
}

static void enter(Fence *fence, FenceState state)
{
    fence->state = state;
    fence->stale = true;
    if (state == FENCE_UP)
        fence->error = 0;
}

static void rest(Fence *fence, uint64_t usec)
{
    fence->rest_usec = MAX(fence->rest_usec, time_now_usec() + usec);
}

/* Asks for `set`. 0, or -errno if it was refused at once. */
static int ask(Fences *fences, Fence *fence, hwloc_const_bitmap_t set, FenceState state)
{
    const FenceMeans *means = means_of(fences, fence);
    int r = means->ops->set(means->context, fence_name(fence), set);

    if (r < 0) {
        fence->error = r;
        return r;
    }
    fence->asked_usec = time_now_usec();
    fence->letter = false;
    enter(fence, state);
    return 0;
}

static int note(Fences *fences, const Fence *fence)
{
    return journal_note_fence(fences->journal, &(JournalFence){
                                                   .kind = fence->kind,
                                                   .name = fence->name,
                                                   .path = fence->path,
                                                   .memory = fence->memory,
                                                   .dropin = fence->dropin,
                                                   .inode = fence->inode,
                                                   .before = fence->before,
                                               });
}

/* Whether a unit has its set from somebody's drop-in. If their change crossed ours, our drop-in may have
 * replaced theirs. */
static bool has_dropin(const Fences *fences, const Fence *fence, bool crossed)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    return fence->kind == ACT_FENCE_UNIT && set &&
           fence_dropin_read(fences->root_fd, fence->name, properties[fence->memory], set) == 0 &&
           (alike(fences, fence, set, fence->before) ||
            (crossed && (fence->dropin || alike(fences, fence, set, fence->target))));
}

void fence_tidy(Fences *fences, const JournalFence *entry)
{
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (entry->kind == ACT_FENCE_UNIT && !entry->dropin && set &&
        fence_dropin_read(fences->root_fd, entry->name, properties[entry->memory], set) == 0 &&
        (fence_is_ours(fences, entry, set) || fence_alike(fences, entry->memory, set, entry->before) ||
         fence_is_back(fences, entry->memory, entry->before, set)))
        fence_dropin_remove(fences->root_fd, entry->name, properties[entry->memory]);
}

/* Forgets a fence that is down once nothing of ours is left: a user who chooses the same CPUs from then on
 * keeps them, here or below. Units stay, since a service manager may still write what it was asked for. */
static void forget(Fences *fences, Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name, fence->memory);
    int r = fence->noted ? fence_look_again(fences, fence) : -EAGAIN;

    if (r < 0 && r != -ENOENT)
        return;
    if (r >= 0 && entry) {
        if (read_now(fences, fence, fences->scratch) < 0)
            return; /* try again later */
        if (fence_is_ours(fences, entry, fences->scratch) &&
            !fence_is_back(fences, fence->memory, fence->before, fences->scratch)) {
            (void)ask(fences, fence, fence_way_down(fences, fence->memory, fence->before), FENCE_FALLING);
            return;
        }
        if (fence_release_below(fences, entry, fence_path(fence)) > 0 || fence_look_again(fences, fence) > 0)
            return;
    }
    if (journal_note_unfenced(fences->journal, fence->name, fence->memory) < 0)
        return;
    fence->noted = false;
    free(fence->moved);
    fence->moved = NULL;
}

/* Accepts what somebody else gave the cgroup. */
static void yield(Fences *fences, Fence *fence, hwloc_const_bitmap_t now)
{
    bool known = alike(fences, fence, now, fence->before);

    enter(fence, FENCE_DOWN);
    fence->n_foreign++;
    rest(fence, FENCE_REST_USEC);
    if (fence->kind != ACT_FENCE_UNIT || known || hwloc_bitmap_copy(fence->before, now) < 0)
        return;
    fence->dropin = has_dropin(fences, fence, false);
    /* If this cannot be written, the old value may be restored one day, but only if the cgroup has a set of
     * ours then. */
    (void)note(fences, fence);
}

static void refuse(Fence *fence, int error, FenceState state)
{
    fence->error = error;
    enter(fence, state);
    rest(fence, REFUSED_USEC);
}

/* Asks for the literal original of a set that is back in effect. Returns whether there is nothing to wait for. */
static bool is_back_to_the_letter(const Fences *fences, Fence *fence, bool empty)
{
    const FenceMeans *means = means_of(fences, fence);

    if (empty || !hwloc_bitmap_iszero(fence->before))
        return true;
    fence->letter = true;
    return means->ops->set(means->context, fence_name(fence), fence->before) < 0 ||
           result(fences, fence) != -EINPROGRESS;
}

static void settle_rising(Fences *fences, Fence *fence, int r, int now)
{
    if (r < 0)
        refuse(fence, r, FENCE_DOWN);
    else if (now == 0 && alike(fences, fence, fences->scratch, fence->target))
        enter(fence, FENCE_UP);
}

static void settle_falling(Fences *fences, Fence *fence, int r, int now)
{
    bool gone = now == -ENOENT; /* a unit that does not run keeps its property */
    bool done = fence->letter || r == -ENOENT;

    if (!done && r < 0) {
        refuse(fence, r, FENCE_UP);
        return;
    }
    if (done ||
        ((gone || (now == 0 && fence_is_back(fences, fence->memory, fence->before, fences->scratch))) &&
         is_back_to_the_letter(fences, fence, now == 0 && hwloc_bitmap_iszero(fences->scratch))))
        enter(fence, FENCE_DOWN);
}

/* Whether somebody else changed a unit while the service manager carries out our request. Lists that we write
 * ourselves take effect at once. A unit that is being restarted briefly has an empty set. */
static bool is_crossed(const Fences *fences, const Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name, fence->memory);
    hwloc_const_bitmap_t now = fences->scratch;

    return fence->kind == ACT_FENCE_UNIT && !hwloc_bitmap_iszero(now) &&
           !alike(fences, fence, now, fence->target) && !alike(fences, fence, now, fence->before) &&
           !fence_is_back(fences, fence->memory, fence->before, now) &&
           (!entry || !fence_is_ours(fences, entry, now));
}

/* While a fence rises, our change comes after theirs and hides it. So theirs is asked for again, after ours. */
static void give_way(Fences *fences, Fence *fence)
{
    if (hwloc_bitmap_copy(fence->before, fences->scratch) < 0)
        return;
    fence->dropin = has_dropin(fences, fence, true);
    (void)note(fences, fence);
    fence->n_foreign++;
    fence->error = 0;
    rest(fence, FENCE_REST_USEC);
    /* If this fails, ours may still come, and is taken back when it has or is late. */
    (void)ask(fences, fence, fence_way_down(fences, fence->memory, fence->before), FENCE_FALLING);
}

/* Accepts what somebody else gave the cgroup, as just read. */
static void respect(Fences *fences, Fence *fence, int r)
{
    if (fence->state == FENCE_RISING || r == -EINPROGRESS || fence_is_lost(r))
        give_way(fences, fence);
    else
        yield(fences, fence, fences->scratch);
}

/* Asks for the original of a change of which it is not known whether it was made. */
static void take_back(Fences *fences, Fence *fence, int error)
{
    (void)ask(fences, fence, fence_way_down(fences, fence->memory, fence->before), FENCE_FALLING);
    fence->error = error;
    rest(fence, REFUSED_USEC);
}

static void settle_change(Fences *fences, Fence *fence)
{
    int r = result(fences, fence), now = read_now(fences, fence, fences->scratch);

    if ((r == 0 || r == -EINPROGRESS || fence_is_lost(r)) && now == 0 && is_crossed(fences, fence)) {
        respect(fences, fence, r);
        return;
    }
    if (r == -EINPROGRESS)
        return;
    if (fence_is_lost(r) && !fence->letter) {
        take_back(fences, fence, r);
        return;
    }
    if (fence->state == FENCE_RISING)
        settle_rising(fences, fence, r, now);
    else
        settle_falling(fences, fence, r, now);
    if ((fence->state == FENCE_RISING || fence->state == FENCE_FALLING) && !fence->letter &&
        time_now_usec() > fence->asked_usec + CHANGE_USEC)
        take_back(fences, fence, -ETIMEDOUT);
}

/* Whether the cgroup can be reached. If it was removed, the fence is down, even if another cgroup has its
 * name now: nothing there is ours. If it was renamed, it is restored where it is. */
static bool is_there(Fences *fences, Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name, fence->memory);
    int r = fence_look_again(fences, fence);

    if (r == -ENOENT)
        enter(fence, FENCE_DOWN);
    if (r != 0)
        rest(fence, FENCE_REST_USEC);
    if (r > 0 && read_now(fences, fence, fences->scratch) == 0) {
        if (entry && fence_is_ours(fences, entry, fences->scratch))
            (void)ask(fences, fence, fence_way_down(fences, fence->memory, fence->before), FENCE_FALLING);
        else
            yield(fences, fence, fences->scratch);
    }
    return r >= 0;
}

/* Whether the set lacks exactly the CPUs that were offline at the last look. */
static bool is_worn(const Fences *fences, const Fence *fence, hwloc_const_bitmap_t now)
{
    return !hwloc_bitmap_iszero(fence->away) &&
           hwloc_bitmap_andnot(fences->difference, fence->target, fence->away) == 0 &&
           hwloc_bitmap_isequal(fences->difference, now);
}

/* The kernel does not give a cpuset of version 1 the CPUs back that were offline, so the fence comes down then. */
static void settle_up(Fences *fences, Fence *fence)
{
    hwloc_const_bitmap_t now = fences->scratch;

    if (read_now(fences, fence, fences->scratch) < 0)
        return;
    if (alike(fences, fence, now, fence->target)) {
        (void)hwloc_bitmap_andnot(fence->away, fence->target, now);
    } else if (is_worn(fences, fence, now)) {
        rest(fence, FENCE_REST_USEC);
        (void)ask(fences, fence, fence_way_down(fences, fence->memory, fence->before), FENCE_FALLING);
    } else {
        yield(fences, fence, now);
    }
}

static void settle_state(Fences *fences, Fence *fence)
{
    if (fence->state == FENCE_RISING || fence->state == FENCE_FALLING)
        settle_change(fences, fence);
    else if (fence->state == FENCE_UP)
        settle_up(fences, fence);
}

static void settle(Fences *fences, Fence *fence)
{
    if (fence->state != FENCE_DOWN && is_there(fences, fence) && fence->state != FENCE_DOWN)
        settle_state(fences, fence);
    if (fence->state == FENCE_DOWN)
        forget(fences, fence);
}

int fence_read_before(Fences *fences, Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name, fence->memory);
    hwloc_const_bitmap_t possible = fences->possible[fence->memory];
    int r = read_now(fences, fence, fences->scratch);
    bool known = entry && !fence_is_another(fences->root_fd, entry) &&
                 (fence_is_ours(fences, entry, fences->scratch) ||
                  fence_is_back(fences, fence->memory, entry->before, fences->scratch));

    if (r < 0)
        return r;
    fence->inode = fence_inode(fences->root_fd, fence->kind, fence->path);
    /* Without an inode number it was renamed just now, and what was read may be ours under another name. */
    if ((fence->inode == 0 && fence->kind != ACT_FENCE_UNIT) || fence_is_renamed(fences, fence))
        return -EBUSY;
    /* A set of everything is no limit. The kernel does not take the last CPUs or nodes from a cgroup in which
     * something runs, so a unit reads like this when its own limit is gone. An explicit list of everything is
     * taken for no limit, too. */
    if (!known && fence->kind == ACT_FENCE_UNIT && !hwloc_bitmap_iszero(possible) &&
        hwloc_bitmap_isincluded(possible, fences->scratch))
        hwloc_bitmap_zero(fences->scratch);
    if (hwloc_bitmap_copy(fence->before, known ? entry->before : fences->scratch) < 0)
        return -ENOMEM;
    fence->dropin = known ? entry->dropin : has_dropin(fences, fence, false);
    return 0;
}

int fence_add(Fences *fences, ActFenceKind kind, const char *name, const char *path, bool memory, Fence **ret)
{
    CLEANUP(fence_free_p) Fence *fence = calloc(1, sizeof(*fence));
    int r;

    if (!fence)
        return -ENOMEM;
    fence->kind = kind;
    fence->memory = memory;
    fence->name = strdup(name);
    fence->path = strdup(path);
    fence->before = hwloc_bitmap_alloc();
    fence->outer = hwloc_bitmap_alloc();
    fence->target = hwloc_bitmap_alloc();
    fence->away = hwloc_bitmap_alloc();
    fence->nodes = hwloc_bitmap_alloc();
    if (!fence->name || !fence->path || !fence->before || !fence->outer || !fence->target || !fence->away ||
        !fence->nodes)
        return -ENOMEM;
    fence_read_online(fences);
    r = fence_read_before(fences, fence);
    if (r < 0)
        return r;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): elements are pointers */
    if (!GROW(fences->fences, fences->fences_capacity, fences->n_fences + 1))
        return -ENOMEM;
    *ret = fences->fences[fences->n_fences++] = TAKE_PTR(fence);
    return 0;
}

void fence_remove(Fences *fences, Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name, fence->memory);
    const FenceMeans *means = means_of(fences, fence);

    if (entry)
        fence_tidy(fences, entry);
    (void)journal_note_unfenced(fences->journal, fence->name, fence->memory);
    if (means->ops->forget)
        means->ops->forget(means->context, fence_name(fence));
    for (size_t i = 0; i < fences->n_fences; i++)
        if (fences->fences[i] == fence)
            fences->fences[i--] = fences->fences[--fences->n_fences];
    fence_free(fence);
}

/* Levels above may change, too. Not needed for memory. */
static void read_outer(Fences *fences, Fence *fence)
{
    int r = fence->memory
                ? -ENOENT
                : fence_read_above(fences->root_fd, fence->kind, fence_path(fence), fences->scratch);

    if (r == 0 && !hwloc_bitmap_iszero(fence->before))
        r = hwloc_bitmap_and(fences->scratch, fences->scratch, fence->before);
    if (r == 0)
        (void)hwloc_bitmap_copy(fence->outer, fences->scratch);
}

void fence_raise(Fences *fences, Fence *fence)
{
    int r = note(fences, fence);

    fence->noted = fence->kind != ACT_FENCE_UNIT;
    if (r == 0)
        r = journal_note_fenced(fences->journal, fence->name, fence->memory, fence->target);
    read_outer(fences, fence);
    if (r == 0)
        r = ask(fences, fence, fence->target, FENCE_RISING);
    if (r < 0)
        refuse(fence, r, FENCE_DOWN);
    else
        settle(fences, fence);
}

void fence_lower(Fences *fences, Fence *fence)
{
    rest(fence, FENCE_REST_USEC);
    if (fence_is_raised(fence) && is_there(fences, fence) && fence_is_raised(fence)) {
        int now = read_now(fences, fence, fences->scratch), r;
        /* Where nothing runs, the kernel allows the last step. */
        bool gone = now == -ENOENT;

        if (now == 0 && is_crossed(fences, fence)) {
            respect(fences, fence, result(fences, fence));
            return;
        }
        r = ask(fences, fence, gone ? fence->before : fence_way_down(fences, fence->memory, fence->before),
                FENCE_FALLING);
        fence->letter = gone;
        if (r == -ENOENT || r == -ENODEV)
            enter(fence, FENCE_DOWN); /* the cgroup and its set are gone */
    }
    settle(fences, fence);
}

void fences_sense(Fences *fences)
{
    if (fences && fences->n_fences > 0)
        fence_read_online(fences);
    for (size_t i = 0; fences && i < fences->n_fences; i++) {
        Fence *fence = fences->fences[i];

        settle(fences, fence);
        if (fence->state == FENCE_DOWN || fence->state == FENCE_UP)
            fence->stale = false;
        read_outer(fences, fence);
    }
}
