/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes a Topology: opens the source, has hwloc read it, imports it, splits it for a rehearsal, computes the domains.
 *
 * hwloc is told not to bind this thread while it reads the machine, because observing makes no changing system call
 * (I11). Its x86 component would otherwise visit every CPU in turn. Devices and CPU kinds are not used and not read.
 * hwloc's own error messages stay off unless the user asks for them with HWLOC_HIDE_ERRORS=0 or HWLOC_XML_VERBOSE=1. A
 * library must not call setenv(), which races with getenv() in other threads. */

#include "topo/build.h"
#include "topo/dmi.h"

#include "base/human.h"
#include "base/parse.h"
#include "base/root.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* An XML export of a 2,048-CPU machine with all its caches has 2 MB. */
#define XML_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* CPU time to load a file; a machine of 2,048 CPUs takes 0.01 s. */
#define XML_TRIAL_SEC 5U

#define DMI_TABLES     "sys/firmware/dmi/tables/DMI"
#define DMI_MAX_BYTES  ((size_t)1024 * 1024) /* a server with 128 modules has 20 KB */
#define HYPERVISOR_BIT (1U << 31)            /* CPUID 1, ECX: runs under a hypervisor */

/* Those that hwloc has open at once while it reads this machine (a root, a directory, a file), and one more. */
#define LIVE_DESCRIPTORS 4U

/* Everything is loaded; import.c restricts it. */
#define LOAD_FLAGS                                                                      \
    (HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | \
     HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS)

static void hwloc_destroy_p(hwloc_topology_t *hwloc)
{
    if (*hwloc)
        hwloc_topology_destroy(*hwloc);
}

/* Runs in the child. Returns its exit status: EXIT_SUCCESS if hwloc could load the file. */
static int try_xml(const char *buf, size_t len)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    const struct rlimit time = {XML_TRIAL_SEC, XML_TRIAL_SEC}, none = {0, 0};
    hwloc_topology_t hwloc = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
        (void)signal(fatal[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CPU, &time);
    (void)setrlimit(RLIMIT_CORE, &none);
    return hwloc_topology_init(&hwloc) == 0 && hwloc_topology_set_flags(hwloc, LOAD_FLAGS) == 0 &&
                   hwloc_topology_set_xmlbuffer(hwloc, buf, (int)len + 1) == 0 &&
                   hwloc_topology_load(hwloc) == 0
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}

/* Whether hwloc can load the file: 1, 0, or -errno. Some truncated or damaged files make hwloc 2.9
 * dereference null pointers, so a child process tries first. */
static int is_loadable(const char *buf, size_t len)
{
    pid_t pid = fork();
    int status = 0;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(try_xml(buf, len));
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

/* Reads the file here, because hwloc answers every error with "Invalid argument". */
static int open_xml(hwloc_topology_t hwloc, const char *path, char **ret_buf, char **ret_error)
{
    size_t len = 0;
    int r = root_read_path(path, XML_MAX_BYTES, ret_buf, &len);

    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return format_error(ret_error, r, "%s cannot be read: %s.", path, strerror(-r));
    if (len == 0)
        return format_error(ret_error, -EINVAL, "%s is empty; expected an hwloc XML file.", path);
    if (memchr(*ret_buf, '\0', len) || len > INT32_MAX - 1)
        return format_error(ret_error, -EINVAL, "%s is not an hwloc XML file.", path);
    r = is_loadable(*ret_buf, len);
    if (r < 0)
        return format_error(ret_error, r, "%s cannot be tested in a child process: %s.", path, strerror(-r));
    if (r == 0)
        return format_error(ret_error, -EINVAL, "hwloc cannot load %s.", path);
    return hwloc_topology_set_xmlbuffer(hwloc, *ret_buf, (int)len + 1) < 0 ? -ENOMEM : 0;
}

static int apply_distances(Topology *topology, const Synthetic *synthetic, char **ret_error)
{
    size_t n = topology->n_nodes;

    if (!synthetic->distances)
        return 0;
    if (synthetic->n_distances != n * n)
        return format_error(ret_error, -EINVAL, "distances= expects %zu %s for %zu %s, not %zu.", n * n,
                            human_noun(n * n, "number", "numbers"), n, human_noun(n, "node", "nodes"),
                            synthetic->n_distances);
    for (size_t i = 0; i < n; i++)
        if (synthetic->distances[i * n + i] != DISTANCE_LOCAL)
            return format_error(ret_error, -EINVAL, "distances= must be 10 from a node to itself, not %u.",
                                synthetic->distances[i * n + i]);
    memcpy(topology->distances, synthetic->distances, n * n * sizeof(*topology->distances));
    topology->distances_known = true;
    return 0;
}

/* Chooses hwloc's source, by default this machine. `*ret_buf` must live until hwloc has loaded. */
static int open_source(hwloc_topology_t hwloc, const TopologyOptions *options, Topology *topology,
                       Synthetic *ret_synthetic, char **ret_buf, char **ret_error)
{
    const char *source = options->xml ? options->xml : options->synthetic;
    int r = 0;

    if (options->xml && options->synthetic)
        return format_error(ret_error, -EINVAL,
                            "Either an XML file or a synthetic description can be read, not both.");
    topology->source = strdup(source ? source : "live");
    if (!topology->source)
        return -ENOMEM;
    if (options->xml) {
        topology->origin = TOPOLOGY_ORIGIN_XML;
        r = open_xml(hwloc, options->xml, ret_buf, ret_error);
    } else if (options->synthetic) {
        topology->origin = TOPOLOGY_ORIGIN_SYNTHETIC;
        r = synthetic_parse(options->synthetic, ret_synthetic, ret_error);
        if (r == 0 && hwloc_topology_set_synthetic(hwloc, ret_synthetic->description) < 0)
            r = format_error(ret_error, -EINVAL,
                             "\"%s\" is not a synthetic description that hwloc understands.",
                             ret_synthetic->description);
    }
    return r;
}

int build_llc_nodes(Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        int r = topology_cpus_to_nodes(topology, topology->llcs[i].cpus, topology->llcs[i].nodes);

        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_virtual(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & HYPERVISOR_BIT);
#else
    return false;
#endif
}

/* Only root may read the table; 0 without it. */
static uint64_t ask_modules(void)
{
    CLEANUP_CLOSE int root_fd = is_virtual() ? -1 : root_open("/");
    CLEANUP_FREE char *table = NULL;
    size_t len = 0;

    return root_fd >= 0 && root_read_alloc(root_fd, DMI_TABLES, DMI_MAX_BYTES, &table, &len) == 0
               ? dmi_memory_mb((const uint8_t *)table, len)
               : 0;
}

void build_bandwidth(Topology *topology, uint64_t modules_mb, uint64_t all_bytes)
{
    double mb = 0.8 * (double)modules_mb / (double)MAX(all_bytes, 1U);

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].bandwidth_mb > 0 || topology->nodes[i].n_cpus == 0)
            return;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        topology->nodes[i].bandwidth_mb =
            topology_bandwidth((uint64_t)(mb * (double)topology->nodes[i].memory_bytes));
}

