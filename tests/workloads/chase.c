/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pointer chase: nanoseconds per dependent load for each pair of a CPU's node and a memory node, as one line of
 * JSON.
 *
 * A buffer is bound to each node with memory in turn. Its lines are linked to one ring, which a thread on the first
 * allowed CPU of each node follows. Each load waits for the one before, so the program measures latency. The ring goes
 * through all lines of a page in random order before it enters another, random page, which keeps prefetchers and TLB
 * refills, of the emulator or of the machine, out of the result. The first lap is not timed, because the cache of the
 * CPU that initialised the buffer still holds some lines. The others are timed in pieces shorter than the time between
 * two ticks, and the median piece is printed: ticks, and other users of the CPU, disturb the others.
 *
 * Nodes are found in /sys/devices/system/node, and memory is bound by direct system calls: nothing but libc is needed.
 * The location of the pages is checked afterwards, and a buffer on another node ends the program. */

#include "timing.h"
#include "window.h"

#include <errno.h>
#include <getopt.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_MAX   64
#define LAPS_MAX    100
#define LINE_BYTES  64
#define PIECE_LINES 2048UL /* less than half of the 4 ms between two ticks, even where a line takes 800 ns */

static unsigned long arg_kib =
    8192; /* eight times the LLC of the cost model: no line lasts until the next lap */
static unsigned long arg_laps = 5;
static bool arg_charge = false;

typedef struct Line {
    struct Line *next;
    char padding[LINE_BYTES - sizeof(struct Line *)];
} Line;

typedef struct Nodes {
    int cpu[NODES_MAX]; /* -1: none we may use */
    bool exists[NODES_MAX];
    bool has_memory[NODES_MAX];
} Nodes;

static void die(const char *what)
{
    fprintf(stderr, "chase: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* xorshift64: the same ring in every run. */
static uint64_t random_below(uint64_t n)
{
    static uint64_t state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = random_below(i), t = order[i - 1];

        order[i - 1] = order[j];
        order[j] = t;
    }
}

/*
 * The machine
 */

/* The first number of a list file such as "0-3,8"; -1 when it is empty or missing. */
static int first_in_list(const char *path)
{
    FILE *f = fopen(path, "re");
    int n = -1;

    if (!f)
        return -1;
    if (fscanf(f, "%d", &n) != 1)
        n = -1;
    (void)fclose(f);
    return n;
}

/* Sets `set[n]` for each node n that a list file names. */
static void read_node_list(const char *path, bool *set)
{
    FILE *f = fopen(path, "re");
    int first, last;

    if (!f)
        die(path);
    while (fscanf(f, "%d", &first) == 1) {
        last = first;
        if (fscanf(f, "-%d", &last) != 1)
            last = first;
        for (int n = first; n <= last && n < NODES_MAX; n++)
            set[n] = true;
        if (fgetc(f) != ',')
            break;
    }
    (void)fclose(f);
}

static void read_nodes(Nodes *nodes)
{
    char path[80];
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        die("sched_getaffinity");
    read_node_list("/sys/devices/system/node/online", nodes->exists);
    read_node_list("/sys/devices/system/node/has_memory", nodes->has_memory);
    for (int n = 0; n < NODES_MAX; n++) {
        (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", n);
        nodes->cpu[n] = nodes->exists[n] ? first_in_list(path) : -1;
        if (nodes->cpu[n] >= CPU_SETSIZE || (nodes->cpu[n] >= 0 && !CPU_ISSET(nodes->cpu[n], &allowed)))
            nodes->cpu[n] = -1;
    }
}

/*
 * The ring
 */

/* Ends the program unless all pages of the buffer are on the node. */
static void check_location(char *buffer, size_t bytes, int node)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t at = 0; at < bytes; at += page) {
        void *address = buffer + at;
        int status = -1;

        if (syscall(SYS_move_pages, 0, 1UL, &address, NULL, &status, 0) < 0)
            die("move_pages");
        if (status != node) {
            fprintf(stderr, "chase: memory bound to node %d is on node %d\n", node, status);
            exit(EXIT_FAILURE);
        }
    }
}

static Line *new_buffer(size_t bytes, int node)
{
    unsigned long mask[NODES_MAX / (8 * sizeof(unsigned long)) + 1] = {0};
    char *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (buffer == MAP_FAILED)
        die("mmap");
    mask[(size_t)node / (8 * sizeof(mask[0]))] |= 1UL << ((size_t)node % (8 * sizeof(mask[0])));
    if (syscall(SYS_mbind, buffer, bytes, MPOL_BIND, mask, 8 * sizeof(mask), 0) < 0)
        die("mbind");
    memset(buffer, 0, bytes);
    check_location(buffer, bytes, node);
    return (Line *)(void *)buffer;
}

