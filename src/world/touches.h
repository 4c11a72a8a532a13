/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which thread of a process accesses which memory: samples, by block of 2 MB and by thread (P11, P13, P14, P18).
 *
 * Samples come in rounds. In a round each page gives at most one sample, so a huge page gives one, and a block of
 * small pages up to 512. To make them comparable, a block counts for TOUCHES_ROUND in each round in which it was
 * accessed, divided among its samples. Sensing fills it in, like the fault averages. */

#include "base/ids.h"
#include "world/buddy.h"
#include "world/faults.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TOUCHES_BLOCK_BYTES (2ULL << 20)
#define TOUCHES_ROUND       512U /* small pages in a block */

/* Limits of one table: blocks (128 GiB of accessed memory in 6 MiB), threads, and samples of a round. The
 * excess is counted and dropped. */
#define TOUCHES_BLOCKS_MAX  65536U
#define TOUCHES_THREADS_MAX 4096U
#define TOUCHES_SAMPLES_MAX 65536U

/* Owners remembered of a block; of others only the sum of weights is kept. A huge page has one sample in a
 * round, and weights halve, so not many more could be told apart. */
#define TOUCHES_OWNERS 8U

/* Other owners with at most one part in this many of the weights do not count: one round of another thread fades below
 * that after eight. Three rounds of one thread are not enough: of two sharers one has them every fourth time. */
#define TOUCHES_MAY_DIFFER 256U

/* A block that was not accessed in this many rounds is forgotten. */
#define TOUCHES_ROUNDS_KEPT 32U

/* Three rounds tell private from shared memory, and fewer samples of a thread say nothing: measured on
 * threads that share all, and on threads that share nothing. 85 % of the weights own a block. */
#define TOUCHES_ROUNDS_MIN     3U
#define TOUCHES_SAMPLES_MIN    6U
#define TOUCHES_OWNED_PERMILLE 850U

typedef struct TouchOwner {
    pid_t tid;       /* 0: none */
    uint32_t weight; /* sum over rounds that accessed the block, halved before each: < 2 x TOUCHES_ROUND */
} TouchOwner;

typedef struct TouchBlock {
    uint64_t address;    /* of the last access in it */
    NodeIx node;         /* where it lies; NODE_NONE: not known. Set by the code that asks the kernel */
    NodeIx last_node;    /* from where it was accessed last; NODE_NONE: not known */
    pid_t last_tid;      /* with most accesses in the last round; of several, the lowest. 0: forgotten */
    uint32_t n_rounds;   /* in which it was accessed */
    uint32_t last_round; /* the last of them, as Touches.n_rounds was */
    uint32_t others;     /* weights of users that are not among the owners */
    TouchOwner owners[TOUCHES_OWNERS]; /* by weight, then tid */
} TouchBlock;

/* Threads that a thread shares most with. Each round keeps 3/4 of their weights. */
#define TOUCHES_PARTNERS 16U

typedef struct TouchThread {
    TaskKey key;
    Faults faults; /* accesses in small pages, by where the memory lies */
    Buddy buddy;
    NodeIx preferred;   /* the kernel's choice, if its own faults are the evidence; NODE_NONE: none */
    uint64_t n_samples; /* since it was added or forgotten */
    uint64_t n_blocks;  /* sum over rounds of the blocks it accessed, likewise */
    /* `node`: where it ran in all samples of `node_rounds` rounds in a row that had any, from round
     * `node_since` on; NODE_NONE: several, or not known. `main_node`: the one node that may have more than
     * half of the samples of the last such round. */
    NodeIx node, main_node;
    uint32_t node_rounds, node_since;
    /* In this round: the candidate for `main_node` and its lead in samples; whether there are samples, and
     * from several nodes. */
    NodeIx round_node;
    uint32_t round_lead;
    bool seen, wanders;
    uint64_t now[FAULTS_KIND_MAX]; /* in the present round, of blocks whose last user is known */
    uint64_t own_now;              /* private ones among these, where no other user is remembered */
    uint64_t own_average;          /* of own_now, per round, as Buddy.private_average */
    /* Its set as of the last round, named by its first thread: the thread, its buddy or the earlier thread it
     * shares most with, that one's, and so on. Sharing within the set and beyond it: in this round, and on
     * average since the set last changed; each round keeps 3/4. */
    pid_t set;
    uint64_t within_now, beyond_now, within, beyond;
    TouchOwner partners[TOUCHES_PARTNERS]; /* in no order; tid 0: none */
    TaskKey tied;                          /* the thread that ties it to its set; tid 0: it is the first */
    bool closed;                           /* of a set's first thread: see TOUCH_SET_CLOSED */
    uint32_t n_now, set_size;              /* of a set's first thread: size now and as of the last round, */
    uint64_t set_within, set_beyond;       /* and sums over its threads */
} TouchThread;

/* One sample. */
typedef struct Touch {
    uint64_t address;
    pid_t tid;
    NodeIx cpu_node; /* where the thread ran; NODE_NONE: not known */
} Touch;

