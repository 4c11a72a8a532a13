/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the measured workloads share: options, processes and threads, misplaced memory, counted work, one line of JSON.
 *
 * A workload is a WorkShape and a main() that passes it to work_main(). README.md lists the options and the keys of
 * the result. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Work is done in blocks of this many bytes. The stop flag is read between two of them. In an emulated guest
 * a block takes about a millisecond. */
#define WORK_BLOCK_BYTES ((size_t)64 * 1024)
#define WORK_REGIONS_MAX 3u

/* Number of lengths that work_lap() tells apart. */
#define WORK_LAPS 16u

typedef enum WorkLayout {
    WORK_NONE,    /* no memory worth placing */
    WORK_SHARED,  /* the threads of a process use all of its regions */
    WORK_SLICES,  /* each thread, or WorkShape.sharers threads, use a slice of each region of their process */
    WORK_PRIVATE, /* each thread has mappings of its own */
} WorkLayout;

/* Whole blocks of memory. */
typedef struct WorkPart {
    unsigned char *start;
    size_t bytes;
} WorkPart;

/* One thread, as the workload sees it. */
typedef struct WorkThread {
    unsigned process;   /* number of its process */
    unsigned index;     /* in its process */
    unsigned n_threads; /* of its process */
    uint64_t extra;     /* value of the workload's own option */
    bool random_order;  /* of the lines in a block or page; only with WorkShape.orders */

    WorkPart parts[WORK_REGIONS_MAX];  /* what it works on, one part of each region */
    WorkPart shares[WORK_REGIONS_MAX]; /* what it fills and checks; each is of one thread only */

    uint64_t steps;                 /* done so far; work_more() counts, others only read */
    uint64_t own[WORK_REGIONS_MAX]; /* free for the workload; the frame does not use it */
    uint64_t sum;                   /* check() adds the work it finds in the data */
    uint64_t n_errors;              /* run() and check() add the damage they find */

    /* Of work_lap(): time of the last call, longest lap, number of laps, and how many reached each length. */
    uint64_t lap_nsec, lap_worst_nsec, n_laps, laps[WORK_LAPS];
} WorkThread;

/* An option that only one workload has. A flag takes no argument and makes the value 1. */
typedef struct WorkExtra {
    const char *name;
    const char *help;
    bool flag;
    uint64_t value, min, max; /* value: the default */
} WorkExtra;

typedef struct WorkShape {
    const char *name;
    const char *about;    /* one line for --help */
    const char *unit;     /* what an operation is */
    const char *bytes_of; /* what has the size --bytes; NULL: there is no such option */
    WorkLayout layout;
    unsigned processes;    /* default of --processes */
    unsigned threads;      /* default of --threads, per process; 0: the CPUs divided among the processes */
    unsigned threads_max;  /* per process; 0: no limit of its own */
    unsigned threads_step; /* the number of threads is a multiple of it; 0: any number */
    size_t bytes;          /* default of --bytes: of a process, or of a thread with WORK_PRIVATE */
    unsigned n_regions;    /* the bytes are divided among them */
    bool sharers;          /* `extra` says how many neighbouring threads use one slice */
    uint64_t steps;        /* of a thread, with --scale=1 */
    double seconds;        /* duration with --scale=1; 0: `steps` decide */
    bool orders;           /* has --order */
    bool lends;            /* has --bind=lend: binds the last third of each process to the nodes of others */
    uint64_t pass_steps;   /* steps of a pass, which is timed; 0: one walk over the first part */
    uint64_t step_operations; /* operations in a step */
    uint64_t step_sum;        /* what a step adds to the sum that check() finds */
    WorkExtra extra;

    /* Writes `part` of region `region` for the first time, which places it. */
    void (*fill)(WorkPart part, unsigned region);
    /* Called in each process before it has threads. Returns 0 or -errno. May be NULL. */
    int (*prepare)(unsigned n_threads, uint64_t extra);
    /* The thread's work: a loop over work_more(). */
    void (*run)(WorkThread *thread);
    /* Checks the thread's share when all threads have finished. May be NULL. */
    void (*check)(WorkThread *thread);
} WorkShape;

/* Counts one step and returns true when it is to be done. Returns false at the end of the work or of the time. */
bool work_more(WorkThread *thread);

/* Progress of the thread, 0 to 1: of its work, or of the time. */
double work_progress(const WorkThread *thread);

/* Sleeps until work_progress() is `progress`, which must depend on time alone. Returns false at the end of
 * the time. */
bool work_rest(const WorkThread *thread, double progress);

/* Records the time since the thread's last call. The first call only reads the clock. */
void work_lap(WorkThread *thread);

/* Says which of its parts the thread uses from now on, one bit for each region. At first it uses all. */
void work_use(WorkThread *thread, unsigned regions);

/* Ends the process because it cannot go on. The workload then fails as a whole. */
_Noreturn void work_fail(const char *what, int error);

/* Runs the workload and prints its result. Returns the exit status: 0, 1 when it failed, 2 for bad arguments. */
int work_main(const WorkShape *shape, int argc, char **argv);
