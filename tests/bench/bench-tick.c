/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the fast tick costs per thread, compared with a bare pread() loop over the same descriptors, and what
 * a discovery costs, compared with bare listings of /proc and of the process's threads. The threads belong to
 * a child process. Each runs in short bursts, so that there is something new to read of it.
 *
 * Each run measures both in turn, in alternating order; the medians of all runs are printed. Only CPU time of
 * this thread counts, so other load disturbs little. The bursts may take a quarter of the CPUs this program
 * may use, at the lowest priority: ten thousand threads that want more than there is would keep this thread
 * from its CPU for minutes. */

#include "base/root.h"
#include "base/time.h"
#include "base/util.h"
#include "kernel/taskstat.h"
#include "number.h"
#include "probe/probe-internal.h"
#include "topo/topology.h"
#include "world/world.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define TICK_MSEC      100
#define BURST_MAX_NSEC 75000U /* 10,000 of them every 250 ms keep three CPUs busy, where there are twelve */
#define PERIOD_MS      250U   /* between bursts, varied by a fifth so that they do not coincide */
#define LOAD_DIVISOR   4U     /* share of all CPUs for bursts: waking up takes about as much again */
#define NICE_OF_BURSTS 19
#define NICE_OF_READER (-20) /* where it is allowed */
#define STACK_BYTES    65536U
#define SETTLE_SAMPLES 4U

static unsigned arg_threads = 10000;
static unsigned arg_runs = 21;
static bool arg_json = false;

/* The workload */

typedef struct Bursts {
    pthread_mutex_t gate; /* closed until all threads have been created */
    uint64_t nsec;        /* length of a burst */
} Bursts;

static uint64_t burst_nsec(void)
{
    cpu_set_t set;
    uint64_t n_cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;

    return MIN(n_cpus * PERIOD_MS * (NSEC_PER_USEC * 1000) / LOAD_DIVISOR / arg_threads, BURST_MAX_NSEC);
}

static void *burst_forever(void *userdata)
{
    Bursts *bursts = userdata;
    unsigned seed = (unsigned)gettid() * 2654435761U;

    (void)pthread_mutex_lock(&bursts->gate);
    (void)pthread_mutex_unlock(&bursts->gate);
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE_OF_BURSTS);
    for (;;) {
        uint64_t end = time_thread_cpu_nsec() + bursts->nsec;
        unsigned spread;

        while (time_thread_cpu_nsec() < end)
            ;
        seed = seed * 1103515245U + 12345U;
        spread = (seed >> 16) % (PERIOD_MS * 2 / 5);
        (void)poll(NULL, 0, (int)(PERIOD_MS * 4 / 5 + spread));
    }
    return NULL;
}

/* Never returns. Writes to `ready_fd` when all threads have been created. */
static void run_child(int ready_fd)
{
    Bursts bursts = {.gate = PTHREAD_MUTEX_INITIALIZER, .nsec = burst_nsec()};
    pthread_attr_t attr;
    pthread_t thread;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)pthread_mutex_lock(&bursts.gate);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (unsigned i = 1; i < arg_threads; i++)
        if (pthread_create(&thread, &attr, burst_forever, &bursts) != 0)
            _exit(EXIT_FAILURE);
    (void)pthread_mutex_unlock(&bursts.gate);
    if (write(ready_fd, "", 1) != 1)
        _exit(EXIT_FAILURE);
    burst_forever(&bursts);
}

static pid_t start_child(void)
{
    int fds[2];
    char byte;
    pid_t pid;

    if (pipe(fds) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_child(fds[1]);
    (void)close(fds[1]);
    if (pid > 0 && read(fds[0], &byte, 1) != 1) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        pid = -EAGAIN;
    }
    (void)close(fds[0]);
    return pid;
}

static void stop_child(pid_t *pid)
{
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
}

/* Only the child is taken. */

