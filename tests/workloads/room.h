/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Internals of the frame whose interface to workloads is work.h. Workloads do not include this header. */

#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "work.h"

#define ROOM_PROCESSES_MAX 64u
#define ROOM_THREADS_MAX   1024u /* of a process */
#define ROOM_NODES_MAX     128u
#define ROOM_WINDOW_MAX    254u /* the second mark has the next number */
#define ROOM_CHANGES_MAX   16u  /* changes whose times are recorded */

typedef enum PlacementKind {
    PLACEMENT_MAIN,       /* the main thread touches everything first, on one node */
    PLACEMENT_INTERLEAVE, /* page by page over all nodes */
    PLACEMENT_LOCAL,      /* each thread touches its share first */
    PLACEMENT_PROCESS,    /* memory of process i of n on node i * nodes / n */
    PLACEMENT_NODE,       /* on node `placement_node` */
} PlacementKind;

typedef enum BindKind {
    BIND_NONE,
    BIND_RUN,   /* all the time */
    BIND_START, /* until the work begins */
    BIND_LEND,  /* all the time; the last third of each process on the nodes of other processes */
    BIND_MAX,
} BindKind;

extern const char *const room_bind_names[BIND_MAX];

typedef struct RoomOptions {
    unsigned processes, threads; /* threads of each process */
    size_t bytes;
    double scale;
    uint64_t seconds_nsec;      /* 0: a fixed amount of work */
    uint64_t window_after_nsec; /* from the start to the first mark; 0: no delay */
    PlacementKind placement;
    unsigned placement_node;
    const char *placement_text;
    bool random_order;
    size_t ballast_bytes; /* of each process: touched once, then never used */
    BindKind bind;
    double sample_hz; /* 0: only at start and end */
    int window;       /* number of the first of the two marks; negative: no window */
    uint64_t extra;
} RoomOptions;

/* What the first process lets the others do. Each state includes those before it. */
typedef enum RoomState {
    ROOM_SETUP,
    ROOM_GO,
    ROOM_CHECK,
    ROOM_END,
} RoomState;

/* Durations of the thread's passes. A pass is one walk over its part, or shape->pass_steps steps. */
typedef struct RoomPasses {
    uint64_t n, begin_nsec, first_nsec, min_nsec, max_nsec, last_nsec;
} RoomPasses;

/* On cache lines of its own, so that counting does not slow down other threads. */
typedef struct RoomThread {
    WorkThread thread; /* first: the workload's pointer is cast back */
    uint64_t quota;    /* steps to do; UINT64_MAX when time decides */
    uint64_t pass_steps, pass_left;
    RoomPasses passes;
    uint64_t end_nsec;
    uint64_t n_changes;     /* of parts */
    _Atomic uint64_t steps; /* done; read by the first process */
    _Atomic uint32_t node;  /* that the thread runs on */
    _Atomic uint32_t used;  /* bit mask of the parts in use; 0: idle */
} __attribute__((aligned(256))) RoomThread;

/* Shared by all processes of a workload, at the same address. */
typedef struct Room {
    const WorkShape *shape;
    RoomOptions options;
    unsigned n_threads; /* of all processes */
    unsigned home;      /* node of the first CPU the program may use */
    uint64_t start_nsec;
    pid_t pids[ROOM_PROCESSES_MAX];

    _Atomic uint32_t state; /* RoomState; this, the counts below and `stop` are futexes */
    _Atomic uint32_t n_ready;
    _Atomic uint32_t n_finished;
    _Atomic uint32_t n_checked;
    _Atomic uint32_t stop;        /* the threads end at their next step */
    _Atomic uint32_t interrupted; /* a signal made the threads stop */

    _Atomic uint64_t
        changes_nsec[ROOM_CHANGES_MAX]; /* when some thread first made its n-th change of parts */

    RoomThread threads[];
} Room;

/* Where the sampled pages are. A page counts once for each thread that uses it. */
typedef struct PlaceShares {
    uint64_t n_asked;
    uint64_t n_pages, n_local; /* whose node the kernel reported */
    uint64_t by_node[ROOM_NODES_MAX];
} PlaceShares;

typedef struct RoomSample {
    uint64_t nsec;  /* since the start */
    uint64_t steps; /* of all threads */
    double local;   /* share of local pages; negative: the kernel reported too few pages */
} RoomSample;

typedef struct RoomResult {
    PlaceShares start, end;
    RoomSample *samples;
    size_t n_samples;
    bool complete;
} RoomResult;

/* laps[i] counts the laps of at least this many nanoseconds. */
extern const uint64_t room_laps_nsec[WORK_LAPS];

/* Reads the arguments. On a bad one it prints a line and exits with 2; on --help it exits with 0. */
void room_options(const WorkShape *shape, int argc, char **argv, RoomOptions *ret);

/* The node of the first CPU the program may use. */
unsigned place_home(void);

/* True when memory can be allocated on this node. */
bool place_has_memory(unsigned node);

/* Sets a memory policy so that what the calling thread touches first goes where the options want it;
 * place_end() restores the thread's policy. Returns 0, or -errno when that is not possible. */
int place_begin(const Room *room, unsigned process);
void place_end(void);

/* Confines the calling thread to the CPUs of one node, which follows from its number among all `n_threads`.
 * Writes its former CPUs to `ret_before`. */
int place_bind(unsigned number, unsigned n_threads, cpu_set_t *ret_before);

/* Asks the kernel for the nodes of a sample of the pages that the threads use now. */
void place_query(const Room *room, PlaceShares *ret);

/* Prints the line of the result. */
void room_print(const Room *room, const RoomResult *result);

/* Maps and fills the memory of process number `process`, the calling one, and creates its threads. */
void room_start_process(Room *room, unsigned process);

/* Waits until the threads of this and of all other processes have ended. */
void room_end_process(Room *room);

/* Forks the processes if there are more than one. Returns false when that is not possible. */
bool fork_all(Room *room);

/* True while all processes are alive. Otherwise reports how the first missing one ended. */
bool fork_all_alive(Room *room);

void fork_kill_all(Room *room);

/* Waits until all processes have ended by themselves. Reports each that failed, and then returns false. */
bool fork_reap_all(Room *room);

/* Waits until *word is at least `value`, the time `until_nsec` has come (0: no limit), or a signal arrives. */
void room_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until_nsec);
void room_wake(_Atomic uint32_t *word);
