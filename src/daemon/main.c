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

static const char *policy_directories[POLICY_DIRECTORIES_MAX + 1] = {POLICY_DIRECTORIES};
static size_t n_policy_directories = 0;
static bool system_bus_is_given = false;
static bool restore = false;
static ManagerRestore restore_what = MANAGER_RESTORE_ALL;
static ManagerOptions arg = {
    .policy_directories = policy_directories,
    .runtime_directory = NUMAPLACE_RUNTIME_DIRECTORY,
    .root = "/",
};

/* Prints one line that says what is wrong. */
#define usage_error(...) \
    ((void)fprintf(stderr, "numaplaced: " __VA_ARGS__), (void)fputc('\n', stderr), -EINVAL)

/* Functions that take the value of an option return 0 to continue, >0 if the answer was given, or -EINVAL
 * after saying why. */
static int take_help(const char *text);

static int take_version(const char *text)
{
    (void)printf("numaplaced " NUMAPLACE_VERSION "\nlibcpuset: %s\n", libcpuset_is_built() ? "yes" : "no");
    return 1;
}

static int take_policy_directory(const char *path)
{
    if (n_policy_directories >= POLICY_DIRECTORIES_MAX)
        return usage_error("--policy-dir= given more than %u times", POLICY_DIRECTORIES_MAX);
    policy_directories[n_policy_directories++] = path;
    policy_directories[n_policy_directories] = NULL;
    return 0;
}

static int take_restore(const char *text)
{
    restore = true;
    if (!text || strcmp(text, "all") == 0)
        restore_what = MANAGER_RESTORE_ALL;
    else if (strcmp(text, "crash") == 0)
        restore_what = MANAGER_RESTORE_CRASH;
    else
        return usage_error("--restore=%s: expected all or crash", text);
    return 0;
}

static int take_system_bus(const char *text)
{
    if (parse_bool(text, &arg.system_bus) < 0)
        return usage_error("--system-bus=%s: expected yes or no", text);
    system_bus_is_given = true;
    return 0;
}

static int take_rehearse(const char *text)
{
    if (parse_u32(text, &arg.topology.rehearse) < 0 || arg.topology.rehearse < 2)
        return usage_error("--rehearse=%s: expected a number of nodes, 2 or more", text);
    return 0;
}

static int take_root(const char *path)
{
    arg.root = path;
    arg.dry_run = true;
    return 0;
}

typedef struct Option {
    const char *name, *value, *help;
    const char **text;             /* receives its value, or */
    bool *flag;                    /* is set, or */
    int (*take)(const char *text); /* is called */
} Option;

#define NEXT_LINE "\n                          "

static const Option options[] = {
    {"help", "", "Show this help", .take = take_help},
    {"version", "", "Show the version", .take = take_version},
    {"config", "=FILE", "Read this file instead of numaplaced.conf and its drop-ins",
     .text = &arg.config_path},
    {"policy-dir", "=DIR",
     "Read policies from here instead of the standard directories;" NEXT_LINE
     "may be given several times, the first one wins",
     .take = take_policy_directory},
    {"runtime-dir", "=DIR", "Socket, undo journal and lock (default " NUMAPLACE_RUNTIME_DIRECTORY ")",
     .text = &arg.runtime_directory},
    {"dry-run", "", "Decide, but change nothing", .flag = &arg.dry_run},
    {"once", "", "Plan once, print the plan, put everything back and exit", .flag = &arg.once},
    {"record", "=FILE", "Record every plan and its input in this new file", .text = &arg.record},
    {"restore", "[=WHAT]",
     "Put back what an earlier daemon left, and exit: all (default)," NEXT_LINE "or after a crash only",
     .take = take_restore},
    {"system-bus", "=BOOL",
     "Serve org.numaplace1 on the system bus; default: yes with the" NEXT_LINE "standard runtime directory",
     .take = take_system_bus},
    {"rehearse", "=N", "Split this one-node machine into N emulated nodes", .take = take_rehearse},
    {"whole-machine", "", "Also use CPUs outside the cpuset of this process",
     .flag = &arg.topology.whole_machine},
    {"root", "=DIR", "Read a captured kernel tree; implies --dry-run, needs one of:", .take = take_root},
    {"topology-xml", "=FILE", "Topology from an hwloc XML file; only with --dry-run",
     .text = &arg.topology.xml},
    {"synthetic", "=TEXT", "Topology from an hwloc description; only with --dry-run",
     .text = &arg.topology.synthetic},
};