typedef struct Touches {
    TouchBlock *blocks; /* ascending address */
    size_t n_blocks, blocks_capacity;
    TouchThread *threads; /* ascending tid */
    size_t n_threads, threads_capacity;
    Touch *samples; /* of the present round, in any order; for touches*.c and plan/memory/blocks.c */
    size_t n_samples, samples_capacity;
    uint32_t n_nodes;
    uint32_t n_rounds;  /* with a sample in them */
    uint64_t n_taken;   /* samples, since the start */
    uint64_t n_foreign; /* of threads that are not in the table */
    uint64_t n_dropped; /* beyond a limit */
} Touches;

/* Makes an empty table for a machine with `n_nodes` nodes. Cannot fail. */
void touches_init(Touches *touches, uint32_t n_nodes);
void touches_done(Touches *touches);

/* Add a thread, and remove one with all that is known of it. 0; -EEXIST, -ENOENT; -ENOMEM; -E2BIG: too many. */
int touches_add_thread(Touches *touches, TaskKey key);
int touches_remove_thread(Touches *touches, pid_t tid);
TouchThread *touches_thread(Touches *touches, pid_t tid);

/* What is known of a set. If many threads share everything and some are not known yet, a few look like a set,
 * until they are seen to share with others, too. */
typedef enum TouchSet {
    TOUCH_SET_NEW,    /* nothing, since it last changed */
    TOUCH_SET_CLOSED, /* at least three quarters of what it shares are shared within; once closed, half */
    TOUCH_SET_OPEN,
    TOUCH_SET_MAX,
    TOUCH_SET_INVALID = -EINVAL,
} TouchSet;

/* For touches.c: note how much a thread shared with another, divided by the number of users; forget a thread
 * that ends as a partner, because its tid may be reused; find the sets anew, once buddies are known. */
void touches_add_partner(TouchThread *thread, const TouchThread *other, uint32_t weight);
void touches_forget_partner(Touches *touches, pid_t tid);
void touches_fold_sets(Touches *touches);

/* For touches.c: note where a thread ran in `n` samples from `from` on; end a round; and write the result
 * into `stay`, with `now_usec` if it is new. */
void touches_note_node(const Touches *touches, TouchThread *thread, size_t from, size_t n);
void touches_fold_node(const Touches *touches, TouchThread *thread);
void touches_tell_node(const TouchThread *thread, TaskStay *stay, uint64_t now_usec);

/* The first thread of a thread's set, which may be itself, and what is known of the set; NULL: there is none. */
const TouchThread *touches_set(const Touches *touches, pid_t tid, TouchSet *ret);

/* Forgets what a thread did, when its work begins or ends: one that accessed everything first would hide the
 * real users for seconds. 0, or -ENOENT. */
int touches_forget_thread(Touches *touches, pid_t tid);

/* Adds a sample of the present round. 0 (also when it was left out), or -ENOMEM. */
int touches_add(Touches *touches, const Touch *touch);

/* Adds blocks for the samples of the round, without a node, and sets the `address` of each sampled block.
 * Then the caller sets the nodes of all blocks, which may have moved or become resident since the last round.
 * 0; or -ENOMEM, and the samples are lost. */
int touches_gather(Touches *touches);

/* Counts the round after touches_gather(), and ends it. An access is private if no other thread accessed the
 * block in this round or last before it. Only blocks with a known node count in the faults of threads.
 * Returns false, and changes nothing, if there were no samples. */
bool touches_fold(Touches *touches);

/* The sum of the weights of all users. */
uint64_t touches_weight(const TouchBlock *block);

/* The thread that owns the block; 0: it has been accessed in too few rounds, or is shared. */
pid_t touches_owner(const TouchBlock *block);

/* Whether a thread besides the first owner was seen in about the last seven rounds. touches_owner() follows a
 * change of users sooner, but errs if by chance one of two sharers comes first three times in a row. */
bool touches_shared(const TouchBlock *block);

typedef struct TouchesSummary {
    size_t n_judged;           /* blocks accessed in TOUCHES_ROUNDS_MIN rounds or more */
    size_t n_shared;           /* those of them without an owner */
    size_t n_again, n_others;  /* blocks accessed in several rounds, and those of them with several owners */
    size_t n_local, n_remote;  /* located blocks, by whether they lie where they were last accessed from */
    uint32_t overlap_permille; /* n_shared of n_judged; 0 when there are none */
} TouchesSummary;

TouchesSummary touches_summary(const Touches *touches);

/* The class of a thread from all its blocks. Unknown with too few samples: a thread that follows another in
 * step never faults, and is not private for that. */
BuddyClass touches_thread_class(const TouchThread *thread);

/* Sets Task.use of the threads that the World has. With too few samples a thread keeps what was known, except
 * where it stays; so do all until enough blocks were accessed in two rounds. 0 or -ENOMEM. */
int touches_tell(const Touches *touches, World *world, uint64_t now_usec);

/* Whether orders and limits hold; for tests. */
bool touches_check(const Touches *touches);
