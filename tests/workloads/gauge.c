/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a machine is worth, as one JSON line: a loop of two instructions on one CPU and on all at once, lines read one after the other, a
 * system call, a round trip between two threads, and moving huge pages. The lab's calibration compares it with what the cost plugin
 * was told (tests/vm/cost), whose prices it switches on.
 *
 * All is a fixed amount of work, timed as a whole. Memory is bound by the system calls themselves: nothing but libc is needed. Nodes 0
 * and 1 are taken, and their first two CPUs. */

#include "window.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX    64
#define LINE_BYTES  64U
#define HUGE_BYTES  (2UL << 20)
#define SPIN_LOOPS  100000000UL
#define CALLS       200000U
#define ROUND_TRIPS 4000U
#define READ_BYTES  (32UL << 20)
#define READ_PASSES 4U
#define MOVED_PAGES 16U

static void die(const char *what)
{
    fprintf(stderr, "gauge: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static double now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void run_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        die("sched_setaffinity");
}

static int first_cpu(int node)
{
    char path[80];
    FILE *f;
    int cpu = -1;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
    f = fopen(path, "re");
    if (!f || fscanf(f, "%d", &cpu) != 1)
        die(path);
    (void)fclose(f);
    return cpu;
}

/*
 * Instructions
 */

typedef struct Spinner {
    pthread_t thread;
    int cpu;
    double nsec; /* of its loops */
} Spinner;

static pthread_barrier_t barrier;

static void *spin(void *spinner)
{
    Spinner *s = spinner;
    uint64_t loops = SPIN_LOOPS;
    double begin;

    run_on(s->cpu);
    (void)pthread_barrier_wait(&barrier);
    begin = now_nsec();
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(loops));
#else
    for (; loops > 0; loops--)
        __asm__ volatile("" : "+r"(loops));
#endif
    s->nsec = now_nsec() - begin;
    return NULL;
}

/* Nanoseconds of a loop when the first `n` CPUs do the same, on the one that takes longest. */
static double spin_nsec(unsigned n)
{
    Spinner spinners[CPUS_MAX];
    double longest = 0;

    if (pthread_barrier_init(&barrier, NULL, n) != 0)
        die("barrier");
    for (unsigned i = 0; i < n; i++) {
        spinners[i].cpu = (int)i;
        if (pthread_create(&spinners[i].thread, NULL, spin, &spinners[i]) != 0)
            die("thread");
    }
    for (unsigned i = 0; i < n; i++) {
        (void)pthread_join(spinners[i].thread, NULL);
        longest = spinners[i].nsec > longest ? spinners[i].nsec : longest;
    }
    (void)pthread_barrier_destroy(&barrier);
    return longest / SPIN_LOOPS;
}

static double call_nsec(void)
{
    double begin = now_nsec();

    for (unsigned i = 0; i < CALLS; i++)
        (void)syscall(SYS_getppid);
    return (now_nsec() - begin) / CALLS;
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
    double begin;

    (void)sem_init(&there, 0, 0);
    (void)sem_init(&back, 0, 0);
    run_on(here);
    if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)other) != 0)
        die("thread");
    begin = now_nsec();
    for (unsigned i = 0; i < ROUND_TRIPS; i++) {
        (void)sem_post(&there);
        (void)sem_wait(&back);
    }
    begin = now_nsec() - begin;
    (void)pthread_join(thread, NULL);
    return begin / ROUND_TRIPS;
}

/*
 * Memory
 */

/* Huge pages of a node, all touched. */
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

static double read_nsec(int node)
{
    char *p = new_memory(READ_BYTES, node);
    double begin = now_nsec();

    for (unsigned pass = 0; pass < READ_PASSES; pass++) {
        for (size_t at = 0; at < READ_BYTES; at += LINE_BYTES)
            (void)*(volatile uint64_t *)(void *)(p + at);
    }
    begin = now_nsec() - begin;
    (void)munmap(p, READ_BYTES);
    return begin / ((double)READ_PASSES * READ_BYTES / LINE_BYTES);
}

/* Of a huge page, moved by a CPU of the node that it comes to. */
static double move_nsec(int from, int to)
{
    char *p = new_memory(MOVED_PAGES * HUGE_BYTES, from);
    void *pages[MOVED_PAGES];
    int nodes[MOVED_PAGES], status[MOVED_PAGES];
    double begin;

    for (unsigned i = 0; i < MOVED_PAGES; i++) {
        pages[i] = p + i * HUGE_BYTES;
        nodes[i] = to;
    }
    begin = now_nsec();
    if (syscall(SYS_move_pages, 0, (unsigned long)MOVED_PAGES, pages, nodes, status, MPOL_MF_MOVE) < 0)
        die("move_pages");
    begin = now_nsec() - begin;
    for (unsigned i = 0; i < MOVED_PAGES; i++) {
        if (status[i] != to) {
            fprintf(stderr, "gauge: a page is on node %d, should be on %d\n", status[i], to);
            exit(EXIT_FAILURE);
        }
    }
    (void)munmap(p, MOVED_PAGES * HUGE_BYTES);
    return begin / MOVED_PAGES;
}

int main(void)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int near = first_cpu(0), far = first_cpu(1);

    if (n_cpus > CPUS_MAX)
        n_cpus = CPUS_MAX;
    window_on();
    printf("{\"cpus\":%ld,\"spin_one_nsec\":%.4f,\"spin_all_nsec\":%.4f", n_cpus, spin_nsec(1),
           spin_nsec((unsigned)n_cpus));
    run_on(near);
    printf(",\"read_near_nsec\":%.3f,\"read_far_nsec\":%.3f", read_nsec(0), read_nsec(1));
    printf(",\"call_nsec\":%.2f", call_nsec());
    printf(",\"round_trip_near_nsec\":%.1f,\"round_trip_far_nsec\":%.1f", round_trip_nsec(near, near + 1),
           round_trip_nsec(near, far));
    run_on(far);
    printf(",\"move_huge_nsec\":%.1f}\n", move_nsec(0, 1));
    window_off();
    return 0;
}