static void link_ring(Line *lines, size_t bytes)
{
    size_t per_page = (size_t)sysconf(_SC_PAGESIZE) / LINE_BYTES;
    size_t n_pages = bytes / LINE_BYTES / per_page;
    size_t *pages = calloc(n_pages, sizeof(*pages)), *in_page = calloc(per_page, sizeof(*in_page));
    Line *last = NULL, *first = NULL;

    if (!pages || !in_page)
        die("calloc");
    shuffle(pages, n_pages);
    for (size_t p = 0; p < n_pages; p++) {
        shuffle(in_page, per_page);
        for (size_t i = 0; i < per_page; i++) {
            Line *line = &lines[pages[p] * per_page + in_page[i]];

            if (last)
                last->next = line;
            else
                first = line;
            last = line;
        }
    }
    last->next = first;
    free(pages);
    free(in_page);
}

/* Follows the ring for `n` lines from `*line`, which advances. Returns the nanoseconds per line. */
static double follow_nsec(Line **line, size_t n)
{
    Line *at = *line;
    uint64_t begin = timing_now_nsec();

    for (size_t i = 0; i < n; i++)
        at = at->next;
    __asm__ volatile("" : "+r"(at)); /* otherwise the loop has no effect and is removed */
    *line = at;
    return (double)(timing_now_nsec() - begin) / (double)n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_nsec(Line *line, size_t n)
{
    size_t n_pieces = arg_laps * n / PIECE_LINES;
    double *pieces = calloc(n_pieces, sizeof(*pieces)), median;

    if (!pieces)
        die("calloc");
    (void)follow_nsec(&line, n);
    for (size_t i = 0; i < n_pieces; i++)
        pieces[i] = follow_nsec(&line, PIECE_LINES);
    qsort(pieces, n_pieces, sizeof(pieces[0]), compare);
    median = pieces[n_pieces / 2];
    free(pieces);
    return median;
}

static void chase_node(const Nodes *nodes, int memory, bool *first)
{
    size_t bytes = arg_kib * 1024;
    Line *lines = new_buffer(bytes, memory);

    link_ring(lines, bytes);
    if (arg_charge)
        window_on();
    for (int n = 0; n < NODES_MAX; n++) {
        if (nodes->cpu[n] < 0)
            continue;
        if (timing_run_on(nodes->cpu[n]) < 0)
            die("sched_setaffinity");
        printf("%s{\"cpu_node\":%d,\"memory_node\":%d,\"nsec\":%.1f}", *first ? "" : ",", n, memory,
               median_nsec(lines, bytes / LINE_BYTES));
        *first = false;
    }
    if (arg_charge)
        window_off();
    (void)munmap(lines, bytes);
}

static void usage(FILE *to)
{
    fputs("usage: chase [--kib N] [--laps N] [--charge]\n"
          "  --kib N    size of each buffer, a multiple of 1024 (default 8192)\n"
          "  --laps N   timed laps per pair (default 5, at most 100)\n"
          "  --charge   have the cost plugin charge for the laps only\n",
          to);
}

static unsigned long number(const char *text, unsigned long min, unsigned long max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || n < min || n > max) {
        fprintf(stderr, "chase: '%s': expected a number from %lu to %lu\n", text, min, max);
        exit(2);
    }
    return n;
}

static void parse_arguments(int argc, char **argv)
{
    static const struct option options[] = {
        {"kib", required_argument, NULL, 'k'},
        {"laps", required_argument, NULL, 'l'},
        {"charge", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'k') {
            arg_kib = number(optarg, 1024, 1UL << 22);
        } else if (c == 'l') {
            arg_laps = number(optarg, 1, LAPS_MAX);
        } else if (c == 'c') {
            arg_charge = true;
        } else {
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? EXIT_SUCCESS : 2);
        }
    }
    if (optind < argc || arg_kib * 1024 % (PIECE_LINES * LINE_BYTES) != 0) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    Nodes nodes = {0};
    bool first = true;

    parse_arguments(argc, argv);
    read_nodes(&nodes);
    printf("{\"workload\":\"chase\",\"kib\":%lu,\"laps\":%lu,\"pairs\":[", arg_kib, arg_laps);
    for (int n = 0; n < NODES_MAX; n++) {
        if (nodes.has_memory[n])
            chase_node(&nodes, n, &first);
    }
    puts("]}");
    return EXIT_SUCCESS;
}
