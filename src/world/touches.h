/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who touches which memory of a process: samples of its threads, by block of 2 MB and by thread (P11, P13, P14, P18).
 *
 * Samples come in rounds. In a round a page tells at most once who touched it, so a huge page has one sample, and a
 * block of small pages up to 512. So that both mean the same, a block counts for TOUCHES_ROUND in each round it was
 * touched in, shared out among its samples. Sensing fills it in, as it does the fault averages. */

#include "base/ids.h"
#include "world/buddy.h"
#include "world/faults.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TOUCHES_BLOCK_BYTES (2ULL << 20)
#define TOUCHES_ROUND       512U /* small pages in a block */

/* Limits of one table: 128 GiB of touched memory in 6 MiB, threads, and samples of one round. What is beyond is
 * counted and left out. */
#define TOUCHES_BLOCKS_MAX  65536U
#define TOUCHES_THREADS_MAX 4096U
#define TOUCHES_SAMPLES_MAX 65536U

/* Owners remembered of a block; of those beyond these it is known only that they were there. A block has one sample in
 * a round where it is a huge page, and weights halve, so not many more could be told. */
#define TOUCHES_OWNERS 8U

/* Of the weights of a block's owners, one part in so many is nobody: a round of somebody else is less after eight
 * rounds. Three rounds in a row, which two that share have every fourth time, are not enough. */
#define TOUCHES_MAY_DIFFER 256U

/* A block that nobody touched in so many rounds is forgotten. */
#define TOUCHES_ROUNDS_KEPT 32U

/* Three rounds tell private memory from shared, and of a thread so many samples are too few to say anything of it:
 * measured on threads that share all and on such that share nothing. Owned is what one thread has 85 % of. */
#define TOUCHES_ROUNDS_MIN     3U
#define TOUCHES_SAMPLES_MIN    6U
#define TOUCHES_OWNED_PERMILLE 850U

typedef struct TouchOwner {
    pid_t tid;       /* 0: none */
    uint32_t weight; /* of each round it is touched in; halved before the next: below 2 x TOUCHES_ROUND */
} TouchOwner;

typedef struct TouchBlock {
    uint64_t address;    /* in it, where it was touched last */
    NodeIx node;         /* where it lies; NODE_NONE: not known. Whoever asks the kernel sets it */
    NodeIx last_node;    /* from where it was touched last; NODE_NONE: not known */
    pid_t last_tid;      /* by whom; of several in one round by who did most, then by the lowest. 0: by
                                          one that is forgotten */
    uint32_t n_rounds;   /* it was touched in */
    uint32_t last_round; /* the last one, as Touches.n_rounds was */
    uint32_t others;     /* weights of those who were there and are not among: */
    TouchOwner owners[TOUCHES_OWNERS]; /* by weight, then tid */
} TouchBlock;

/* Who shares with a thread, and how much: the most of them by weight, of which 3/4 is kept each round. */
#define TOUCHES_PARTNERS 16U

typedef struct TouchThread {
    TaskKey key;
    Faults faults; /* accesses in small pages, by where the memory lies */
    Buddy buddy;
    NodeIx preferred;   /* where the kernel would have it, if its own faults are the evidence; NODE_NONE */
    uint64_t n_samples; /* since it was added or forgotten */
    uint64_t n_blocks;  /* blocks of rounds, likewise */
    /* The node that it ran on for all its samples of so many rounds in a row that had any, since round
     * `node_since`; NODE_NONE: on several, or it is not known. And where it ran for more than half of those of the last
     * such round. */
    NodeIx node, main_node;
    uint32_t node_rounds, node_since;
    /* In the present round: the node with more samples than the others, if any, and how many more; whether there are
     * samples, and of several nodes. */
    NodeIx round_node;
    uint32_t round_lead;
    bool seen, wanders;
    uint64_t now[FAULTS_KIND_MAX]; /* in the present round, of blocks whose last one to touch them is known */
    uint64_t
        own_now; /* of these, where nobody else is remembered; and per round, as Buddy.private_average: */
    uint64_t own_average;
    /* Its set: itself, its buddy or whom else it shares most with of those before it, that one's, and so on, by the
     * first of these, as of the last round. Of what it shared, what was with the set and with others: in the present
     * round, and on average since the set is as it is, 3/4 of which are kept. */
    pid_t set;
    uint64_t within_now, beyond_now, within, beyond;
    TouchOwner partners[TOUCHES_PARTNERS]; /* in no order; tid 0: none */
    TaskKey tied;                          /* with whom it is in its set; tid 0: it is the first */
    bool closed;                           /* of the first of a set: see TOUCH_SET_CLOSED */
    uint32_t n_now, set_size;              /* of the first of a set: threads, now and as of the last round, */
    uint64_t set_within, set_beyond;       /* and sums over them */
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
    Touch *samples; /* of the present round, in any order; for touches.c and plan/memory/blocks.c */
    size_t n_samples, samples_capacity;
    uint32_t n_nodes;
    uint32_t n_rounds;  /* with a sample in them */
    uint64_t n_taken;   /* samples, since the start */
    uint64_t n_foreign; /* of threads that are not in the table */
    uint64_t n_dropped; /* beyond a limit */
} Touches;

