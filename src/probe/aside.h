/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads that may hang.
 *
 * What /proc shows of the memory of a process (cmdline, environ) is read under a lock which that process holds itself while
 * it forks, maps or faults: for seconds when hundreds fork at once and queue for a lock of their ancestor, for ever when
 * somebody wants it so (a page of its arguments behind userfaultfd(2) or on a dead network disk). Nothing tells beforehand.
 * So such a file is read by a thread set aside for it. The caller waits for a moment, and asks again later for what has
 * not come by then; other processes go on meanwhile. */

#include "base/util.h"

#include <stdint.h>
#include <sys/types.h>

/* So many reads may hang at a time; further ones are put off. */
#define ASIDE_THREADS 4U

/* How long one read is waited for. One that does not hang takes some 30 microseconds. */
#define ASIDE_WAIT_USEC 20000U

/* How long all reads together are waited for until aside_refill(). */
#define ASIDE_BUDGET_USEC 100000U

typedef struct Aside Aside;

/* Who reads what: an answer that came late is given only to the same question. */
typedef struct AsideKey {
    const char *file; /* name below the directory; at most 15 bytes */
    uint64_t identity, start_ticks;
    pid_t pid;
} AsideKey;

/* Texts have up to `size` bytes. Threads begin with the first reads. 0 or -errno. */
int aside_new(size_t size, Aside **ret);

/* A thread whose read hangs cannot be ended but by the end of the process: what it uses is left to it. Returns NULL. */
Aside *aside_free(Aside *aside);
DEFINE_CLEANUP(Aside *, aside_free)

/* As root_read() of `key->file` below `dir_fd` into `buf` of the size given to aside_new(), where -EFBIG has filled it.
 * -EAGAIN: there is no answer yet; ask again. */
ssize_t aside_read(Aside *aside, int dir_fd, const AsideKey *key, char *buf);

/* Lets as long be waited again; called once per pass. */
void aside_refill(Aside *aside);

/* Reads under way, of which nobody waits for the answer now. */
size_t aside_n_hanging(Aside *aside);
