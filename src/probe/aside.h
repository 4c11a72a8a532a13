/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads that may hang.
 *
 * What /proc shows of the memory of a process (cmdline, environ) is read under a lock which that process holds itself while
 * it forks, maps or faults: for seconds when hundreds fork at once and queue for a lock of their ancestor, for ever when
 * somebody wants it so (a page of its arguments behind userfaultfd(2) or on a dead network disk). Nothing tells beforehand.
 * Some (numa_maps) takes long because there is much of it. So such a file is read by a thread set aside for it. The
 * caller waits for a moment, and asks again later for what has not come by then; other processes go on meanwhile. */

#include "base/util.h"

#include <stdint.h>
#include <sys/types.h>

/* So many reads may hang at a time; further ones are put off. */
#define ASIDE_THREADS 4U

typedef struct Aside Aside;

/* Reads `file` below `dir_fd` into `buf` of `size` bytes, of which it uses one less and terminates them. Returns their
 * number; -EFBIG when the file did not fit and `buf` is full; or -errno. root_read() is one. Called in a thread of its
 * own, so it may only use what it is given. */
typedef ssize_t (*AsideReader)(int dir_fd, const char *file, char *buf, size_t size);

typedef struct AsideOptions {
    AsideReader read;
    size_t size;          /* of what it may leave */
    uint32_t wait_usec;   /* how long one read is waited for */
    uint32_t budget_usec; /* how long all reads together are until aside_refill() */
} AsideOptions;

/* Who reads what: an answer that came late is given only to the same question. */
typedef struct AsideKey {
    const char *file; /* name below the directory; at most 15 bytes */
    uint64_t identity, start_ticks;
    pid_t pid;
} AsideKey;

/* Threads begin with the first reads. 0 or -errno. */
int aside_new(const AsideOptions *options, Aside **ret);

/* A thread whose read hangs cannot be ended but by the end of the process: what it uses is left to it. Returns NULL. */
Aside *aside_free(Aside *aside);
DEFINE_CLEANUP(Aside *, aside_free)

/* What the reader says of `key->file` below `dir_fd`; `buf` has the size given to aside_new(). -EAGAIN: there is no answer
 * yet; ask again. */
ssize_t aside_read(Aside *aside, int dir_fd, const AsideKey *key, char *buf);

/* Lets as long be waited again; called once per pass. */
void aside_refill(Aside *aside);

/* Reads under way, of which nobody waits for the answer now. */
size_t aside_n_hanging(Aside *aside);
