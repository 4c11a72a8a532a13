/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a cpuset is now is always read from the cgroup, never from an answer: a service manager says yes before it has
 * written, and somebody else may have written since. What is found there and is neither what it was nor what we made of it is
 * somebody else's decision: it is what is put back from then on, and the fence stays down for a while. */

#include "act/fence.h"

#include "act/fence-internal.h"
#include "act/fence-unit.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"

#include <string.h>
#include <time.h>

/* A change that is not seen after this is taken back. A manager in a daemon-reload can take seconds. */
#define CHANGE_USEC (5U * USEC_PER_SEC)

/* After a change was refused: the next try. */
#define REFUSED_USEC (60U * USEC_PER_SEC)

/* When everything is put back: for the answers, and for the files after them. */
#define RESTORE_USEC (3U * USEC_PER_SEC)
#define MOMENT_USEC  5000U

/* The kernel refuses to take all CPUs of its own from a cgroup in which something runs (ENOSPC). So on the way down one that
 * had none gets all there are, which is the same in effect, and then none: that succeeds where nothing else needs
 * the controller, and where it does not, no harm is done. */

static const FenceOps ops_v1 = {.set = fence_write_v1};
static const FenceOps ops_v2 = {.set = fence_write_v2};

static Fence *fence_free(Fence *fence)
{
    if (!fence)
        return NULL;
    free(fence->name);
    free(fence->path);
    free(fence->members);
    hwloc_bitmap_free(fence->before);
    hwloc_bitmap_free(fence->outer);
    hwloc_bitmap_free(fence->target);
    free(fence);
    return NULL;
}

DEFINE_CLEANUP(Fence *, fence_free)

/* What cannot be read stays as it was. */
static void read_cpus(const Fences *fences, const char *path, hwloc_bitmap_t ret)
{
    char text[4096];

    if (root_read(fences->root_fd, path, text, sizeof(text)) > 0)
        (void)parse_list(text, PARSE_CPU_MAX, ret);
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
    fences->possible = hwloc_bitmap_alloc();
    fences->online = hwloc_bitmap_alloc_full();
    fences->units = fence_units_new(NULL);
    if (!fences->scratch || !fences->difference || !fences->possible || !fences->online || !fences->units)
        return NULL;
    read_cpus(fences, "sys/devices/system/cpu/possible", fences->possible);
    fence_host_read(root_fd, &fences->host);
    fences_set_ops(fences, ACT_FENCE_UNIT, &fence_ops_unit, fences->units);
    fences_set_ops(fences, ACT_FENCE_CGROUP2, &ops_v2, &fences->root_fd);
    fences_set_ops(fences, ACT_FENCE_CGROUP1, &ops_v1, &fences->root_fd);
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
    fence_units_free(fences->units);
    hwloc_bitmap_free(fences->scratch);
    hwloc_bitmap_free(fences->difference);
    hwloc_bitmap_free(fences->possible);
    hwloc_bitmap_free(fences->online);
    free(fences);
    return NULL;
}

void fences_set_ops(Fences *fences, ActFenceKind kind, const FenceOps *ops, void *context)
{
    fences->means[kind] = (FenceMeans){.ops = ops, .context = context};
}

bool fence_alike(const Fences *fences, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    if (hwloc_bitmap_iszero(a) != hwloc_bitmap_iszero(b))
        return false;
    return hwloc_bitmap_isequal(a, b) || (hwloc_bitmap_xor(fences->difference, a, b) == 0 &&
                                          !hwloc_bitmap_intersects(fences->difference, fences->online));
}

Fence *fence_find(const Fences *fences, const char *name)
{
    for (size_t i = 0; i < fences->n_fences; i++)
        if (strcmp(fences->fences[i]->name, name) == 0)
            return fences->fences[i];
    return NULL;
}

/* Changing */

static int read_now(const Fences *fences, const Fence *fence, hwloc_bitmap_t ret)
{
    return fence_read(fences->root_fd, fence->kind, fence->path, "cpuset.cpus", ret);
}