static ProbeDecision decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy)
{
    *ret_policy = 0;
    return subject->pid == *(pid_t *)userdata ? PROBE_DECISION_TAKE : PROBE_DECISION_IGNORE;
}

static int assign(void *userdata, World *world, Process *process, size_t policy)
{
    int group;

    process->workload.i = 0;
    if (process->group.i >= 0)
        return 0;
    group = world_add_group(world, process->workload, "");
    if (group < 0)
        return group;
    process->group.i = group;
    return 0;
}

/* Measuring */

typedef struct Series {
    double *value, *baseline, *ratio;
    unsigned n;
} Series;

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int series_init(Series *series)
{
    series->value = calloc(arg_runs, sizeof(double));
    series->baseline = calloc(arg_runs, sizeof(double));
    series->ratio = calloc(arg_runs, sizeof(double));
    return series->value && series->baseline && series->ratio ? 0 : -ENOMEM;
}

static void series_done(Series *series)
{
    free(series->value);
    free(series->baseline);
    free(series->ratio);
}

static void series_add(Series *series, double value, double baseline)
{
    series->value[series->n] = value;
    series->baseline[series->n] = baseline;
    series->ratio[series->n++] = value / baseline;
}

static void series_print(const Series *series, const char *name, const char *metric, const char *unit)
{
    double value = median(series->value, series->n);
    double baseline = median(series->baseline, series->n);
    double ratio = median(series->ratio, series->n);

    if (arg_json)
        (void)printf("{\"bench\":\"tick\",\"case\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.1f,"
                     "\"baseline\":%.1f,\"ratio\":%.3f,\"runs\":%u}\n",
                     name, metric, unit, value, baseline, ratio, series->n);
    else
        (void)printf("%-10s %-18s %10.1f %10.1f  %-4s %6.3f %5u\n", name, metric, value, baseline, unit,
                     ratio, series->n);
}

static uint64_t bare_preads(const Probe *probe, size_t *ret_n)
{
    uint64_t start = time_thread_cpu_nsec();
    char text[TASKSTAT_SCHEDSTAT_SIZE];
    size_t n = 0;

    for (size_t i = 0; i < probe->readers.n_slots; i++)
        if (probe->readers.slots[i].fd >= 0 && pread(probe->readers.slots[i].fd, text, sizeof(text), 0) > 0)
            n++;
    *ret_n = n;
    return time_thread_cpu_nsec() - start;
}

static int timed_sample(Probe *probe, World *world, uint64_t *ret_nsec, size_t *ret_n)
{
    uint64_t start = time_thread_cpu_nsec();
    int r = probe_sample(probe, world, time_now_usec());

    *ret_nsec = time_thread_cpu_nsec() - start;
    *ret_n = world->n_tasks - probe_statistics(probe)->n_quiet;
    return r;
}

/* `read`: share of all threads that were read. The others sleep. */
static int measure_sample(Probe *probe, World *world, Series *series, Series *read)
{
    for (unsigned i = 0; i < arg_runs + SETTLE_SAMPLES; i++) {
        uint64_t bare = 0, sample = 0;
        size_t n_bare = 0, n_sampled = 0;
        int r;

        (void)poll(NULL, 0, TICK_MSEC);
        if (i % 2)
            bare = bare_preads(probe, &n_bare);
        r = timed_sample(probe, world, &sample, &n_sampled);
        if (r < 0)
            return r;
        if (i % 2 == 0)
            bare = bare_preads(probe, &n_bare);
        if (n_bare < arg_threads)
            return -EMFILE;
        if (n_sampled == 0)
            return -EBUSY;
        if (i < SETTLE_SAMPLES)
            continue;
        series_add(series, (double)sample / (double)n_sampled, (double)bare / (double)n_bare);
        series_add(read, (double)n_sampled, (double)n_bare);
    }
    return 0;
}

static int list_bare(int root_fd, const char *path)
{
    int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        return -errno;
    while (readdir(dir))
        ;
    (void)closedir(dir);
    return 0;
}

