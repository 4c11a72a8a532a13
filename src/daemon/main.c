/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Arguments in, exit status out; numaplaced(8) is the manual of both. */

#include "act/fence/libcpuset.h"
#include "base/parse.h"
#include "daemon/manager/manager.h"
#include "numaplace/paths.h"

#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define POLICY_DIRECTORIES_MAX 64U

/* Exit statuses, as in numaplaced(8). */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_CONFIG = 3,       /* configuration or policies are invalid */
    STATUS_RUNNING = 4,      /* another daemon holds a lock */
    STATUS_NOT_RESTORED = 5, /* something could not be put back */
    STATUS_JOURNAL = 6,      /* the undo journal cannot be used */
};

static const char *arg_config = NULL;
static const char *arg_policy_directories[POLICY_DIRECTORIES_MAX + 1] = {NULL};
static size_t arg_n_policy_directories = 0;
static const char *arg_runtime_directory = NUMAPLACE_RUNTIME_DIRECTORY;
static const char *arg_root = "/";
static TopologyOptions arg_topology;
static bool arg_dry_run = false;
static bool arg_once = false;
static const char *arg_record = NULL;
static bool arg_restore = false;
static ManagerRestore arg_restore_what = MANAGER_RESTORE_ALL;
static int arg_system_bus = -1; /* -1: where the runtime directory is the standard one */

static const char *const default_policy_directories[] = {POLICY_DIRECTORIES, NULL};

static void help(void)
{
    (void)printf("numaplaced [OPTION...]\n\n"
                 "Places tasks and lends idle CPUs on NUMA machines.\n\n"
                 "  -h --help               Show this help\n"
                 "     --version            Show the version\n"
                 "     --config=FILE        Read this file instead of numaplaced.conf and its drop-ins\n"
                 "     --policy-dir=DIR     Read policies from here instead of the standard directories;\n"
                 "                          may be given several times, the first one wins\n"
                 "     --runtime-dir=DIR    Socket, undo journal and lock (default %s)\n"
                 "     --dry-run            Decide, but change nothing\n"
                 "     --once               Plan once, print the plan, put everything back and exit\n"
                 "     --record=FILE        Record every plan and its input in this new file\n"
                 "     --restore[=WHAT]     Put back what an earlier daemon left, and exit: all (default),\n"
                 "                          or after a crash only\n"
                 "     --system-bus=BOOL    Be org.numaplace1 on the system bus; by default only on the\n"
                 "                          standard runtime directory\n"
                 "     --rehearse=N         Split this one-node machine into N emulated nodes\n"
                 "     --whole-machine      Also CPUs outside the cpuset of this process\n"
                 "     --root=DIR           Read a captured kernel tree; implies --dry-run, needs one of:\n"
                 "     --topology-xml=FILE  Topology from an hwloc XML file; only with --dry-run\n"
                 "     --synthetic=TEXT     Topology from an hwloc description; only with --dry-run\n",
                 NUMAPLACE_RUNTIME_DIRECTORY);
}

/* One line that says what is wrong. */
#define usage_error(...) \
    ((void)fprintf(stderr, "numaplaced: " __VA_ARGS__), (void)fputc('\n', stderr), -EINVAL)

enum {
    OPT_VERSION = 256,
    OPT_CONFIG,
    OPT_POLICY_DIR,
    OPT_RUNTIME_DIR,
    OPT_ROOT,
    OPT_REHEARSE,
    OPT_TOPOLOGY_XML,
    OPT_SYNTHETIC,
    OPT_WHOLE_MACHINE,
    OPT_DRY_RUN,
    OPT_ONCE,
    OPT_RECORD,
    OPT_RESTORE,
    OPT_SYSTEM_BUS,
};

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"policy-dir", required_argument, NULL, OPT_POLICY_DIR},
    {"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
    {"root", required_argument, NULL, OPT_ROOT},
    {"rehearse", required_argument, NULL, OPT_REHEARSE},
    {"topology-xml", required_argument, NULL, OPT_TOPOLOGY_XML},
    {"synthetic", required_argument, NULL, OPT_SYNTHETIC},
    {"whole-machine", no_argument, NULL, OPT_WHOLE_MACHINE},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"once", no_argument, NULL, OPT_ONCE},
    {"record", required_argument, NULL, OPT_RECORD},
    {"restore", optional_argument, NULL, OPT_RESTORE},
    {"system-bus", required_argument, NULL, OPT_SYSTEM_BUS},
    {0},
};

static int add_policy_directory(const char *path)
{
    if (arg_n_policy_directories >= POLICY_DIRECTORIES_MAX)
        return usage_error("--policy-dir= given more than %u times", POLICY_DIRECTORIES_MAX);
    arg_policy_directories[arg_n_policy_directories++] = path;
    return 0;
}

static int take_system_bus(const char *text)
{
    bool yes;

    if (parse_bool(text, &yes) < 0)
        return usage_error("--system-bus=%s: expected yes or no", text);
    arg_system_bus = yes;
    return 0;
}

static int take_restore(const char *text)
{
    arg_restore = true;
    if (!text || strcmp(text, "all") == 0)
        arg_restore_what = MANAGER_RESTORE_ALL;
    else if (strcmp(text, "crash") == 0)
        arg_restore_what = MANAGER_RESTORE_CRASH;
    else
        return usage_error("--restore=%s: expected all or crash", text);
    return 0;
}

