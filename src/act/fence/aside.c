/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*     set() --> WAITING --> WRITING --> DONE --> result()
 *                  ^            |
 *                  '-- again <--'   another list came meanwhile
 *
 * One thread is enough: a memory fence goes up only when all memory is gathered already, so a write rarely
 * takes long. */

#include "act/fence/aside.h"

#include "base/thread.h"
#include "base/time.h"

#include <string.h>

typedef enum WriteState {
    WRITE_DONE,
    WRITE_WAITING,
    WRITE_WRITING,
    WRITE_AGAIN, /* being written, and to be written again */
} WriteState;

typedef struct Write {
    struct Write *next;
    char *name;
    hwloc_bitmap_t set; /* to be written next */
    WriteState state;
    bool forgotten; /* nobody will ask for the result */
    int result;
} Write;

struct FenceAside {
    int (*write)(void *context, const char *name, hwloc_const_bitmap_t set);
    void *context;
    pthread_t thread;
    bool started, ending;
    pthread_mutex_t lock; /* guards `ending` and what follows */
    pthread_cond_t asked, idle;
    Write *writes; /* in the order first asked for */
};

static Write *write_free(Write *write)
{
    free(write->name);
    hwloc_bitmap_free(write->set);
    free(write);
    return NULL;
}

static Write **find(FenceAside *aside, const char *name)
{
    Write **at = &aside->writes;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static Write *next_waiting(const FenceAside *aside)
{
    Write *write = aside->writes;

    while (write && write->state != WRITE_WAITING)
        write = write->next;
    return write;
}

static bool is_idle(const FenceAside *aside)
{
    for (const Write *write = aside->writes; write; write = write->next)
        if (write->state != WRITE_DONE)
            return false;
    return true;
}

static void drop(FenceAside *aside, const char *name)
{
    Write **at = find(aside, name), *write = *at;

    *at = write->next;
    (void)write_free(write);
}

/* The lock is held, except during the write, when the entry stays where it is. */
static void do_write(FenceAside *aside, Write *write)
{
    hwloc_bitmap_t set = hwloc_bitmap_dup(write->set);
    int r = -ENOMEM;

    write->state = WRITE_WRITING;
    if (set) {
        (void)pthread_mutex_unlock(&aside->lock);
        r = aside->write(aside->context, write->name, set);
        (void)pthread_mutex_lock(&aside->lock);
        hwloc_bitmap_free(set);
    }
    write->result = r;
    write->state = write->state == WRITE_AGAIN ? WRITE_WAITING : WRITE_DONE;
    if (write->state == WRITE_DONE && write->forgotten)
        drop(aside, write->name);
    if (is_idle(aside))
        (void)pthread_cond_broadcast(&aside->idle);
}

static void *run(void *userdata)
{
    FenceAside *aside = userdata;

    (void)pthread_mutex_lock(&aside->lock);
    while (!aside->ending) {
        Write *write = next_waiting(aside);

        if (write)
            do_write(aside, write);
        else
            (void)pthread_cond_wait(&aside->asked, &aside->lock);
    }
    (void)pthread_mutex_unlock(&aside->lock);
    return NULL;
}

FenceAside *fence_aside_new(int (*write)(void *context, const char *name, hwloc_const_bitmap_t set),
                            void *context)
{
    FenceAside *aside = calloc(1, sizeof(*aside));

    if (!aside)
        return NULL;
    aside->write = write;
    aside->context = context;
    (void)pthread_mutex_init(&aside->lock, NULL);
    (void)pthread_cond_init(&aside->asked, NULL);
    thread_cond_init(&aside->idle);
    return aside;
}

FenceAside *fence_aside_free(FenceAside *aside)
{
    if (!aside)
        return NULL;
    (void)pthread_mutex_lock(&aside->lock);
    aside->ending = true;
    (void)pthread_cond_signal(&aside->asked);
    (void)pthread_mutex_unlock(&aside->lock);
    if (aside->started)
        (void)pthread_join(aside->thread, NULL);
    while (aside->writes)
        drop(aside, aside->writes->name);
    (void)pthread_cond_destroy(&aside->idle);
    (void)pthread_cond_destroy(&aside->asked);
    (void)pthread_mutex_destroy(&aside->lock);
    free(aside);
    return NULL;
}

static bool start(FenceAside *aside)
{
    if (!aside->started)
        aside->started = thread_start(&aside->thread, run, aside) == 0;
    return aside->started;
}

/* The entry of a name, a new one if there is none; NULL: out of memory. */
static Write *enter(FenceAside *aside, const char *name)
{
    Write **at = find(aside, name), *write = *at;

    if (write)
        return write;
    write = calloc(1, sizeof(*write));
    if (!write)
        return NULL;
    write->name = strdup(name);
    write->set = hwloc_bitmap_alloc();
    if (!write->name || !write->set)
        return write_free(write);
    *at = write;
    return write;
}

static int ask_locked(FenceAside *aside, const char *name, hwloc_const_bitmap_t set)
{
    Write *write = enter(aside, name);

    if (!write || hwloc_bitmap_copy(write->set, set) < 0)
        return -ENOMEM;
    write->forgotten = false;
    if (write->state == WRITE_DONE)
        write->state = WRITE_WAITING;
    else if (write->state == WRITE_WRITING)
        write->state = WRITE_AGAIN;
    (void)pthread_cond_signal(&aside->asked);
    return 0;
}

static int aside_set(void *context, const char *name, hwloc_const_bitmap_t set)
{
    FenceAside *aside = context;
    int r;

    if (!start(aside))
        return aside->write(aside->context, name, set);
    (void)pthread_mutex_lock(&aside->lock);
    r = ask_locked(aside, name, set);
    (void)pthread_mutex_unlock(&aside->lock);
    return r;
}

static int aside_result(void *context, const char *name)
{
    FenceAside *aside = context;
    const Write *write;
    int r;

    (void)pthread_mutex_lock(&aside->lock);
    write = *find(aside, name);
    r = !write ? 0 : write->state == WRITE_DONE ? write->result : -EINPROGRESS;
    (void)pthread_mutex_unlock(&aside->lock);
    return r;
}

static void aside_wait(void *context, uint64_t usec)
{
    FenceAside *aside = context;
    uint64_t end = time_now_usec() + usec;
    int r = 0;

    (void)pthread_mutex_lock(&aside->lock);
    while (!is_idle(aside) && r == 0)
        r = thread_cond_wait_until(&aside->idle, &aside->lock, end);
    (void)pthread_mutex_unlock(&aside->lock);
}

static void aside_forget(void *context, const char *name)
{
    FenceAside *aside = context;
    Write *write;

    (void)pthread_mutex_lock(&aside->lock);
    write = *find(aside, name);
    if (write && write->state == WRITE_DONE)
        drop(aside, name);
    else if (write)
        write->forgotten = true;
    (void)pthread_mutex_unlock(&aside->lock);
}

const FenceOps fence_ops_aside = {
    .set = aside_set,
    .result = aside_result,
    .wait = aside_wait,
    .forget = aside_forget,
};
