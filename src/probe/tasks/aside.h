/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads that may hang.
 *
 * What /proc shows of the memory of a process (cmdline, environ) is read under a lock which that process holds itself
 * while it forks, maps or faults: for seconds when hundreds fork at once and queue for a lock of their ancestor, for
 * ever when somebody wants it so (a page of its arguments behind userfaultfd(2) or on a dead network disk). Nothing
 * tells beforehand. Some (numa_maps) takes long because there is much of it. So such a file is read by a thread set
 * aside for it. The caller waits for a moment, and asks again later for what has not come by then; other processes go
 * on meanwhile.
 *
 * A thread that sleeps in the kernel like that cannot be ended. So there are only so many, and of one user only so
 * few that others are read whatever it does. What has not come for a while is given up: its thread is not used
 * again, and ends when it comes back. */

#include "base/util.h"

#include <stdint.h>
#include <sys/types.h>

/* So many reads may hang at a time; further ones are put off. That is room for seven users who let as many hang as
 * they can. The last ones are for root. */
#define ASIDE_THREADS      32U
#define ASIDE_ROOT_THREADS 4U

/* So many of one user. Of hundreds that fork at once one after the other comes out, so few are enough. Root is many:
 * services, and containers that have no user name space. So it has more, for each control group; and all of them
 * leave some for others. */
#define ASIDE_USER_MAX  4U
#define ASIDE_GROUP_MAX 8U
#define ASIDE_ROOT_MAX  24U

typedef struct Aside Aside;

/* Reads `file` below `dir_fd` into `buf` of `size` bytes, of which it uses one less and terminates them. Returns their
 * number; -EFBIG when the file did not fit and `buf` is full; or -errno. root_read() is one. Called in a thread of its
 * own, so it may only use what it is given. */
typedef ssize_t (*AsideReader)(int dir_fd, const char *file, char *buf, size_t size);

typedef struct AsideOptions {
    AsideReader read;
    size_t size;           /* of what it may leave */
    uint32_t wait_usec;    /* how long one read is waited for */
    uint32_t budget_usec;  /* how long all reads together are until aside_refill() */
    uint32_t give_up_usec; /* after which one is said to hang */
} AsideOptions;

/* Who reads what: an answer that came late is given only to the same question. */
typedef struct AsideKey {
    const char *file; /* name below the directory; at most 15 bytes */
    uint64_t identity, start_ticks;
    pid_t pid;
    uid_t uid;      /* whose process it is */
    uint64_t group; /* of root: the control group it is in, by any number that tells them apart */
} AsideKey;

/* Threads begin with the first reads. 0 or -errno. */
int aside_new(const AsideOptions *options, Aside **ret);

/* A thread whose read hangs cannot be ended but by the end of the process: what it uses is left to it, until it
 * comes back. Returns NULL. */
Aside *aside_free(Aside *aside);

/* What the reader says of `key->file` below `dir_fd`; `buf` has the size given to aside_new(). -EAGAIN: there is no
 * answer yet; ask again. -ETIMEDOUT: it hangs. -EDQUOT: as many of this user do as may, or of all users. */
ssize_t aside_read(Aside *aside, int dir_fd, const AsideKey *key, char *buf);

/* Lets as long be waited again; called once per pass. */
void aside_refill(Aside *aside);

/* Reads under way, of which nobody waits for the answer now, for however long. */
size_t aside_n_hanging(Aside *aside);
