/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs are independent, so child processes share them. Not threads: a run counts references to the scenario's
 * topology and policies, and those counts are not atomic. Children take the next run from a counter and leave
 * their numbers in shared memory; the result does not depend on which child did which run. All children have
 * ended when a pipe ends that only they write to. */

#include "ctl/verbs/simulate/runs.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ERROR_SIZE    256
#define WORKERS_MAX   256U
#define PROGRESS_MSEC 200
#define RUN_PARTS     1000U /* progress is counted in thousandths of a run */
#define NO_FAILURE    UINT64_MAX

struct SimulateShared {
    atomic_uint_fast64_t next;   /* the next run to take */
    atomic_uint_fast64_t parts;  /* done, in all runs */
    atomic_uint_fast64_t n_done; /* runs */
    atomic_uint_fast64_t failed; /* the first run in time that failed, or NO_FAILURE */
    char message[ERROR_SIZE];
    int64_t values[];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would be one per process");

typedef struct Worker {
    const SimSpec *spec;
    SimulateShared *shared;
    uint64_t parts; /* of the current run, already counted */
} Worker;

static bool on_progress(void *userdata, uint64_t done_usec, uint64_t total_usec)
{
    Worker *w = userdata;
    uint64_t parts = total_usec > 0 ? MIN(done_usec * RUN_PARTS / total_usec, RUN_PARTS) : 0;

    if (parts > w->parts) {
        (void)atomic_fetch_add(&w->shared->parts, parts - w->parts);
        w->parts = parts;
    }
    return atomic_load(&w->shared->failed) == NO_FAILURE;
}

static void fail_run(SimulateShared *s, uint64_t run, int error, const char *message)
{
    uint_fast64_t none = NO_FAILURE;

    if (!atomic_compare_exchange_strong(&s->failed, &none, run))
        return;
    (void)snprintf(s->message, sizeof(s->message), "%s", message ? message : strerror(-error));
}

static void run_one(Worker *w, uint64_t run)
{
    const SimSpec *spec = w->spec;
    SimulateShared *s = w->shared;
    const SimHooks hooks = {.userdata = w, .progress = on_progress};
    size_t row = sim_table_row(spec);
    CLEANUP(sim_result_free_p) SimResult *result = NULL;
    CLEANUP_FREE char *error = NULL;
    int r;

    w->parts = 0;
    r = sim_run(spec, run / spec->n_seeds, run % spec->n_seeds + 1, &hooks, &result, &error);
    if (r < 0) {
        fail_run(s, run, r, error);
        return;
    }
    memcpy(s->values + run * row, result->values, row * sizeof(int64_t));
    (void)atomic_fetch_add(&s->parts, RUN_PARTS - w->parts);
    (void)atomic_fetch_add(&s->n_done, 1);
}

static _Noreturn void work(const SimSpec *spec, SimulateShared *shared, pid_t parent)
{
    Worker worker = {.spec = spec, .shared = shared};
    uint64_t n = (uint64_t)spec->n_variants * spec->n_seeds, run;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    while (atomic_load(&shared->failed) == NO_FAILURE && (run = atomic_fetch_add(&shared->next, 1)) < n)
        run_one(&worker, run);
    _exit(0);
}

static size_t count_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
}

static void show_progress(const SimSpec *spec, SimulateShared *s)
{
    uint64_t n = (uint64_t)spec->n_variants * spec->n_seeds, parts = atomic_load(&s->parts);

    (void)fprintf(stderr, "\r%llu of %llu runs, %llu%%\033[K", (unsigned long long)atomic_load(&s->n_done),
                  (unsigned long long)n, (unsigned long long)(parts * 100 / (n * RUN_PARTS)));
}

/* Waits until no child holds the other end of the pipe. Shows progress on a terminal. */
static void watch(const SimSpec *spec, SimulateShared *shared, int fd)
{
    bool terminal = isatty(STDERR_FILENO);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r;

    do {
        r = poll(&p, 1, terminal ? PROGRESS_MSEC : -1);
        if (terminal)
            show_progress(spec, shared);
    } while (r == 0 || (r < 0 && errno == EINTR));
    if (terminal)
        (void)fprintf(stderr, "\r\033[K");
}

/* Waits for the children to exit. Returns whether all succeeded. */
static bool reap(const pid_t *children, size_t n)
{
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        int status;

        (void)TEMP_FAILURE_RETRY(waitpid(children[i], &status, 0));
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

static CtlExit run_children(const SimSpec *spec, SimulateShared *shared)
{
    uint64_t n_runs = (uint64_t)spec->n_variants * spec->n_seeds;
    size_t wanted = MIN(MIN(count_cpus(), WORKERS_MAX), n_runs), n = 0;
    CLEANUP_CLOSE int fd = -1;
    pid_t children[WORKERS_MAX], self = getpid();
    int pipe_fds[2], r = 0;
    bool good;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot make a pipe: %s", strerror(errno));
    fd = pipe_fds[0];
    while (n < wanted && r == 0) {
        pid_t pid = fork();

        if (pid == 0)
            work(spec, shared, self);
        if (pid < 0)
            r = -errno;
        else
            children[n++] = pid;
    }
    (void)close(pipe_fds[1]);
    if (n > 0)
        watch(spec, shared, fd);
    good = reap(children, n);
    if (n == 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot start a process: %s", strerror(-r));
    if (atomic_load(&shared->failed) != NO_FAILURE) {
        uint64_t run = atomic_load(&shared->failed), seed = run % spec->n_seeds + 1;

        return ctl_fail(CTL_EXIT_FAILURE, "variant %s, seed %llu: %s",
                        spec->variants[run / spec->n_seeds].name, (unsigned long long)seed, shared->message);
    }
    if (!good || atomic_load(&shared->n_done) < n_runs)
        return ctl_fail(CTL_EXIT_FAILURE, "a process that ran the model died");
    return CTL_EXIT_OK;
}

CtlExit simulate_run_all(const SimSpec *spec, SimulateRuns *ret)
{
    SimulateRuns runs = {.table = {.spec = spec, .n_seeds = spec->n_seeds}};
    CtlExit code;

    /* At most 64 variants, 10,000 seeds and 257 rows of some dozen numbers: far from any overflow. */
    runs.bytes =
        sizeof(SimulateShared) + spec->n_variants * spec->n_seeds * sim_table_row(spec) * sizeof(int64_t);
    runs.shared = mmap(NULL, runs.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (runs.shared == MAP_FAILED)
        return ctl_fail_oom();
    atomic_store(&runs.shared->failed, NO_FAILURE);
    runs.table.values = runs.shared->values;

    code = run_children(spec, runs.shared);
    if (code != CTL_EXIT_OK) {
        simulate_runs_done(&runs);
        return code;
    }
    *ret = runs;
    return CTL_EXIT_OK;
}

void simulate_runs_done(SimulateRuns *runs)
{
    if (runs->shared)
        (void)munmap(runs->shared, runs->bytes);
    *runs = (SimulateRuns){0};
}
