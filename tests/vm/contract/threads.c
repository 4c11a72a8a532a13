/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "threads.h"

#include <pthread.h>
#include <unistd.h>

typedef struct Thread {
    void (*body)(void *userdata, unsigned index);
    void *userdata;
    unsigned index;
} Thread;

static void *thread_main(void *userdata)
{
    const Thread *thread = userdata;

    thread->body(thread->userdata, thread->index);
    return NULL;
}

void threads_run(unsigned n, void (*body)(void *userdata, unsigned index), void *userdata)
{
    static Thread threads[THREADS_MAX];
    pthread_t id;

    if (n > THREADS_MAX)
        _exit(1);
    for (unsigned i = 0; i < n; i++) {
        threads[i] = (Thread){body, userdata, i};
        if (pthread_create(&id, NULL, thread_main, &threads[i]) != 0)
            _exit(1);
    }
    for (;;)
        (void)pause();
}