/* What hwloc finds no descriptor for, it takes for missing. Without any it makes up a machine of one node, whose CPUs
 * share no caches. */
static int check_descriptors(char **ret_error)
{
    int fds[LIVE_DESCRIPTORS], r = 0;
    size_t n = 0;

    while (r == 0 && n < ARRAY_SIZE(fds)) {
        fds[n] = root_open("/");
        if (fds[n] < 0)
            r = fds[n];
        else
            n++;
    }
    while (n > 0)
        (void)close(fds[--n]);
    return r < 0 ? format_error(ret_error, r, "Reading this machine takes %u free file descriptors: %s.",
                                LIVE_DESCRIPTORS, strerror(-r))
                 : 0;
}

/* Other threads may have taken the descriptors meanwhile, so they are counted before and after. */
static int load_hwloc(hwloc_topology_t hwloc, const Topology *topology, char **ret_error)
{
    bool live = topology->origin == TOPOLOGY_ORIGIN_LIVE;
    int r = live ? check_descriptors(ret_error) : 0;

    if (r < 0)
        return r;
    if (hwloc_topology_load(hwloc) < 0)
        return format_error(ret_error, live ? -EIO : -EINVAL, "hwloc cannot load %.200s.",
                            live ? "this machine" : topology->source);
    return live ? check_descriptors(ret_error) : 0;
}

static int load(Topology *topology, const TopologyOptions *options, Synthetic *synthetic, char **ret_error)
{
    CLEANUP(hwloc_destroy_p) hwloc_topology_t hwloc = NULL;
    CLEANUP_FREE char *buf = NULL;
    bool live;
    int r;

    if (hwloc_topology_init(&hwloc) < 0 || hwloc_topology_set_flags(hwloc, LOAD_FLAGS) < 0)
        return -ENOMEM;
    r = open_source(hwloc, options, topology, synthetic, &buf, ret_error);
    if (r < 0)
        return r;
    r = load_hwloc(hwloc, topology, ret_error);
    if (r < 0)
        return r;
    live = topology->origin == TOPOLOGY_ORIGIN_LIVE;
    /* HWLOC_XMLFILE and similar variables make hwloc read another machine, which must not be used to place
     * tasks here. */
    if (live && !hwloc_topology_is_thissystem(hwloc))
        return format_error(
            ret_error, -EINVAL,
            "hwloc does not read this machine: a variable such as HWLOC_XMLFILE, HWLOC_SYNTHETIC or "
            "HWLOC_FSROOT is set.");

    r = import_hwloc(topology, hwloc, live && !options->whole_machine, ret_error);
    if (r < 0)
        return r;
    if (live)
        build_bandwidth(topology, ask_modules(), hwloc_get_root_obj(hwloc)->total_memory);
    r = apply_distances(topology, synthetic, ret_error);
    if (r == 0 && options->rehearse > 0)
        r = rehearsal_split(topology, options->rehearse, ret_error);
    if (r == 0)
        r = build_llc_nodes(topology);
    return r == 0 ? domains_compute(topology) : r;
}

int topology_load(const TopologyOptions *options, Topology **ret, char **ret_error)
{
    CLEANUP(topology_unref_p) Topology *topology = calloc(1, sizeof(*topology));
    Synthetic synthetic = {NULL};
    char *error = NULL;
    int r = -ENOMEM;

    if (topology) {
        topology->n_ref = 1;
        r = load(topology, options, &synthetic, &error);
    }
    synthetic_done(&synthetic);
    if (r < 0) {
        if (!error)
            error = strdup(r == -ENOMEM ? "Out of memory." : "The machine cannot be read.");
        *ret_error = error;
        return r;
    }
    assert(topology_check(topology) == 0);
    *ret = TAKE_PTR(topology);
    return 0;
}
