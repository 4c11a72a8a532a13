/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Basic speeds of a machine, as one line of JSON: a loop of two instructions on one CPU and on all at once, lines read
 * one after the other, a system call, a round trip between two threads, and moving huge pages. The lab's calibration
 * compares them with the settings of the cost plugin (tests/vm/cost), whose prices this program switches on.
 *
 * Each measurement is a fixed amount of work. The loops of all CPUs and the round trips are timed as a whole. The rest
 * is timed in pieces, shorter than the time between two ticks where possible, and the median piece is printed: ticks,
 * and other users of the CPU, disturb the others. Loops whose instructions are counted are written in assembler, since
 * compilers differ. Nodes 0 and 1 are used. Memory is bound by direct system calls: nothing but libc is needed. */

#include "timing.h"
#include "window.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX    64
#define LINE_BYTES  64U
#define HUGE_BYTES  (2UL << 20)
#define SPIN_LOOPS  200000000UL
#define PIECES      128U  /* a multiple of MOVED_PAGES */
#define CALLS       1000U /* in a piece, like those below */
#define READ_BYTES  (1UL << 20)
#define READ_PIECES 32U /* in the memory, which is read several times */
#define ROUND_TRIPS 4000U
#define MOVED_PAGES 16U /* at a time: as many as a small node has room for */

static void die(const char *what)
{
    fprintf(stderr, "gauge: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void run_on(int cpu)
{
    if (timing_run_on(cpu) < 0)
        die("sched_setaffinity");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(values[0]), compare);
    return values[n / 2];
}

/* Nanoseconds since `begin`, for each of `n`. */
static double each_nsec(uint64_t begin, double n)
{
    return (double)(timing_now_nsec() - begin) / n;
}

/* CPUs of a node: the first one, and the next one, or -1 if there is none. */
static void first_cpus(int node, int *ret_first, int *ret_second)
{
    char path[80];
    int n_read, last;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
    f = fopen(path, "re");
    if (!f)
        die(path);
    n_read = fscanf(f, "%d%*[-,]%d", ret_first, &last);
    (void)fclose(f);
    if (n_read < 1) {
        fprintf(stderr, "gauge: node %d has no CPU\n", node);
        exit(EXIT_FAILURE);
    }
    *ret_second = n_read == 2 ? *ret_first + 1 : -1;
}

/*
 * Instructions
 */

typedef struct Spinner {
    pthread_t thread;
    int cpu;
    double nsec; /* of one of its loops */
} Spinner;

static pthread_barrier_t barrier;

static void *spin(void *spinner)
{
    Spinner *s = spinner;
    uint64_t loops = SPIN_LOOPS;
    uint64_t begin;

    run_on(s->cpu);
    (void)pthread_barrier_wait(&barrier);
    begin = timing_now_nsec();
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(loops));
#else
    for (; loops > 0; loops--)
        __asm__ volatile("" : "+r"(loops));
#endif
    s->nsec = each_nsec(begin, 1);
    return NULL;
}

/* Nanoseconds of a loop when the first `n` CPUs run it: the mean of them, which tells how much is done in all. */
static double spin_nsec(unsigned n)
{
    Spinner spinners[CPUS_MAX];
    double sum = 0;

    if (pthread_barrier_init(&barrier, NULL, n) != 0)
        die("barrier");
    for (unsigned i = 0; i < n; i++) {
        spinners[i].cpu = (int)i;
        if (pthread_create(&spinners[i].thread, NULL, spin, &spinners[i]) != 0)
            die("thread");
    }
    for (unsigned i = 0; i < n; i++) {
        (void)pthread_join(spinners[i].thread, NULL);
        sum += spinners[i].nsec;
    }
    (void)pthread_barrier_destroy(&barrier);
    return sum / n / SPIN_LOOPS;
}

static double call_nsec(void)
{
    double pieces[PIECES];

    for (unsigned i = 0; i < PIECES; i++) {
        uint64_t begin = timing_now_nsec();

        for (unsigned j = 0; j < CALLS; j++)
            (void)syscall(SYS_getppid);
        pieces[i] = each_nsec(begin, CALLS);
    }
    return median(pieces, PIECES);
}

/*
 * Threads
 */

static sem_t there, back;

static void *answer(void *cpu)
{
    run_on((int)(intptr_t)cpu);
    for (unsigned i = 0; i < ROUND_TRIPS; i++) {
        (void)sem_wait(&there);
        (void)sem_post(&back);
    }
    return NULL;
}

