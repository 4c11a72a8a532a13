/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads that may hang.
 *
 * /proc reads the memory of a process (cmdline, environ) under a lock that the process itself holds while it
 * forks, maps or faults: for seconds when hundreds fork at once and queue for a lock of their ancestor, for
 * ever when somebody wants it so (a page of its arguments behind userfaultfd(2) or on a dead network disk).
 * Nothing tells beforehand. Other files (numa_maps) take long because they are large. So a thread set aside
 * reads such a file. The caller waits for a moment, and asks again later if there is no answer by then; other
 * processes are handled meanwhile.
 *
 * A thread that sleeps in the kernel like that cannot be ended. So there are only so many, and each user gets
 * so few that others are served whatever it does. A read that takes too long is given up: its thread is not
 * used again, and ends when it comes back. */

#include "base/util.h"

#include <stdint.h>
#include <sys/types.h>

/* Most reads that may hang at a time; further ones are put off. That is room for seven users who let as many
 * hang as they can. The last ones are reserved for root. */
#define ASIDE_THREADS      32U
#define ASIDE_ROOT_THREADS 4U

/* Most reads of one user. Of hundreds of processes that fork at once one after the other is released, so few
 * are enough. Root stands for many: services, and containers without a user namespace. So it has more, for
 * each control group; all of these together leave some for others. */
#define ASIDE_USER_MAX  4U
#define ASIDE_GROUP_MAX 8U
#define ASIDE_ROOT_MAX  24U

typedef struct Aside Aside;

/* Reads `file` below `dir_fd` into `buf` of `size` bytes, one of them for the terminator. Returns the length;
 * -EFBIG when the file did not fit and `buf` is full; or -errno. root_read() is one. Runs in a thread of its
 * own, so it may use only what it is given. */
typedef ssize_t (*AsideReader)(int dir_fd, const char *file, char *buf, size_t size);

typedef struct AsideOptions {
    AsideReader read;
    size_t size;           /* of the reader's buffer */
    uint32_t wait_usec;    /* longest wait for one read */
    uint32_t budget_usec;  /* longest wait for all reads together until aside_refill() */
    uint32_t give_up_usec; /* a read that takes longer hangs */
} AsideOptions;

/* The question. A late answer is given only to the same question. */
typedef struct AsideKey {
    const char *file; /* name below the directory; at most 15 bytes */
    uint64_t identity, start_ticks;
    pid_t pid;
    uid_t uid;      /* owner of the process */
    uint64_t group; /* of root: its control group, as any number that tells groups apart */
} AsideKey;

/* Threads start with the first reads. 0 or -errno. */
int aside_new(const AsideOptions *options, Aside **ret);

/* A thread whose read hangs ends only with the whole process. What it uses is left to it until it comes back.
 * Returns NULL. */
Aside *aside_free(Aside *aside);

/* Returns what the reader does for `key->file` below `dir_fd`; `buf` has the size given to aside_new().
 * -EAGAIN: no answer yet; ask again. -ETIMEDOUT: the read hangs. -EDQUOT: the limit of reads that hang
 * is reached, for this user or for all. */
ssize_t aside_read(Aside *aside, int dir_fd, const AsideKey *key, char *buf);

/* Restores the budget for waiting; called once per pass. */
void aside_refill(Aside *aside);

/* Number of reads under way whose answer nobody waits for now, for however long. */
size_t aside_n_hanging(Aside *aside);