/* For a machine with so many nodes. Nothing can fail. */
void touches_init(Touches *touches, uint32_t n_nodes);
void touches_done(Touches *touches);

/* Adds a thread, and removes one with all that is known of it. 0; -EEXIST, -ENOENT; -ENOMEM; -E2BIG: too many. */
int touches_add_thread(Touches *touches, TaskKey key);
int touches_remove_thread(Touches *touches, pid_t tid);
TouchThread *touches_thread(Touches *touches, pid_t tid);

/* What is known of a set. Of many who share all, who are not all known yet, some look as if they were a set of their
 * own, until it is seen that they share with others, too. */
typedef enum TouchSet {
    TOUCH_SET_NEW,    /* not since it is as it is */
    TOUCH_SET_CLOSED, /* three quarters of what it shares at least are shared within */
    TOUCH_SET_OPEN,
    TOUCH_SET_MAX,
    TOUCH_SET_INVALID = -EINVAL,
} TouchSet;

/* For touches.c: a thread shared so much with another one, by the number of those who do; a thread that ends is not
 * remembered by others, since its tid may be somebody else's; and the sets are found anew, when buddies are known. */
void touches_add_partner(TouchThread *thread, const TouchThread *other, uint32_t weight);
void touches_forget_partner(Touches *touches, pid_t tid);
void touches_fold_sets(Touches *touches);

/* For touches.c: where a thread ran for `n` samples from `from` on; that a round is over; and what of it is told at
 * `now_usec`: of what is told for the first time, since then. */
void touches_note_node(const Touches *touches, TouchThread *thread, size_t from, size_t n);
void touches_fold_node(const Touches *touches, TouchThread *thread);
void touches_tell_node(const TouchThread *thread, TaskStay *stay, uint64_t now_usec);

/* The first thread of a thread's set, which may be itself; NULL: there is no such thread. */
const TouchThread *touches_set(const Touches *touches, pid_t tid, TouchSet *ret);

/* Forgets what a thread did, when it begins or ends to be busy: the one that touched everything first would hide for
 * seconds who really uses it. -ENOENT: there is no such thread. */
int touches_forget_thread(Touches *touches, pid_t tid);

/* Takes in a sample of the present round. 0 (also when it was left out), or -ENOMEM. */
int touches_add(Touches *touches, const Touch *touch);

/* Brings the samples of the round into the blocks: new ones are added, with no node, and `address` is where each was
 * touched last. Now is the time to say where they lie, all of them: one that was elsewhere in the last round may
 * have been moved, and one that was nowhere may be there. 0; or -ENOMEM, and the round's samples are lost. */
int touches_gather(Touches *touches);

/* Counts the round after touches_gather(), and ends it. A touch is private when nobody else
 * touched the block in this round or was the last to touch it before. Only located blocks count for threads. A round
 * without samples is none: it changes nothing. Returns whether it was one. */
bool touches_fold(Touches *touches);

/* Weights of all who were there. */
uint64_t touches_weight(const TouchBlock *block);

/* The thread the block belongs to, 0: it has been seen too rarely, or is shared. */
pid_t touches_owner(const TouchBlock *block);

/* Whether somebody besides its first owner was there in the last seven rounds or so. Unlike touches_owner(), which
 * is to see soon that a block has another user, this is not mistaken when one of two is by chance the first three
 * times in a row. */
bool touches_shared(const TouchBlock *block);

typedef struct TouchesSummary {
    size_t n_judged;           /* blocks touched in TOUCHES_ROUNDS_MIN rounds or more */
    size_t n_shared;           /* of these, without an owner */
    size_t n_again, n_others;  /* blocks touched in several rounds; of these, not by one thread only */
    size_t n_local, n_remote;  /* located blocks, by whether they lie where they were touched from last */
    uint32_t overlap_permille; /* n_shared of n_judged; 0 when there are none */
} TouchesSummary;

TouchesSummary touches_summary(const Touches *touches);

/* Private or shared, from what is known of all its blocks; unknown for a thread with too few samples: one that walks in
 * step behind another never faults, and is not private for that. */
BuddyClass touches_thread_class(const TouchThread *thread);

/* Says in the World what is known of those threads that it has, too: Task.use. Who has too few samples keeps what
 * was known before, and so do all until some blocks were touched in two rounds. 0 or -ENOMEM. */
int touches_tell(const Touches *touches, World *world, uint64_t now_usec);

/* Asserts orders and limits; for tests. */
bool touches_check(const Touches *touches);