static int result(const Fences *fences, const Fence *fence)
{
    const FenceMeans *means = &fences->means[fence->kind];

    return means->ops->result ? means->ops->result(means->context, fence->name) : 0;
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

/* Asks for `cpus`. Returns 0, or -errno when it was refused at once. */
static int ask(Fences *fences, Fence *fence, hwloc_const_bitmap_t cpus, FenceState state)
{
    const FenceMeans *means = &fences->means[fence->kind];
    int r = means->ops->set(means->context, fence->name, cpus);

    if (r < 0) {
        fence->error = r;
        return r;
    }
    fence->asked_usec = time_now_usec();
    fence->letter = false;
    enter(fence, state);
    return 0;
}

/* The cgroup has what somebody else gave it. */
static void yield(Fences *fences, Fence *fence, hwloc_const_bitmap_t now)
{
    bool known = fence_alike(fences, now, fence->before);

    enter(fence, FENCE_DOWN);
    fence->n_foreign++;
    rest(fence, FENCE_REST_USEC);
    if (known || hwloc_bitmap_copy(fence->before, now) < 0)
        return;
    /* Should that not be written, the old value is put back one day, and only if the cgroup has one of ours then. */
    (void)journal_note_fence(fences->journal, fence->kind, fence->name, fence->path, fence->before);
}

static void refuse(Fence *fence, int error, FenceState state)
{
    fence->error = error;
    enter(fence, state);
    rest(fence, REFUSED_USEC);
}

/* What is asked for first on the way down. */
static hwloc_const_bitmap_t way_down(const Fences *fences, hwloc_const_bitmap_t before)
{
    return hwloc_bitmap_iszero(before) ? fences->possible : before;
}

/* Whether the cgroup is what it was before us, at least in effect. */
static bool is_back(const Fences *fences, hwloc_const_bitmap_t before, hwloc_const_bitmap_t now)
{
    if (!hwloc_bitmap_iszero(before))
        return fence_alike(fences, before, now);
    return hwloc_bitmap_iszero(now) ||
           (!hwloc_bitmap_iszero(fences->possible) && hwloc_bitmap_isincluded(fences->possible, now));
}

/* It is back in effect; whether nothing more is to be waited for. */
static bool is_back_to_the_letter(const Fences *fences, Fence *fence, bool empty)
{
    const FenceMeans *means = &fences->means[fence->kind];

    if (empty || !hwloc_bitmap_iszero(fence->before))
        return true;
    fence->letter = true;
    return means->ops->set(means->context, fence->name, fence->before) < 0 ||
           result(fences, fence) != -EINPROGRESS;
}

static void settle_rising(Fences *fences, Fence *fence, int r, int now)
{
    if (r < 0)
        refuse(fence, r, FENCE_DOWN);
    else if (now == 0 && fence_alike(fences, fences->scratch, fence->target))
        enter(fence, FENCE_UP);
}

static void settle_falling(Fences *fences, Fence *fence, int r, int now)
{
    bool gone = now == -ENOENT; /* a unit that does not run has its property all the same */
    bool done = fence->letter || r == -ENOENT;

    if (!done && r < 0) {
        refuse(fence, r, FENCE_UP);
        return;
    }
    if (done || ((gone || (now == 0 && is_back(fences, fence->before, fences->scratch))) &&
                 is_back_to_the_letter(fences, fence, now == 0 && hwloc_bitmap_iszero(fences->scratch))))
        enter(fence, FENCE_DOWN);
}

/* What became of a change that is under way. */
static void settle_change(Fences *fences, Fence *fence)
{
    int r = result(fences, fence), now = read_now(fences, fence, fences->scratch);

    if (r == -EINPROGRESS)
        return;
    if (fence->state == FENCE_RISING)
        settle_rising(fences, fence, r, now);
    else
        settle_falling(fences, fence, r, now);
    if ((fence->state == FENCE_RISING || fence->state == FENCE_FALLING) && !fence->letter &&
        time_now_usec() > fence->asked_usec + CHANGE_USEC) {
        (void)ask(fences, fence, way_down(fences, fence->before), FENCE_FALLING);
        fence->error = -ETIMEDOUT;
        rest(fence, REFUSED_USEC);
    }
}

static void settle(Fences *fences, Fence *fence)
{
    if (fence->state == FENCE_RISING || fence->state == FENCE_FALLING)
        settle_change(fences, fence);
    else if (fence->state == FENCE_UP && read_now(fences, fence, fences->scratch) == 0 &&
             !fence_alike(fences, fences->scratch, fence->target))
        yield(fences, fence, fences->scratch);
}

/* Whether these are CPUs that the cgroup has from us. */
static bool is_ours(const Fences *fences, const JournalFence *entry, hwloc_const_bitmap_t cpus)
{
    for (uint32_t i = 0; entry && i < entry->n_given; i++)
        if (fence_alike(fences, cpus, entry->given[i]))
            return true;
    return false;
}

int fence_read_before(Fences *fences, Fence *fence)
{
    const JournalFence *entry = journal_fence(fences->journal, fence->name);
    int r = read_now(fences, fence, fences->scratch);
    bool known =
        entry && (is_ours(fences, entry, fences->scratch) || is_back(fences, entry->before, fences->scratch));

    if (r == 0 && hwloc_bitmap_copy(fence->before, known ? entry->before : fences->scratch) < 0)
        r = -ENOMEM;
    return r;
}

int fence_add(Fences *fences, const FencePlace *place, Fence **ret)
{
    CLEANUP(fence_free_p) Fence *fence = calloc(1, sizeof(*fence));
    int r;

    if (!fence)
        return -ENOMEM;
    fence->kind = place->kind;
    fence->name = strdup(place->name);
    fence->path = strdup(place->path);
    fence->before = hwloc_bitmap_alloc();
    fence->outer = hwloc_bitmap_alloc();
    fence->target = hwloc_bitmap_alloc();
    if (!fence->name || !fence->path || !fence->before || !fence->outer || !fence->target)
        return -ENOMEM;
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
    const FenceMeans *means = &fences->means[fence->kind];

    (void)journal_note_unfenced(fences->journal, fence->name);
    if (means->ops->forget)
        means->ops->forget(means->context, fence->name);
    for (size_t i = 0; i < fences->n_fences; i++)
        if (fences->fences[i] == fence)
            fences->fences[i--] = fences->fences[--fences->n_fences];
    fence_free(fence);
}

/* What is above may change, too. */
static void read_outer(Fences *fences, Fence *fence)
{
    int r = fence_read_above(fences->root_fd, fence->kind, fence->path, fences->scratch);

    if (r == 0 && !hwloc_bitmap_iszero(fence->before))
        r = hwloc_bitmap_and(fences->scratch, fences->scratch, fence->before);
    if (r == 0)
        (void)hwloc_bitmap_copy(fence->outer, fences->scratch);
}

void fence_raise(Fences *fences, Fence *fence)
{
    int r = journal_note_fence(fences->journal, fence->kind, fence->name, fence->path, fence->before);

    if (r == 0)
        r = journal_note_fenced(fences->journal, fence->name, fence->target);
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
    if (fence->state == FENCE_UP || fence->state == FENCE_RISING) {
        /* Where nothing runs, nothing forbids the last step. */
        bool gone = read_now(fences, fence, fences->scratch) == -ENOENT;
        int r = ask(fences, fence, gone ? fence->before : way_down(fences, fence->before), FENCE_FALLING);

        fence->letter = gone;
        if (r == -ENOENT || r == -ENODEV)
            enter(fence, FENCE_DOWN); /* the cgroup is gone, and with it what it had */
    }
    settle(fences, fence);
}

/* Asking */

void fences_sense(Fences *fences)
{
    read_cpus(fences, "sys/devices/system/cpu/online", fences->online);
    for (size_t i = 0; i < fences->n_fences; i++) {
        Fence *fence = fences->fences[i];

        settle(fences, fence);
        if (fence->state == FENCE_DOWN || fence->state == FENCE_UP)
            fence->stale = false;
        read_outer(fences, fence);
    }
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static Fence *fence_of(const Fences *fences, pid_t pid)
{
    for (size_t i = 0; i < fences->n_fences; i++) {
        Fence *fence = fences->fences[i];

        if (fence->n_members > 0 &&
            bsearch(&pid, fence->members, fence->n_members, sizeof(pid), compare_pids))
            return fence;
    }
    return NULL;
}

bool fences_admit(Fences *fences, pid_t pid, hwloc_const_bitmap_t mask)
{
    Fence *fence = fence_of(fences, pid);
    bool inside;

    if (!fence)
        return true;
    inside = mask && hwloc_bitmap_isincluded(mask, fence->target);
    if (!inside)
        fence_lower(fences, fence);
    if (fences->host.forgets && fence->stale)
        return false;
    return inside || fence->state == FENCE_DOWN;
}

bool fences_hold(const Fences *fences, pid_t pid)
{
    const Fence *fence = fence_of(fences, pid);

    return fence && fence->state != FENCE_DOWN;
}

bool fences_bound(const Fences *fences, const char *path, hwloc_bitmap_t ret)
{
    for (size_t i = 0; i < fences->n_fences; i++) {
        const Fence *fence = fences->fences[i];
        size_t len = strlen(fence->path);

        if (fence->state != FENCE_DOWN && strncmp(path, fence->path, len) == 0 &&
            (path[len] == '\0' || path[len] == '/') && !hwloc_bitmap_iszero(fence->outer))
            return hwloc_bitmap_copy(ret, fence->outer) == 0;
    }
    return false;
}

void fences_host(const Fences *fences, ActHost *ret)
{
    *ret = fences->host;
    ret->n_known = (uint32_t)fences->n_fences;
    for (size_t i = 0; i < fences->n_fences; i++)
        ret->n_up += fences->fences[i]->state == FENCE_UP;
}

/* Putting back: the journal alone says what there is, since this may be the program that comes after a crash. */

typedef enum Progress {
    PROGRESS_TO_DO,
    PROGRESS_ASKED,
    PROGRESS_LETTER, /* it is back in effect, and asked to be so to the letter */
    PROGRESS_DONE,
    PROGRESS_FAILED,
} Progress;

static Progress restore_ask(const Fences *fences, const JournalFence *entry)
{
    const FenceMeans *means = &fences->means[entry->kind];
    int now = fence_read(fences->root_fd, entry->kind, entry->path, "cpuset.cpus", fences->scratch), r;

    /* Somebody else's. What does not run cannot be asked; but a unit still has its property then. */
    if (now == 0 && !is_ours(fences, entry, fences->scratch))
        return PROGRESS_DONE;
    r = means->ops->set(means->context, entry->name,
                        now == -ENOENT ? entry->before : way_down(fences, entry->before));
    if (r < 0)
        return r == -ENOENT || r == -ENODEV ? PROGRESS_DONE : PROGRESS_FAILED;
    return now == -ENOENT ? PROGRESS_LETTER : PROGRESS_ASKED;
}

static Progress restore_check(const Fences *fences, const JournalFence *entry, Progress now)
{
    const FenceMeans *means = &fences->means[entry->kind];
    int r = means->ops->result ? means->ops->result(means->context, entry->name) : 0;

    if (r == -EINPROGRESS)
        return now;
    if (r < 0)
        return r == -ENOENT ? PROGRESS_DONE : PROGRESS_FAILED;
    if (now == PROGRESS_LETTER)
        return PROGRESS_DONE;
    r = fence_read(fences->root_fd, entry->kind, entry->path, "cpuset.cpus", fences->scratch);
    if (r == 0 && !is_back(fences, entry->before, fences->scratch))
        return PROGRESS_ASKED;
    if (!hwloc_bitmap_iszero(entry->before) || (r == 0 && hwloc_bitmap_iszero(fences->scratch)))
        return PROGRESS_DONE;
    return means->ops->set(means->context, entry->name, entry->before) == 0 ? PROGRESS_LETTER : PROGRESS_DONE;
}

static bool is_open(Progress progress)
{
    return progress == PROGRESS_ASKED || progress == PROGRESS_LETTER;
}

/* Asks for everything, then waits for all of it. Returns how many are not known to be back. */
static size_t restore_all(Fences *fences, Progress *progress)
{
    const Journal *journal = fences->journal;
    const FenceMeans *units = &fences->means[ACT_FENCE_UNIT];
    uint64_t end = time_now_usec() + RESTORE_USEC;
    const struct timespec moment = {.tv_nsec = MOMENT_USEC * NSEC_PER_USEC};
    size_t n_open;

    for (size_t i = 0; i < journal->n_fences; i++)
        progress[i] = restore_ask(fences, &journal->fences[i]);
    if (units->ops->wait)
        units->ops->wait(units->context, RESTORE_USEC);
    do {
        n_open = 0;
        for (size_t i = 0; i < journal->n_fences; i++) {
            if (is_open(progress[i]))
                progress[i] = restore_check(fences, &journal->fences[i], progress[i]);
            n_open += is_open(progress[i]);
        }
        if (n_open > 0)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    } while (n_open > 0 && time_now_usec() < end);

    for (size_t i = 0; i < journal->n_fences; i++)
        n_open += progress[i] == PROGRESS_FAILED;
    return n_open;
}

int fences_restore(Fences *fences)
{
    Journal *journal = fences->journal;
    CLEANUP_FREE Progress *progress = calloc(journal->n_fences + 1, sizeof(*progress));
    size_t n_left;

    if (!progress)
        return -ENOMEM;
    read_cpus(fences, "sys/devices/system/cpu/online", fences->online);
    n_left = restore_all(fences, progress);
    for (size_t i = fences->n_fences; i-- > 0;) {
        Fence *fence = fences->fences[i];

        enter(fence, FENCE_DOWN);
        fence->n_members = 0;
    }
    /* From the end, since one that is noted is replaced by the last. */
    for (size_t i = journal->n_fences; i-- > 0;)
        if (progress[i] == PROGRESS_DONE)
            (void)journal_note_unfenced(journal, journal->fences[i].name);
    return n_left > 0 ? -EAGAIN : 0;
}
