/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The inside of the room that work.h is the door of. Workloads do not include this. */

#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "work.h"

#define ROOM_PROCESSES_MAX 64u
#define ROOM_THREADS_MAX   1024u /* of a process */
#define ROOM_NODES_MAX     128u
#define ROOM_WINDOW_MAX    254u /* the second mark has the next number */
#define ROOM_CHANGES_MAX   16u  /* whose times are noted */

typedef enum PlacementKind {
    PLACEMENT_MAIN,       /* the main thread touches everything first, on one node */
    PLACEMENT_INTERLEAVE, /* page by page over all nodes */
    PLACEMENT_LOCAL,      /* each thread touches its share first */
    PLACEMENT_PROCESS,    /* that of process i of n on node i * nodes / n */
    PLACEMENT_NODE,       /* on node `placement_node` */
} PlacementKind;

typedef enum BindKind {
    BIND_NONE,
    BIND_RUN,   /* all the time */
    BIND_START, /* until the work begins */
    BIND_LEND,  /* all the time, and those lent where others are */
    BIND_MAX,
} BindKind;

extern const char *const room_bind_names[BIND_MAX];

typedef struct RoomOptions {
    unsigned processes, threads; /* threads of each process */
    size_t bytes;
    double scale;
    uint64_t seconds_nsec;      /* 0: a fixed amount of work */
    uint64_t window_after_nsec; /* the first mark comes so long after the start */
    PlacementKind placement;
    unsigned placement_node;
    const char *placement_text;
    bool random_order;
    size_t ballast_bytes; /* of each process; nobody uses it after it was touched */
    BindKind bind;
    double sample_hz; /* 0: only at start and end */
    int window;       /* number of the first of its two marks; negative: none */
    uint64_t extra;
} RoomOptions;

/* What the first process lets the others do; each state includes those before. */
typedef enum RoomState {
    ROOM_SETUP,
    ROOM_GO,
    ROOM_CHECK,
    ROOM_END,
} RoomState;

/* Durations of the thread's passes; a pass is one walk over its part, or shape->pass_steps. */
typedef struct RoomPasses {
    uint64_t n, begin_nsec, first_nsec, min_nsec, max_nsec, last_nsec;
} RoomPasses;

/* Each on lines of its own, so that counting costs nobody else anything. */
typedef struct RoomThread {
    WorkThread thread; /* first: the workload has a pointer to it */
    uint64_t quota;    /* steps to do; UINT64_MAX when time decides */
    uint64_t pass_steps, pass_left;
    RoomPasses passes;
    uint64_t end_nsec;
    uint64_t n_changes;     /* of parts */
    _Atomic uint64_t steps; /* done, for who watches */
    _Atomic uint32_t node;  /* where it runs */
    _Atomic uint32_t used;  /* which parts it uses; none: it is idle */
} __attribute__((aligned(256))) RoomThread;

/* Shared by all processes of a workload, at the same address. */
typedef struct Room {
    const WorkShape *shape;
    RoomOptions options;
    unsigned n_threads; /* of all processes */
    unsigned home;      /* the node of the first CPU it may use */
    uint64_t start_nsec;
    pid_t pids[ROOM_PROCESSES_MAX];

    _Atomic uint32_t state; /* RoomState; these three are futexes */
    _Atomic uint32_t n_ready;
    _Atomic uint32_t n_finished;
    _Atomic uint32_t n_checked;
    _Atomic uint32_t stop;        /* the threads end at their next step */
    _Atomic uint32_t interrupted; /* and it is a signal that wants it */

    _Atomic uint64_t
        changes_nsec[ROOM_CHANGES_MAX]; /* when the first thread changed its parts for the n-th time */

    RoomThread threads[];
} Room;

/* Where the sampled pages are. A page counts once for each thread that uses it. */
typedef struct PlaceShares {
    uint64_t n_asked;
    uint64_t n_pages, n_local; /* that the kernel knew */
    uint64_t by_node[ROOM_NODES_MAX];
} PlaceShares;

typedef struct RoomSample {
    uint64_t nsec;  /* since the start */
    uint64_t steps; /* of all threads */
    double local;   /* share of the pages; negative: the kernel did not know enough of them */
} RoomSample;

typedef struct RoomResult {
    PlaceShares start, end;
    RoomSample *samples;
    size_t n_samples;
    bool complete;
} RoomResult;

/* From how many nanoseconds on a lap counts in laps[]. */
extern const uint64_t room_laps_nsec[WORK_LAPS];

uint64_t room_now_nsec(void);

/* Reads the arguments; on a bad one prints a line and exits with 2, on --help with 0. */
void room_options(const WorkShape *shape, int argc, char **argv, RoomOptions *ret);

/* The node of the first CPU the program may use. */
unsigned place_home(void);

/* True when memory can be had on this node. */
bool place_has_memory(unsigned node);

/* Makes what the calling thread touches first go where the options want it; place_end() gives back the policy
 * it had. Returns -errno when that is not possible. */
int place_begin(const Room *room, unsigned process);
void place_end(void);

/* Lets the calling thread run only on the CPUs of the node that is its by its number among all
 * `n_threads`. Its former CPUs are written to `ret_before`. */
int place_bind(unsigned number, unsigned n_threads, cpu_set_t *ret_before);

/* Asks the kernel where a sample of the pages is that the threads use now. */
void place_query(const Room *room, PlaceShares *ret);

/* Prints the line of the result. */
void room_print(const Room *room, const RoomResult *result);

/* Maps and fills the memory of process number `process`, which is the calling one, and makes its threads. */
void room_start_process(Room *room, unsigned process);

/* Waits until they have ended, and those of all other processes too. */
void room_end_process(Room *room);

/* Forks the processes when there are more than one; false when that is not possible. */
bool fork_all(Room *room);

/* True while all of them are there; says how the first one ended that is not. */
bool fork_all_alive(Room *room);

void fork_kill_all(Room *room);

/* Waits until all have ended by themselves; false, and says so, when one of them failed while it did. */
bool fork_reap_all(Room *room);

/* Waits until *word is at least `value`, or the time has come (0: never), or a signal came. */
void room_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until_nsec);
void room_wake(_Atomic uint32_t *word);
