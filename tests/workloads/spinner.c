/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Busy threads that count the work they do.
 *
 * Every thread adds to a counter of its own, in a file that others may map, so that a watcher reads progress
 * without asking. SIGUSR1 puts all threads to sleep or wakes them. With --duty-usec and --period-usec each
 * thread works that long in each period, starting at a phase of its own. With --work the program ends when
 * the sum of the counters reaches that number. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Iterations between two reads of the flags; some microseconds. */
#define CHUNK 4096

static unsigned long arg_threads = 1;
static const char *arg_name = NULL;
static const char *arg_counter_file = NULL;
static unsigned long arg_duty_usec = 0;
static unsigned long arg_period_usec = 0;
static uint64_t arg_work = 0;

static _Atomic uint32_t awake = 1; /* also the futex the threads sleep on */
static _Atomic uint64_t work_done;
static _Atomic uint64_t *counters;

static void wait_awake(void)
{
    while (!atomic_load(&awake))
        (void)syscall(SYS_futex, &awake, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void on_toggle(int signal_number)
{
    (void)signal_number;
    if (atomic_fetch_xor(&awake, 1) == 0)
        (void)syscall(SYS_futex, &awake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void sleep_usec(uint64_t usec)
{
    struct timespec ts = {.tv_sec = (time_t)(usec / 1000000), .tv_nsec = (long)(usec % 1000000) * 1000};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void work_chunk(size_t index)
{
    static _Thread_local uint64_t state = 88172645463325252ULL;

    for (unsigned i = 0; i < CHUNK; i++) { /* xorshift64, George Marsaglia, 2003 */
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    /* The generator never reaches 0; using its state keeps the loop from being removed. */
    atomic_fetch_add_explicit(&counters[index], state != 0 ? CHUNK : 0, memory_order_relaxed);
}

static void work_duty(size_t index)
{
    uint64_t end = now_usec() + arg_duty_usec;

    do
        work_chunk(index);
    while (now_usec() < end);
    sleep_usec(arg_period_usec > arg_duty_usec ? arg_period_usec - arg_duty_usec : 0);
}

static void *run(void *argument)
{
    size_t index = (size_t)(uintptr_t)argument;

    if (arg_period_usec) /* phases spread by the golden ratio, so that threads never work in step */
        sleep_usec((uint64_t)((double)index * 0.6180339887 * (double)arg_period_usec) % arg_period_usec);
    for (;;) {
        if (!atomic_load_explicit(&awake, memory_order_relaxed))
            wait_awake();
        if (arg_period_usec) {
            work_duty(index);
            continue;
        }
        work_chunk(index);
        if (arg_work && atomic_fetch_add_explicit(&work_done, CHUNK, memory_order_relaxed) >= arg_work)
            exit(EXIT_SUCCESS);
    }
    return NULL;
}

static void *map_counters(size_t bytes)
{
    int fd = -1, flags = MAP_SHARED | MAP_ANONYMOUS;
    void *p;

    if (arg_counter_file) {
        fd = open(arg_counter_file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0) {
            perror(arg_counter_file);
            exit(EXIT_FAILURE);
        }
        flags = MAP_SHARED;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return p;
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-') {
        (void)fprintf(stderr, "spinner: '%s' is not a number\n", text);
        exit(2);
    }
    return value;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},      {"name", required_argument, NULL, 'n'},
        {"counter-file", required_argument, NULL, 'c'}, {"asleep", no_argument, NULL, 'a'},
        {"duty-usec", required_argument, NULL, 'd'},    {"period-usec", required_argument, NULL, 'p'},
        {"work", required_argument, NULL, 'w'},         {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (c) {
        case 't':
            arg_threads = number(optarg);
            break;
        case 'n':
            arg_name = optarg;
            break;
        case 'c':
            arg_counter_file = optarg;
            break;
        case 'a':
            atomic_store(&awake, 0);
            break;
        case 'd':
            arg_duty_usec = number(optarg);
            break;
        case 'p':
            arg_period_usec = number(optarg);
            break;
        case 'w':
            arg_work = number(optarg);
            break;
        default:
            exit(2);
        }
    if (arg_threads < 1) {
        (void)fprintf(stderr, "spinner: at least one thread\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_toggle, .sa_flags = SA_RESTART};
    pthread_attr_t attributes;

    parse(argc, argv);
    /* The name goes to every thread, since threads inherit it. */
    if (arg_name)
        (void)prctl(PR_SET_NAME, arg_name);
    counters = map_counters(arg_threads * sizeof(*counters));
    (void)sigaction(SIGUSR1, &action, NULL);

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 64 * 1024);
    /* Otherwise each stack takes two mappings, of which a process may have some 65,000. */
    (void)pthread_attr_setguardsize(&attributes, 0);
    for (size_t i = 0; i < arg_threads; i++) {
        pthread_t thread;
        int r = pthread_create(&thread, &attributes, run, (void *)(uintptr_t)i);

        if (r != 0) {
            (void)fprintf(stderr, "spinner: thread %zu of %lu: %s\n", i, arg_threads, strerror(r));
            return EXIT_FAILURE;
        }
    }
    for (;;)
        (void)pause();
}