/* Discovers all threads of a large process, which the daemon reads between ticks. */
static int discover_all(Probe *probe, World *world)
{
    int r = probe_discover(probe, world, time_now_usec());

    while (r == 0 && probe_unfinished(probe))
        r = probe_go_on(probe, world);
    return r;
}

static int measure_discover(Probe *probe, World *world, int root_fd, pid_t child, Series *series)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%d/task", (int)child);
    for (unsigned i = 0; i < arg_runs; i++) {
        uint64_t start = time_thread_cpu_nsec(), middle;
        int r = list_bare(root_fd, "proc");

        if (r == 0)
            r = list_bare(root_fd, path);
        if (r < 0)
            return r;
        middle = time_thread_cpu_nsec();
        r = discover_all(probe, world);
        if (r < 0)
            return r;
        series_add(series, (double)(time_thread_cpu_nsec() - middle) / 1000, (double)(middle - start) / 1000);
    }
    return 0;
}

static int measure(Probe *probe, World *world, int root_fd, pid_t child)
{
    CLEANUP(series_done) Series sample = {0};
    CLEANUP(series_done) Series read = {0};
    CLEANUP(series_done) Series discover = {0};
    int r = series_init(&sample);

    if (r == 0)
        r = series_init(&read);
    if (r == 0)
        r = series_init(&discover);
    if (r == 0)
        r = measure_sample(probe, world, &sample, &read);
    if (r == 0)
        r = measure_discover(probe, world, root_fd, child, &discover);
    if (r < 0)
        return r;

    if (!arg_json)
        (void)printf("%-10s %-18s %10s %10s  %-4s %6s %5s\n", "case", "metric", "value", "baseline", "unit",
                     "ratio", "runs");
    series_print(&sample, "probe", "cost_per_thread", "ns");
    series_print(&read, "probe", "threads_read", "");
    series_print(&discover, "discover", "cost_per_pass", "us");
    return 0;
}

static int run(pid_t child)
{
    CLEANUP_CLOSE int root_fd = root_open("/");
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP(probe_free_p) Probe *probe = NULL;
    CLEANUP(world_free_p) World *world = NULL;
    CLEANUP_FREE char *error = NULL;
    ProbeOptions options = {.root_fd = root_fd, .live = true, .self = getpid(), .max_tasks = UINT32_MAX};
    int r = topology_load(&(TopologyOptions){0}, &topology, &error);

    if (r == 0)
        r = world_new(topology, &world);
    if (r == 0)
        r = world_add_workload(world, "bench", 0);
    if (r >= 0)
        r = probe_new(&options, &(ProbeCallbacks){.decide = decide, .assign = assign, .userdata = &child},
                      &probe);
    if (r == 0)
        r = discover_all(probe, world);
    if (r == 0 && world->n_tasks < arg_threads)
        r = -ESRCH;
    if (r < 0)
        return r;
    return measure(probe, world, root_fd, child);
}

static int parse_arguments(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (c == 'j')
            arg_json = true;
        else if (c == '?' || !(c == 't' ? number_between(optarg, 1, 1000000, &arg_threads)
                                        : number_between(optarg, 1, 100000, &arg_runs)))
            return -EINVAL;
    return optind == argc ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    CLEANUP(stop_child) pid_t child = 0;
    struct rlimit limit;
    int r;

    if (parse_arguments(argc, argv) < 0) {
        (void)fprintf(stderr, "usage: %s [--threads=N] [--runs=N] [--json]\n", argv[0]);
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }

    child = start_child();
    (void)setpriority(PRIO_PROCESS, 0, NICE_OF_READER);
    r = child < 0 ? child : run(child);
    if (r < 0) {
        (void)fprintf(stderr, "bench tick: %s (%u threads, descriptor limit %ju)\n", strerror(-r),
                      arg_threads, (uintmax_t)limit.rlim_cur);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
