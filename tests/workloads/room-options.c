/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The arguments that all measured workloads have in common. */

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"

/* Upper limits. A larger value is a typing error. */
#define SCALE_MAX   1e6
#define SECONDS_MAX 1e6
#define HZ_MAX      100.0

enum {
    OPTION_EXTRA = 'X'
};

const char *const room_bind_names[BIND_MAX] = {
    [BIND_NONE] = "none", [BIND_RUN] = "run", [BIND_START] = "start", [BIND_LEND] = "lend"};

static const char *name;

__attribute__((format(printf, 1, 2))) static _Noreturn void refuse(const char *format, ...)
{
    va_list ap;

    (void)fprintf(stderr, "%s: ", name);
    va_start(ap, format);
    (void)vfprintf(stderr, format, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || value < min || value > max)
        refuse("--%s: '%s' is not a number from %llu to %llu", option, text, (unsigned long long)min,
               (unsigned long long)max);
    return value;
}

/* A number above 0. */
static double fraction(const char *option, const char *text, double max)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno || end == text || *end || !isfinite(value) || value <= 0 || value > max)
        refuse("--%s: '%s' is not a number above 0, at most %g", option, text, max);
    return value;
}

static size_t size(const char *option, const char *text)
{
    char *end;
    unsigned long long value;
    unsigned shift = 0;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (*end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (errno || text[0] < '0' || text[0] > '9' || end[shift != 0] || value == 0 ||
        value > (SIZE_MAX / 4) >> shift)
        refuse("--%s: '%s' is not a size: expected bytes, or a number with K, M or G", option, text);
    return (size_t)value << shift;
}

static void placement(const char *text, RoomOptions *options)
{
    options->placement_text = text;
    if (strcmp(text, "main") == 0)
        options->placement = PLACEMENT_MAIN;
    else if (strcmp(text, "interleave") == 0)
        options->placement = PLACEMENT_INTERLEAVE;
    else if (strcmp(text, "local") == 0)
        options->placement = PLACEMENT_LOCAL;
    else if (strcmp(text, "process") == 0)
        options->placement = PLACEMENT_PROCESS;
    else if (strncmp(text, "node:", 5) == 0) {
        options->placement = PLACEMENT_NODE;
        options->placement_node = (unsigned)number("placement", text + 5, 0, ROOM_NODES_MAX - 1);
        if (!place_has_memory(options->placement_node))
            refuse("--placement: node %u has no memory this program may use", options->placement_node);
    } else
        refuse("--placement: '%s' is none of main, interleave, local, process, node:N", text);
}

static bool is_random(const char *text)
{
    if (strcmp(text, "random") != 0 && strcmp(text, "sequential") != 0)
        refuse("--order: '%s' is none of sequential, random", text);
    return text[0] == 'r';
}

static BindKind bind_kind(const WorkShape *shape, const char *text)
{
    if (!text || strcmp(text, "run") == 0)
        return BIND_RUN;
    if (strcmp(text, "start") == 0)
        return BIND_START;
    if (shape->lends && strcmp(text, "lend") == 0)
        return BIND_LEND;
    refuse("--bind: '%s' is none of run, start%s", text, shape->lends ? ", lend" : "");
}

/* The CPUs the program may use, divided among the processes. */
static unsigned default_threads(const WorkShape *shape, unsigned processes)
{
    cpu_set_t cpus;
    unsigned n = 1;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        n = (unsigned)CPU_COUNT(&cpus) / processes;
    if (shape->threads_max && n > shape->threads_max)
        n = shape->threads_max;
    return n ? n : 1;
}

static void usage(const WorkShape *shape)
{
    (void)printf("usage: %s [OPTION..]\n%s\n\n", shape->name, shape->about);
    (void)printf("  --processes=N     processes (%u)\n", shape->processes);
    if (shape->threads)
        (void)printf("  --threads=N       threads of each process (%u)\n", shape->threads);
    else
        (void)printf("  --threads=N       threads of each process (the CPUs shared out)\n");
    if (shape->seconds > 0) {
        (void)printf("  --seconds=S       work that long and count (%g)\n", shape->seconds);
        (void)printf("  --scale=X         the same, times the default\n");
    } else {
        (void)printf("  --scale=X         amount of work, times the default\n");
        (void)printf("  --seconds=S       work that long and count, instead of a fixed amount of work\n");
    }
    if (shape->layout != WORK_NONE) {
        (void)printf("  --bytes=SIZE      %s (%zuM)\n", shape->bytes_of, shape->bytes >> 20);
        (void)printf(
            "  --placement=WHERE where memory starts: main, interleave, local, process or node:N (main)\n");
        (void)printf(
            "  --ballast=SIZE    more memory of each process that is only touched at the start (none)\n");
        (void)printf("  --sample[=HZ]     watch where the pages are, so often per second (5)\n");
    }
    if (shape->orders)
        (void)printf("  --order=HOW       lines of a block or page: sequential, random (sequential)\n");
    (void)printf("  --bind[=HOW]      bind each thread to a node's CPUs: run, start%s (run)\n",
                 shape->lends ? ", lend" : "");
    (void)printf("  --window=N        first number of the marks for a priced guest, or none (0)\n");
    (void)printf("  --window-after=S  so long after the start comes the first mark (0)\n");
    if (shape->extra.name)
        (void)printf("  --%s%s  %s\n", shape->extra.name, shape->extra.flag ? "" : "=N", shape->extra.help);
}

static void read_one(const WorkShape *shape, int c, RoomOptions *options)
{
    switch (c) {
    case 'p':
        options->processes = (unsigned)number("processes", optarg, 1, ROOM_PROCESSES_MAX);
        break;
    case 't':
        options->threads = (unsigned)number("threads", optarg, 1,
                                            shape->threads_max ? shape->threads_max : ROOM_THREADS_MAX);
        break;
    case 'b':
        options->bytes = size("bytes", optarg);
        break;
    case 's':
        options->scale = fraction("scale", optarg, SCALE_MAX);
        break;
    case 'S':
        options->seconds_nsec = (uint64_t)(fraction("seconds", optarg, SECONDS_MAX) * 1e9);
        break;
    case 'P':
        placement(optarg, options);
        break;
    case 'O':
        options->random_order = is_random(optarg);
        break;
    case 'B':
        options->bind = bind_kind(shape, optarg);
        break;
    case 'A':
        options->ballast_bytes = size("ballast", optarg);
        break;
    case 'H':
        options->sample_hz = optarg ? fraction("sample", optarg, HZ_MAX) : 5;
        break;
    case 'w':
        options->window =
            strcmp(optarg, "none") == 0 ? -1 : (int)number("window", optarg, 0, ROOM_WINDOW_MAX);
        break;
    case 'W':
        options->window_after_nsec = (uint64_t)(fraction("window-after", optarg, SECONDS_MAX) * 1e9);
        break;
    case OPTION_EXTRA:
        options->extra = optarg ? number(shape->extra.name, optarg, shape->extra.min, shape->extra.max) : 1;
        break;
    case 'h':
        usage(shape);
        exit(EXIT_SUCCESS);
    default:
        exit(2); /* getopt has said why */
    }
}

/* Every thread needs at least a block of every region. */
static void check_sizes(const WorkShape *shape, const RoomOptions *options)
{
    size_t n = shape->n_regions;

    if (shape->threads_step && options->threads % shape->threads_step)
        refuse("--threads: %u is not a multiple of %u", options->threads, shape->threads_step);
    if (shape->layout == WORK_NONE)
        return;
    n *= shape->layout == WORK_PRIVATE ? 1 : options->threads;
    if (options->bytes / n < WORK_BLOCK_BYTES)
        refuse("--bytes: %zu is too small: expected at least %zuK for %u threads", options->bytes,
               n * (WORK_BLOCK_BYTES >> 10), options->threads);
}

/* Fills a table for getopt_long() with the options this workload has. */
static void make_table(const WorkShape *shape, struct option *table)
{
    static const struct option all[] = {
        {"processes", required_argument, NULL, 'p'},    {"threads", required_argument, NULL, 't'},
        {"scale", required_argument, NULL, 's'},        {"seconds", required_argument, NULL, 'S'},
        {"bind", optional_argument, NULL, 'B'},         {"window", required_argument, NULL, 'w'},
        {"window-after", required_argument, NULL, 'W'}, {"help", no_argument, NULL, 'h'},
    };
    static const struct option with_memory[] = {
        {"bytes", required_argument, NULL, 'b'},
        {"placement", required_argument, NULL, 'P'},
        {"ballast", required_argument, NULL, 'A'},
        {"sample", optional_argument, NULL, 'H'},
    };

    memcpy(table, all, sizeof(all));
    table += sizeof(all) / sizeof(all[0]);
    if (shape->layout != WORK_NONE) {
        memcpy(table, with_memory, sizeof(with_memory));
        table += sizeof(with_memory) / sizeof(with_memory[0]);
    }
    if (shape->orders)
        *table++ = (struct option){"order", required_argument, NULL, 'O'};
    if (shape->extra.name)
        *table++ = (struct option){shape->extra.name, !shape->extra.flag, NULL, OPTION_EXTRA};
    *table = (struct option){0};
}

void room_options(const WorkShape *shape, int argc, char **argv, RoomOptions *ret)
{
    struct option table[16];
    RoomOptions read = {
        .processes = shape->processes,
        .threads = shape->threads,
        .bytes = shape->bytes,
        .placement_text = shape->layout == WORK_NONE ? "none" : "main",
        .extra = shape->extra.value,
    };
    int c;

    name = shape->name;
    make_table(shape, table);
    while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0)
        read_one(shape, c, &read);
    if (optind < argc)
        refuse("'%s': expected options only", argv[optind]);
    if (read.scale > 0 && read.seconds_nsec)
        refuse("--scale and --seconds: expected one of them");
    if (read.scale == 0)
        read.scale = 1;
    if (shape->seconds > 0 && !read.seconds_nsec)
        read.seconds_nsec = (uint64_t)(shape->seconds * read.scale * 1e9);
    if (!read.threads)
        read.threads = default_threads(shape, read.processes);
    check_sizes(shape, &read);
    *ret = read;
}