/* Takes one option. Returns 0, or -EINVAL after saying why. */
static int take_option(int option, char *const *argv)
{
    for (const struct option *o = options; o->name; o++)
        if (o->val == option && o->has_arg == required_argument && !*optarg)
            return usage_error("option '--%s' needs a value; try --help", o->name);
    switch (option) {
    case OPT_CONFIG:
        arg_config = optarg;
        return 0;
    case OPT_POLICY_DIR:
        return add_policy_directory(optarg);
    case OPT_RUNTIME_DIR:
        arg_runtime_directory = optarg;
        return 0;
    case OPT_ROOT:
        arg_root = optarg;
        arg_dry_run = true;
        return 0;
    case OPT_REHEARSE:
        if (parse_u32(optarg, &arg_topology.rehearse) < 0 || arg_topology.rehearse < 2)
            return usage_error("--rehearse=%s: expected a number of nodes, 2 or more", optarg);
        return 0;
    case OPT_TOPOLOGY_XML:
        arg_topology.xml = optarg;
        return 0;
    case OPT_SYNTHETIC:
        arg_topology.synthetic = optarg;
        return 0;
    case OPT_WHOLE_MACHINE:
        arg_topology.whole_machine = true;
        return 0;
    case OPT_DRY_RUN:
        arg_dry_run = true;
        return 0;
    case OPT_ONCE:
        arg_once = true;
        return 0;
    case OPT_RECORD:
        arg_record = optarg;
        return 0;
    case OPT_RESTORE:
        return take_restore(optarg);
    case OPT_SYSTEM_BUS:
        return take_system_bus(optarg);
    case ':':
        return usage_error("option '%s' needs a value; try --help", argv[optind - 1]);
    default:
        return usage_error("'%s' is not an option, or takes no value; try --help", argv[optind - 1]);
    }
}

static int check_options(void)
{
    bool elsewhere = arg_topology.xml || arg_topology.synthetic;

    if (arg_topology.xml && arg_topology.synthetic)
        return usage_error("--topology-xml= and --synthetic= exclude each other");
    if (arg_restore && (arg_once || arg_dry_run || arg_record))
        return usage_error("--restore excludes --once, --dry-run, --record= and --root=");
    if (elsewhere && !arg_dry_run)
        return usage_error(
            "--topology-xml= and --synthetic= describe another machine: expected --dry-run with them");
    if (strcmp(arg_root, "/") != 0 && !elsewhere)
        return usage_error(
            "--root= is another machine's tree: expected --topology-xml= or --synthetic= with it");
    return 0;
}

/* What was asked for and did not arrive is a failure. */
static int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    (void)fprintf(stderr, "numaplaced: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_FAILED;
}

/* Returns 0 to go on, >0 when the answer was given, -EINVAL after saying why not. */
static int parse_arguments(int argc, char **argv)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", options, NULL)) >= 0) {
        int r;

        if (option == 'h') {
            help();
            return 1;
        }
        if (option == OPT_VERSION) {
            (void)printf("numaplaced " NUMAPLACE_VERSION "\nlibcpuset: %s\n",
                         libcpuset_is_built() ? "yes" : "no");
            return 1;
        }
        r = take_option(option, argv);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return usage_error("unexpected argument '%s'; try --help", argv[optind]);
    return check_options();
}

/* One descriptor is kept open per busy thread: take what the hard limit allows. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* One thread needs one arena. With fixed thresholds large arrays are mapped, so that the memory of ten
 * thousand threads goes back to the kernel when they are gone. */
static void tune_malloc(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

static int status_of(int error)
{
    switch (error) {
    case -EBADMSG:
        return STATUS_CONFIG;
    case -EBUSY:
        return STATUS_RUNNING;
    case -EREMOTEIO:
        return STATUS_NOT_RESTORED;
    case -EUCLEAN:
        return STATUS_JOURNAL;
    default:
        return error < 0 ? STATUS_FAILED : STATUS_OK;
    }
}

/* A file opened as one of the standard descriptors that are closed would be written to by whoever logs. */
static int open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return -errno;
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(manager_free_p) Manager *manager = NULL;
    ManagerOptions manager_options;
    Log log;
    int r = open_standard_descriptors();

    if (r < 0)
        return STATUS_FAILED;
    r = parse_arguments(argc, argv);
    if (r != 0)
        return r < 0 ? STATUS_USAGE : finish_output();

    log_init(&log);
    raise_descriptor_limit();
    tune_malloc();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* too long a journal (RLIMIT_FSIZE) is an error of write(), too */

    manager_options = (ManagerOptions){
        .config_path = arg_config,
        .policy_directories =
            arg_n_policy_directories > 0 ? arg_policy_directories : default_policy_directories,
        .runtime_directory = arg_runtime_directory,
        .root = arg_root,
        .topology = arg_topology,
        .dry_run = arg_dry_run,
        .once = arg_once,
        .record = arg_record,
        .system_bus = arg_system_bus < 0 ? strcmp(arg_runtime_directory, NUMAPLACE_RUNTIME_DIRECTORY) == 0
                                         : arg_system_bus,
    };
    if (arg_restore) {
        r = manager_restore(&manager_options, arg_restore_what, &log);
    } else {
        r = manager_new(&manager_options, &log, &manager);
        if (r == 0)
            r = manager_run(manager);
    }
    if (r == -ENOMEM)
        log_error(&log, NULL, "out of memory");
    return status_of(r);
}
