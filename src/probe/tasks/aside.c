/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "probe/tasks/aside.h"

#include "base/thread.h"
#include "base/time.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Shorter waits are not taken from the budget. So every read that does not hang is made, however many there are. */
#define SHORT_WAIT_USEC 1000U

/*          asked             read
 *     FREE -----> ASKED -------------> ANSWERED -- taken, or given away --> FREE
 *      ^            | given up: `hangs`
 *      |            `----- read -----> OVER
 *      `---- the thread is joined -------'
 */
typedef enum SlotState {
    SLOT_FREE,
    SLOT_ASKED,
    SLOT_ANSWERED,
    SLOT_OVER,
} SlotState;

/* One thread and its question. */
typedef struct Slot {
    Aside *aside;
    pthread_t thread;
    pthread_cond_t asked;
    SlotState state;
    AsideKey key;
    char file[16];
    int dir_fd;
    ssize_t n;
    char *text;
    uint64_t answered; /* counts up, to find the oldest answer */
    uint64_t asked_usec;
    bool started;
    bool hangs;    /* given up: nobody wants the answer any more */
    bool detached; /* the end did not wait for it: it holds a reference */
} Slot;

struct Aside {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    AsideOptions options;
    uint64_t budget_usec, n_answers;
    bool ending;
    unsigned n_ref; /* of the owner, and of threads that were left behind */
    Slot slots[ASIDE_THREADS];
};

/* The last reference frees it. */
static void unref(Aside *aside)
{
    bool last;

    (void)pthread_mutex_lock(&aside->lock);
    last = --aside->n_ref == 0;
    (void)pthread_mutex_unlock(&aside->lock);
    if (!last)
        return;
    for (size_t i = 0; i < ASIDE_THREADS; i++) {
        free(aside->slots[i].text);
        (void)pthread_cond_destroy(&aside->slots[i].asked);
    }
    (void)pthread_cond_destroy(&aside->answered);
    (void)pthread_mutex_destroy(&aside->lock);
    free(aside);
}

static void *run(void *userdata)
{
    Slot *slot = userdata;
    Aside *aside = slot->aside;
    bool detached;

    (void)pthread_mutex_lock(&aside->lock);
    for (;;) {
        ssize_t n;

        while (slot->state != SLOT_ASKED && !aside->ending)
            (void)pthread_cond_wait(&slot->asked, &aside->lock);
        if (slot->state != SLOT_ASKED)
            break;
        (void)pthread_mutex_unlock(&aside->lock);
        n = aside->options.read(slot->dir_fd, slot->file, slot->text, aside->options.size);
        (void)close(slot->dir_fd);
        (void)pthread_mutex_lock(&aside->lock);
        if (slot->hangs)
            break;
        slot->n = n;
        slot->answered = ++aside->n_answers;
        slot->state = SLOT_ANSWERED;
        (void)pthread_cond_signal(&aside->answered);
    }
    if (slot->hangs) {
        free(slot->text);
        slot->text = NULL;
        slot->state = SLOT_OVER;
    }
    detached = slot->detached;
    (void)pthread_mutex_unlock(&aside->lock);
    if (detached)
        unref(aside);
    return NULL;
}

/* Joins a thread that has come back or is about to, and frees its slot. */
static void join(Slot *slot)
{
    (void)pthread_join(slot->thread, NULL);
    free(slot->text);
    slot->text = NULL;
    slot->state = SLOT_FREE;
    slot->started = slot->hangs = false;
}

int aside_new(const AsideOptions *options, Aside **ret)
{
    Aside *aside = calloc(1, sizeof(*aside));

    if (!aside)
        return -ENOMEM;
    aside->options = *options;
    aside->budget_usec = options->budget_usec;
    aside->n_ref = 1;
    (void)pthread_mutex_init(&aside->lock, NULL);
    thread_cond_init(&aside->answered);
    for (size_t i = 0; i < ASIDE_THREADS; i++) {
        aside->slots[i].aside = aside;
        (void)pthread_cond_init(&aside->slots[i].asked, NULL);
    }
    *ret = aside;
    return 0;
}

/* Lets threads end, and leaves behind those with a read under way. */
static void end_threads(Aside *aside)
{
    (void)pthread_mutex_lock(&aside->lock);
    aside->ending = true;
    for (size_t i = 0; i < ASIDE_THREADS; i++) {
        Slot *slot = &aside->slots[i];

        if (!slot->started)
            continue;
        if (slot->state == SLOT_ASKED) {
            (void)pthread_detach(slot->thread);
            slot->detached = true;
            aside->n_ref++;
            continue;
        }
        (void)pthread_cond_signal(&slot->asked);
        (void)pthread_mutex_unlock(&aside->lock);
        join(slot);
        (void)pthread_mutex_lock(&aside->lock);
    }
    (void)pthread_mutex_unlock(&aside->lock);
}

Aside *aside_free(Aside *aside)
{
    if (aside) {
        end_threads(aside);
        unref(aside);
    }
    return NULL;
}

static int start(Slot *slot)
{
    int r;

    if (slot->started)
        return 0;
    slot->text = malloc(slot->aside->options.size);
    if (!slot->text)
        return -ENOMEM;
    r = thread_start(&slot->thread, run, slot);
    if (r < 0) {
        free(slot->text);
        slot->text = NULL;
        return r;
    }
    slot->started = true;
    return 0;
}

static bool same_key(const Slot *slot, const AsideKey *key)
{
    return (slot->state == SLOT_ASKED || slot->state == SLOT_ANSWERED) && slot->key.pid == key->pid &&
           slot->key.start_ticks == key->start_ticks && slot->key.identity == key->identity &&
           strcmp(slot->file, key->file) == 0;
}

