/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* gnuplot draws the picture, from commands and data through a pipe: a row of panels per variant, a panel per node, and
 * in it the CPUs that each workload used, stacked. The ticks are those of the first seed, which is run again: the same
 * seed gives the same run, and keeping the ticks of all runs would take far more memory than their results.
 *
 * The output of gnuplot is collected in memory and written at the end, so that a failed picture destroys no other. */

#include "ctl/verbs/simulate/runs.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PANELS_MAX   400U
#define PANEL_WIDTH  260U
#define PANEL_HEIGHT 190U
#define POINTS_MAX   400U /* more than a panel has pixels */

/* Mean CPUs used by the first `upto` + 1 workloads in `n` ticks from `tick` on. */
static double stack(const SimResult *result, size_t tick, size_t n, uint32_t node, size_t upto)
{
    double sum = 0;

    for (size_t i = tick; i < tick + n; i++) {
        const uint32_t *used = sim_result_used(result, i, node);

        for (size_t w = 0; w <= upto; w++)
            sum += used[w];
    }
    return sum / (double)n / 1000;
}

/* One data block: time, then a column per workload. */
static void write_data(FILE *out, const SimResult *result, uint32_t variant, uint32_t node)
{
    size_t step = (result->n_ticks + POINTS_MAX - 1) / POINTS_MAX;

    (void)fprintf(out, "$v%un%u << EOD\n", variant, node);
    for (size_t tick = 0; tick < result->n_ticks; tick += step) {
        size_t n = MIN(step, result->n_ticks - tick);

        (void)fprintf(out, "%.3f", (double)result->ticks[tick + n - 1].usec / 1e6);
        for (size_t w = 0; w < result->n_workloads; w++)
            (void)fprintf(out, " %.3f", stack(result, tick, n, node, w));
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "EOD\n");
}

/* The tallest stack is drawn first and covered by the lower ones. Names consist only of letters, digits and .-_@:+. */
static void write_panel(FILE *out, const SimSpec *spec, uint32_t variant, uint32_t node, bool legend)
{
    uint32_t n_cpus = MAX(spec->topology->nodes[node].n_cpus, 1);

    (void)fprintf(out, "set title '%s, node %u'\nset yrange [0:%u]\nset ytics %u\nset key %s\nplot ",
                  spec->variants[variant].name, spec->topology->nodes[node].os_index, n_cpus,
                  (n_cpus + 3) / 4, legend ? "at screen 0.99,0.99 right top vertical maxrows 1" : "off");
    for (size_t w = spec->n_workloads; w-- > 0;)
        (void)fprintf(out, "$v%un%u using 1:%zu with filledcurves y1=0 linetype %zu title '%s'%s", variant,
                      node, w + 2, w + 1, spec->workloads[w].name, w > 0 ? ", " : "\n");
}

static CtlExit write_variants(FILE *out, const SimSpec *spec)
{
    for (size_t v = 0; v < spec->n_variants; v++) {
        CLEANUP(sim_result_free_p) SimResult *result = NULL;
        CLEANUP_FREE char *error = NULL;
        int r = sim_run(spec, v, 1, NULL, &result, &error);

        if (r < 0)
            return ctl_fail(CTL_EXIT_FAILURE, "variant %s, seed 1: %s", spec->variants[v].name,
                            error ? error : strerror(-r));
        for (uint32_t node = 0; node < result->n_nodes; node++)
            write_data(out, result, (uint32_t)v, node);
    }
    return CTL_EXIT_OK;
}

static void write_head(FILE *out, const SimSpec *spec)
{
    unsigned columns = spec->topology->n_nodes, rows = (unsigned)spec->n_variants;

    (void)fprintf(
        out,
        "set terminal svg size %u,%u noenhanced background rgb 'white'\n"
        "set xrange [0:%.3f]\nset xlabel 'seconds'\nset ylabel 'CPUs used'\nset style fill solid 1 noborder\n",
        columns * PANEL_WIDTH + 100, rows * PANEL_HEIGHT + 60, (double)spec->duration_usec / 1e6);
}

static CtlExit write_script(FILE *out, const SimSpec *spec)
{
    uint32_t n_nodes = spec->topology->n_nodes;
    CtlExit code;

    write_head(out, spec);
    code = write_variants(out, spec);
    if (code != CTL_EXIT_OK)
        return code;
    (void)fprintf(out, "set multiplot layout %zu,%u title 'CPUs in use, seed 1'\n", spec->n_variants,
                  n_nodes);
    for (uint32_t v = 0; v < spec->n_variants; v++)
        for (uint32_t node = 0; node < n_nodes; node++)
            write_panel(out, spec, v, node, v == 0 && node == n_nodes - 1);
    (void)fprintf(out, "unset multiplot\n");
    return CTL_EXIT_OK;
}

/* Starts gnuplot with its output to `output` and its input from a pipe, whose write end is returned in *ret_fd. */
static int spawn_gnuplot(int output, int *ret_fd, pid_t *ret_pid)
{
    static char name[] = "gnuplot", dash[] = "-";
    char *const argv[] = {name, dash, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    r = posix_spawn_file_actions_init(&actions);
    if (r == 0) {
        r = posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
        if (r == 0)
            r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (r == 0)
            r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(fds[0]);
    if (r == 0)
        *ret_fd = fds[1];
    else
        (void)close(fds[1]);
    return -r;
}

typedef struct Picture {
    const char *data;
    size_t size;
} Picture;

static void write_picture(FILE *out, void *userdata)
{
    const Picture *picture = userdata;

    (void)fwrite(picture->data, 1, picture->size, out);
}

/* Copies the picture from memory to the file. */
static CtlExit save(int from, const char *path)
{
    off_t size = lseek(from, 0, SEEK_END);
    char *data = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, from, 0) : MAP_FAILED;
    CtlExit code;

    if (data == MAP_FAILED)
        return ctl_fail(CTL_EXIT_FAILURE, "gnuplot drew nothing");
    code = ctl_replace_file(path, write_picture, &(Picture){.data = data, .size = (size_t)size});
    (void)munmap(data, (size_t)size);
    return code;
}

CtlExit simulate_plot(const SimSpec *spec, const char *path)
{
    CLEANUP_CLOSE int output = memfd_create("plot", MFD_CLOEXEC);
    CtlExit code;
    FILE *out;
    pid_t pid = 0;
    int fd = -1, r, status = 0;

    if (spec->n_variants * spec->topology->n_nodes > PANELS_MAX)
        return ctl_fail(CTL_EXIT_FAILURE, "--plot= draws at most %u panels, variants times nodes",
                        PANELS_MAX);
    r = output < 0 ? -errno : spawn_gnuplot(output, &fd, &pid);
    if (r == -ENOENT)
        return ctl_fail(CTL_EXIT_FAILURE, "--plot= needs gnuplot, which is not installed");
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot start gnuplot: %s", strerror(-r));
    out = fdopen(fd, "w");
    code = out ? write_script(out, spec) : ctl_fail_oom();
    if (out)
        (void)fclose(out); /* what gnuplot did not read shows in its status */
    else
        (void)close(fd);
    (void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    if (code != CTL_EXIT_OK)
        return code;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return ctl_fail(CTL_EXIT_FAILURE, "gnuplot failed");
    return save(output, path);
}