static double round_trip_nsec(int here, int other)
{
    pthread_t thread;
    uint64_t begin;
    double nsec;

    (void)sem_init(&there, 0, 0);
    (void)sem_init(&back, 0, 0);
    run_on(here);
    if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)other) != 0)
        die("thread");
    begin = timing_now_nsec();
    for (unsigned i = 0; i < ROUND_TRIPS; i++) {
        (void)sem_post(&there);
        (void)sem_wait(&back);
    }
    nsec = each_nsec(begin, ROUND_TRIPS);
    (void)pthread_join(thread, NULL);
    return nsec;
}

/*
 * Memory
 */

/* Huge pages on a node, all touched. The small pages before and after them are never touched, and stay mapped
 * when the huge ones are unmapped. */
static char *new_memory(size_t bytes, int node)
{
    unsigned long mask = 1UL << node;
    char *map = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *p;

    if (map == MAP_FAILED)
        die("mmap");
    p = (char *)(((uintptr_t)map + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
    if (madvise(p, bytes, MADV_HUGEPAGE) < 0)
        die("madvise");
    if (syscall(SYS_mbind, p, bytes, MPOL_BIND, &mask, 8 * sizeof(mask), 0) < 0)
        die("mbind");
    memset(p, 1, bytes);
    return p;
}

/* Four instructions for each line. */
static void read_lines(const char *from, const char *end)
{
#if defined(__x86_64__)
    uint64_t word;

    __asm__ volatile("1: mov (%0), %1; add $64, %0; cmp %2, %0; jne 1b"
                     : "+r"(from), "=&r"(word)
                     : "r"(end)
                     : "memory");
#else
    for (; from != end; from += LINE_BYTES)
        (void)*(const volatile uint64_t *)(const void *)from;
#endif
}

static double read_nsec(int node)
{
    char *p = new_memory(READ_PIECES * READ_BYTES, node);
    double pieces[PIECES];

    for (unsigned i = 0; i < PIECES; i++) {
        const char *from = p + i % READ_PIECES * READ_BYTES;
        uint64_t begin = timing_now_nsec();

        read_lines(from, from + READ_BYTES);
        pieces[i] = each_nsec(begin, READ_BYTES / LINE_BYTES);
    }
    (void)munmap(p, READ_PIECES * READ_BYTES);
    return median(pieces, PIECES);
}

static double move_one_nsec(void *page, int to)
{
    uint64_t begin = timing_now_nsec();
    int status = -1;
    double nsec;

    if (syscall(SYS_move_pages, 0, 1UL, &page, &to, &status, MPOL_MF_MOVE) < 0)
        die("move_pages");
    nsec = each_nsec(begin, 1);
    if (status != to) {
        fprintf(stderr, "gauge: a page is on node %d, should be on %d\n", status, to);
        exit(EXIT_FAILURE);
    }
    return nsec;
}

/* Time to move a huge page, by a CPU of the target node. It is longer than the time between two ticks, so
 * there are many pieces. */
static double move_nsec(int from, int to)
{
    double pieces[PIECES];

    for (unsigned i = 0; i < PIECES; i += MOVED_PAGES) {
        char *p = new_memory(MOVED_PAGES * HUGE_BYTES, from);

        for (unsigned j = 0; j < MOVED_PAGES; j++)
            pieces[i + j] = move_one_nsec(p + j * HUGE_BYTES, to);
        (void)munmap(p, MOVED_PAGES * HUGE_BYTES);
    }
    return median(pieces, PIECES);
}

int main(void)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int near, beside, far, other;

    first_cpus(0, &near, &beside);
    first_cpus(1, &far, &other);
    if (n_cpus > CPUS_MAX)
        n_cpus = CPUS_MAX;
    window_on();
    printf("{\"cpus\":%ld,\"spin_one_nsec\":%.4f", n_cpus, spin_nsec(1));
    printf(",\"spin_all_nsec\":%.4f", spin_nsec((unsigned)n_cpus));
    run_on(near);
    printf(",\"read_near_nsec\":%.3f", read_nsec(0));
    printf(",\"read_far_nsec\":%.3f", read_nsec(1));
    printf(",\"call_nsec\":%.2f", call_nsec());
    if (beside >= 0)
        printf(",\"round_trip_near_nsec\":%.1f", round_trip_nsec(near, beside));
    printf(",\"round_trip_far_nsec\":%.1f", round_trip_nsec(near, far));
    run_on(far);
    printf(",\"move_huge_nsec\":%.1f}\n", move_nsec(0, 1));
    window_off();
    return 0;
}