static Slot *find(Aside *aside, const AsideKey *key)
{
    for (size_t i = 0; i < ASIDE_THREADS; i++)
        if (same_key(&aside->slots[i], key))
            return &aside->slots[i];
    return NULL;
}

/* Whether the read has been given up; gives it up when it is time. */
static bool is_given_up(Aside *aside, Slot *slot)
{
    if (slot->state == SLOT_ASKED && time_now_usec() >= slot->asked_usec + aside->options.give_up_usec)
        slot->hangs = true;
    return slot->hangs;
}

/* Counts the unanswered questions of one user; of root, those of one control group, or (`all`) of all groups.
 * *ret_hanging: how many of them are given up. */
static size_t count_asked(Aside *aside, const AsideKey *key, bool all, size_t *ret_hanging)
{
    size_t n = 0;

    *ret_hanging = 0;
    for (size_t i = 0; i < ASIDE_THREADS; i++) {
        Slot *slot = &aside->slots[i];

        if (slot->state != SLOT_ASKED || slot->key.uid != key->uid ||
            (key->uid == 0 && !all && slot->key.group != key->group))
            continue;
        n++;
        *ret_hanging += is_given_up(aside, slot);
    }
    return n;
}

/* Whether one more question of this user may be asked: 0; -EAGAIN: not now; -EDQUOT: not as long as its reads hang. */
static int admit(Aside *aside, const AsideKey *key)
{
    size_t n_hanging, n = count_asked(aside, key, false, &n_hanging);

    if (n >= (key->uid == 0 ? ASIDE_GROUP_MAX : ASIDE_USER_MAX))
        return n_hanging == n ? -EDQUOT : -EAGAIN;
    if (key->uid != 0)
        return 0;
    n = count_asked(aside, key, true, &n_hanging);
    return n < ASIDE_ROOT_MAX ? 0 : n_hanging == n ? -EDQUOT : -EAGAIN;
}

/* A free slot, or else the one with the oldest answer, which nobody came back for. NULL: all are asked or hang. */
static Slot *find_room(Aside *aside, uid_t uid)
{
    size_t n = uid == 0 ? ASIDE_THREADS : ASIDE_THREADS - ASIDE_ROOT_THREADS;
    Slot *best = NULL;

    for (size_t i = 0; i < n; i++) {
        Slot *slot = &aside->slots[i];

        if (slot->state == SLOT_OVER)
            join(slot);
        if (slot->state == SLOT_FREE)
            return slot;
        if (slot->state == SLOT_ANSWERED && (!best || slot->answered < best->answered))
            best = slot;
    }
    return best;
}

/* What to return when there is no slot. */
static int all_hang(Aside *aside, uid_t uid)
{
    size_t n = uid == 0 ? ASIDE_THREADS : ASIDE_THREADS - ASIDE_ROOT_THREADS;

    for (size_t i = 0; i < n; i++)
        if (!is_given_up(aside, &aside->slots[i]))
            return -EAGAIN;
    return -EDQUOT;
}

static int put_question(Slot *slot, int dir_fd, const AsideKey *key)
{
    int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), r;

    if (fd < 0)
        return -errno;
    r = start(slot);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    slot->dir_fd = fd;
    slot->key = *key;
    slot->asked_usec = time_now_usec();
    (void)snprintf(slot->file, sizeof(slot->file), "%s", key->file);
    slot->state = SLOT_ASKED;
    (void)pthread_cond_signal(&slot->asked);
    return 0;
}

static void await(Aside *aside, const Slot *slot)
{
    uint64_t begin = time_now_usec(), end = begin + MIN(aside->options.wait_usec, aside->budget_usec), waited;
    int r = 0;

    while (slot->state == SLOT_ASKED && r == 0)
        r = thread_cond_wait_until(&aside->answered, &aside->lock, end);
    waited = time_now_usec() - begin;
    if (waited > SHORT_WAIT_USEC)
        aside->budget_usec -= MIN(waited, aside->budget_usec);
}

static ssize_t read_locked(Aside *aside, int dir_fd, const AsideKey *key, char *buf)
{
    Slot *slot = find(aside, key);

    if (!slot) {
        int r = admit(aside, key);

        if (r < 0)
            return r;
        slot = find_room(aside, key->uid);
        if (!slot)
            return all_hang(aside, key->uid);
        r = put_question(slot, dir_fd, key);
        if (r < 0)
            return r;
        await(aside, slot);
    }
    if (slot->state == SLOT_ASKED)
        return is_given_up(aside, slot) ? -ETIMEDOUT : -EAGAIN;
    slot->state = SLOT_FREE;
    if (slot->n > 0 || slot->n == -EFBIG)
        (void)memcpy(buf, slot->text, slot->n > 0 ? (size_t)slot->n + 1 : aside->options.size);
    return slot->n;
}

ssize_t aside_read(Aside *aside, int dir_fd, const AsideKey *key, char *buf)
{
    ssize_t n;

    (void)pthread_mutex_lock(&aside->lock);
    n = read_locked(aside, dir_fd, key, buf);
    (void)pthread_mutex_unlock(&aside->lock);
    return n;
}

void aside_refill(Aside *aside)
{
    aside->budget_usec = aside->options.budget_usec;
}

size_t aside_n_hanging(Aside *aside)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&aside->lock);
    for (size_t i = 0; i < ASIDE_THREADS; i++)
        n += aside->slots[i].state == SLOT_ASKED;
    (void)pthread_mutex_unlock(&aside->lock);
    return n;
}