static int take_help(const char *text)
{
    (void)printf("numaplaced [OPTION...]\n\nPlaces tasks and lends idle CPUs on NUMA machines.\n\n");
    for (const Option *o = options; o < options + ARRAY_SIZE(options); o++)
        (void)printf("  %s--%s%-*s%s\n", o == options ? "-h " : "   ", o->name, 19 - (int)strlen(o->name),
                     o->value, o->help);
    return 1;
}

static int take_option(const Option *option)
{
    if (*option->value == '=' && !*optarg)
        return usage_error("option '--%s' needs a value; try --help", option->name);
    if (option->take)
        return option->take(optarg);
    if (option->text)
        *option->text = optarg;
    else
        *option->flag = true;
    return 0;
}

static int check_options(void)
{
    bool elsewhere = arg.topology.xml || arg.topology.synthetic;

    if (arg.topology.xml && arg.topology.synthetic)
        return usage_error("--topology-xml= and --synthetic= exclude each other");
    if (restore && (arg.once || arg.dry_run || arg.record))
        return usage_error("--restore excludes --once, --dry-run, --record= and --root=");
    if (elsewhere && !arg.dry_run)
        return usage_error(
            "--topology-xml= and --synthetic= describe another machine: expected --dry-run with them");
    if (strcmp(arg.root, "/") != 0 && !elsewhere)
        return usage_error(
            "--root= describes another machine: expected --topology-xml= or --synthetic= with it");
    return 0;
}

/* Output that was requested but not written is a failure. */
static int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    (void)fprintf(stderr, "numaplaced: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_FAILED;
}

/* Returns as the functions of options do. */
static int parse_arguments(int argc, char **argv)
{
    struct option longs[ARRAY_SIZE(options) + 1] = {0};
    int option, at, r;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        longs[i] = (struct option){
            .name = options[i].name,
            .has_arg = *options[i].value == '=' ? required_argument
                       : *options[i].value      ? optional_argument
                                                : no_argument,
        };
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", longs, &at)) >= 0) {
        if (option == ':')
            return usage_error("option '%s' needs a value; try --help", argv[optind - 1]);
        if (option == '?')
            return usage_error("'%s' is not an option, or takes no value; try --help", argv[optind - 1]);
        r = option == 'h' ? take_help(NULL) : take_option(&options[at]);
        if (r != 0)
            return r;
    }
    if (optind < argc)
        return usage_error("unexpected argument '%s'; try --help", argv[optind]);
    return check_options();
}

/* One descriptor is kept open per busy thread, so take what the hard limit allows. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* One thread needs one arena. With fixed thresholds large arrays are mapped, so that the memory of ten
 * thousand threads returns to the kernel when these have gone. */
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

/* If a standard descriptor is closed, the next file opened would get its number, and log lines would go into
 * that file. */
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
    (void)signal(SIGXFSZ, SIG_IGN); /* a journal that grows beyond RLIMIT_FSIZE is then an error of write() */

    if (!system_bus_is_given)
        arg.system_bus = strcmp(arg.runtime_directory, NUMAPLACE_RUNTIME_DIRECTORY) == 0;
    if (restore) {
        r = manager_restore(&arg, restore_what, &log);
    } else {
        r = manager_new(&arg, &log, &manager);
        if (r == 0)
            r = manager_run(manager);
    }
    if (r == -ENOMEM)
        log_error(&log, NULL, "out of memory");
    return status_of(r);
}
