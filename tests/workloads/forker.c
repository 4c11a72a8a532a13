/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Processes that fork and exit as fast as they can.
 *
 * There are N chains. In each, a process forks its successor and exits, so that PIDs change all the time,
 * parents are gone at once, and only session and process group stay. The first 8 bytes of the counter file
 * count the forks; with --limit the chains end at that number. With --hold the heads of the chains sleep
 * until the first process gets SIGUSR1. SIGTERM to it ends all chains (through the shared stop flag behind
 * the counter), and it waits until they are gone. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Shared {
    _Atomic uint64_t n_forks;
    _Atomic uint32_t stop;
    _Atomic uint32_t go;
} Shared;

static Shared *shared;

static void on_stop(int signal_number)
{
    (void)signal_number;
    atomic_store(&shared->stop, 1);
    atomic_store(&shared->go, 1);
}

static void on_go(int signal_number)
{
    (void)signal_number;
    atomic_store(&shared->go, 1);
}

/* Runs one chain; the first process forks and leaves the rest to its children. */
static void chain(pid_t first, uint64_t limit)
{
    while (!atomic_load(&shared->go) && kill(first, 0) == 0)
        (void)usleep(10000);
    for (;;) {
        pid_t pid;

        /* If the first process is killed, the chains end by themselves. */
        if (atomic_load(&shared->stop) || (limit && atomic_load(&shared->n_forks) >= limit) ||
            kill(first, 0) < 0)
            _exit(0);
        pid = fork();
        if (pid > 0)
            _exit(0);
        if (pid < 0)
            (void)usleep(1000); /* no more processes at the moment */
        else
            atomic_fetch_add(&shared->n_forks, 1);
    }
}

static unsigned long number(const char *text)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-') {
        (void)fprintf(stderr, "forker: '%s' is not a number\n", text);
        exit(2);
    }
    return value;
}

typedef struct Options {
    unsigned long n_processes, limit;
    const char *counter_file;
    bool hold;
} Options;

static bool parse_options(int argc, char **argv, Options *ret)
{
    static const struct option options[] = {
        {"processes", required_argument, NULL, 'p'},
        {"counter-file", required_argument, NULL, 'c'},
        {"limit", required_argument, NULL, 'l'},
        {"hold", no_argument, NULL, 'h'},
        {0},
    };
    int c;

    *ret = (Options){.n_processes = 1};
    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (c) {
        case 'p':
            ret->n_processes = number(optarg);
            break;
        case 'c':
            ret->counter_file = optarg;
            break;
        case 'l':
            ret->limit = number(optarg);
            break;
        case 'h':
            ret->hold = true;
            break;
        default:
            return false;
        }
    return true;
}

/* Maps what the processes share, from the counter file if there is one. */
static bool share(const char *counter_file)
{
    int fd = -1;

    if (counter_file) {
        fd = open(counter_file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || ftruncate(fd, sizeof(Shared)) < 0) {
            perror(counter_file);
            return false;
        }
    }
    shared =
        mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return false;
    }
    return true;
}

static void take_signals(void)
{
    struct sigaction stop = {.sa_handler = on_stop}, go = {.sa_handler = on_go};

    /* Orphans of the chains become children of this process, which can therefore wait for the last of them. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Two hundred chains fork faster than one process can wait(): the zombies would use up all PIDs. Ignored
     * children leave none, and wait() then returns when the last one is gone. */
    (void)signal(SIGCHLD, SIG_IGN);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGUSR1, &go, NULL);
}

int main(int argc, char **argv)
{
    pid_t first = getpid();
    Options options;

    if (!parse_options(argc, argv, &options))
        return 2;
    if (!share(options.counter_file))
        return EXIT_FAILURE;
    atomic_store(&shared->go, !options.hold);
    take_signals();

    for (unsigned long i = 0; i < options.n_processes; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            perror("fork");
            atomic_store(&shared->stop, 1);
            break;
        }
        if (pid == 0)
            chain(first, options.limit);
    }

    for (;;)
        if (wait(NULL) < 0 && errno != EINTR)
            return errno == ECHILD ? EXIT_SUCCESS : EXIT_FAILURE;
}
