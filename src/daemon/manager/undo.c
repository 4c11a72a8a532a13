/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What an earlier daemon has left, and the locks under which it is put back.
 *
 *   a start:  locks --> journal --> put back --> configuration, policies --> place
 *
 * The journal says whether the earlier daemon crashed, or stopped and wants its placements to stay (KeepOnStop=).
 * After a crash they are put back before the configuration and the policies are read: an invalid file, DryRun=yes, or
 * policies that only observe are no reason to keep masks of a dead daemon. Placements that are to stay do so until a
 * daemon starts that places; a start that fails at an invalid file leaves them.
 *
 * A daemon that may not change anything, by its command line or for want of rights, puts nothing back. It counts the
 * leftovers, reports them, and says how to put them back.
 *
 * There is one lock for a runtime directory, and one for the host: two daemons with different directories would take
 * each other's masks for the original ones, and "put back" those in the end. So the lock's file also names the
 * directory, and the next daemon begins with what it finds there. A rehearsal on a directory of its own
 * does not need the second lock, so that several can run side by side, as the tests do; numaplaced(8) says what its
 * policies may match.
 *
 * Each PID namespace has a journal of its own. Journals of daemons in other namespaces, in containers or on the host,
 * are reported and kept: their PIDs mean nothing here. */

#include "daemon/manager/manager.h"

#include "base/human.h"
#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"
#include "daemon/runtime-dir.h"
#include "numaplace/messages.h"
#include "numaplace/paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* PID namespaces, in which the same number means different processes. */

/* Size of the longest name of a journal, with its terminating NUL. */
#define JOURNAL_NAME_SIZE sizeof("journal-4294967295")
/* The number of the initial namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h). */
#define FIRST_NAMESPACE 4026531836U

/* The number of this process's namespace; 0: not known, as in a made-up tree of files. */
static uint32_t read_namespace(int root_fd)
{
    char text[32];
    ssize_t n = readlinkat(root_fd, "proc/self/ns/pid", text, sizeof(text) - 1);
    uint32_t number = 0;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "pid:[%u]", &number) == 1 ? number : 0;
}

/* Formats the name of the journal in this process's namespace: "journal" in the initial one, or where /proc
 * below `root_fd` does not say; otherwise "journal-N", N the number of the namespace (pid_namespaces(7)). */
static void name_journal(int root_fd, char ret[static JOURNAL_NAME_SIZE])
{
    uint32_t number = read_namespace(root_fd);

    if (number == 0 || number == FIRST_NAMESPACE)
        (void)snprintf(ret, JOURNAL_NAME_SIZE, "journal");
    else
        (void)snprintf(ret, JOURNAL_NAME_SIZE, "journal-%u", number);
}

/* Whether a file of a runtime directory has the name of a journal in some namespace. */
static bool is_journal_name(const char *name)
{
    uint32_t number;

    return strcmp(name, "journal") == 0 || (strncmp(name, "journal-", strlen("journal-")) == 0 &&
                                            parse_u32(name + strlen("journal-"), &number) == 0);
}

Manager *manager_alloc(const ManagerOptions *options, Log *log)
{
    Manager *manager = calloc(1, sizeof(*manager));

    if (!manager)
        return NULL;
    manager->options = *options;
    manager->log = log;
    manager->root_fd = manager->runtime_fd = manager->lock_fd = manager->host_fd = -1;
    manager->started_usec = time_now_usec();
    manager_notify_init(manager);
    return manager;
}

int manager_open_root(Manager *manager)
{
    manager->root_fd = root_open(manager->options.root);
    if (manager->root_fd < 0)
        return log_failure(manager->root_fd, manager->log, NULL, "cannot open the root directory %s: %s",
                           manager->options.root, strerror(-manager->root_fd));
    if (strcmp(manager->options.root, "/") == 0 && !probe_has_own_proc(manager->root_fd))
        return log_failure(
            -EINVAL, manager->log, NULL,
            "/proc shows another PID namespace, or nothing: expected this process's own, as after mount -t "
            "proc proc /proc");
    return 0;
}

/* Locks */

/* Logs what is wrong, and returns the error. */
static int lock_failed(Manager *manager, int error, const char *what)
{
    return log_failure(error, manager->log, NULL, "%s", what ? what : strerror(-error));
}

static bool is_standard_directory(const Manager *manager)
{
    struct stat ours, standard;

    return strcmp(manager->options.runtime_directory, NUMAPLACE_RUNTIME_DIRECTORY) == 0 ||
           (fstat(manager->runtime_fd, &ours) == 0 && stat(NUMAPLACE_RUNTIME_DIRECTORY, &standard) == 0 &&
            ours.st_dev == standard.st_dev && ours.st_ino == standard.st_ino);
}

/* A rehearsal on a directory of its own. */
static bool needs_no_host(const Manager *manager)
{
    return manager->options.topology.rehearse > 0 && !is_standard_directory(manager);
}

static int lock_directory(Manager *manager, char **ret_error)
{
    const char *path = manager->options.runtime_directory;

    if (manager->runtime_fd < 0)
        manager->runtime_fd = runtime_dir_open(path, ret_error);
    if (manager->runtime_fd >= 0 && manager->lock_fd < 0)
        manager->lock_fd = runtime_dir_lock(manager->runtime_fd, path, ret_error);
    return manager->runtime_fd < 0 ? manager->runtime_fd : MIN(manager->lock_fd, 0);
}

/* The journal */

/* Malloc'd; NULL: out of memory. */
static char *journal_path(const Manager *manager)
{
    char name[JOURNAL_NAME_SIZE];

    name_journal(manager->root_fd, name);
    return format_text("%s/%s", manager->options.runtime_directory, name);
}

/* Returns 1 if there is a journal, 0 if not, or -errno after logging why the directory cannot be trusted.
 * Creates nothing. */
static int find_journal(Manager *manager)
{
    CLEANUP_FREE char *error = NULL;
    char name[JOURNAL_NAME_SIZE];
    struct stat st;
    int r;

    manager->runtime_fd = runtime_dir_find(manager->options.runtime_directory, &error);
    if (manager->runtime_fd == -ENOENT)
        return 0;
    if (manager->runtime_fd < 0)
        return lock_failed(manager, manager->runtime_fd, error);
    name_journal(manager->root_fd, name);
    if (fstatat(manager->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    r = -errno;
    return r == -ENOENT ? 0
                        : log_failure(r, manager->log, NUMAPLACE_MESSAGE_JOURNAL, "cannot find %s/%s: %s",
                                      manager->options.runtime_directory, name, strerror(-r));
}

/* Logs what a journal of another namespace holds, or why that is not known. Returns whether it may hold anything. */
static bool tell_other(Manager *manager, const char *name)
{
    CLEANUP_FREE char *path = format_text("%s/%s", manager->options.runtime_directory, name), *error = NULL;
    size_t n = 0;
    int r = path ? act_count_journal(manager->root_fd, path, &n, &error) : -ENOMEM;

    if (r < 0)
        log_warning(manager->log, NUMAPLACE_MESSAGE_LEFTOVER,
                    "cannot tell what a daemon in another PID namespace has left in place: %s",
                    error ? error : strerror(-r));
    else if (n > 0)
        log_warning(
            manager->log, NUMAPLACE_MESSAGE_LEFTOVER,
            "%s belongs to a daemon in another PID namespace, which placed %zu %s; run numaplaced --restore "
            "there to put them back, or delete the file if that namespace is gone",
            path, n, human_noun(n, "process or cgroup", "processes and cgroups"));
    return r < 0 || n > 0;
}

/* Returns whether daemons in other namespaces have left journals; with `tell`, logs what these hold, and
 * returns whether it may be anything. */
static bool find_others(Manager *manager, bool tell)
{
    CLEANUP(closedir_p) DIR *dir = opendir(manager->options.runtime_directory);
    const struct dirent *entry;
    char own[JOURNAL_NAME_SIZE];
    bool any = false;

    name_journal(manager->root_fd, own);
    while (dir && (entry = readdir(dir)))
        if (is_journal_name(entry->d_name) && strcmp(entry->d_name, own) != 0)
            any |= !tell || tell_other(manager, entry->d_name);
    return any;
}

/* Logs the journal's own message, and returns an error that main() has an exit status for: -EUCLEAN if it
 * must not be believed. */
static int journal_failed(Manager *manager, int error, const char *what)
{
    return log_failure(error == -EPERM ? -EUCLEAN : error, manager->log, NUMAPLACE_MESSAGE_JOURNAL, "%s",
                       what ? what : strerror(-error));
}

/* Puts back what a predecessor has left. Returns 0, -ENOMEM, or -EREMOTEIO after logging that not everything
 * could be put back. */
static int recover(Manager *manager)
{
    size_t restored = 0, left = 0;
    int r;

    /* Everything is put back in either case, so what cannot be is not to stay. */
    (void)act_note_kept(manager->act, false);
    r = manager_put_back(manager, NULL, &restored, &left);
    if (restored > 0 || left > 0)
        log_notice(manager->log, NUMAPLACE_MESSAGE_RECOVERED,
                   "put back %zu %s an earlier daemon had placed, left %zu that somebody else has pinned",
                   restored, human_noun(restored, "thread", "threads"), left);
    if (r >= 0 || r == -ENOMEM)
        return r;
    log_error(manager->log, NUMAPLACE_MESSAGE_NOT_RESTORED,
              "not everything an earlier daemon had placed could be put back, or noted as put back (%s); it "
              "stays in the undo journal",
              strerror(-r));
    return -EREMOTEIO;
}

/* Opens the journal and puts back what is in it, unless that is to stay and `leave_kept`. A start goes on
 * after -EREMOTEIO: something could not be put back. */
static int open_journal(Manager *manager, bool leave_kept)
{
    CLEANUP_FREE char *path = journal_path(manager), *error = NULL;
    int r, r2;

    if (!path)
        return -ENOMEM;
    r = act_new(&act_ops_affinity, NULL, manager->root_fd, path, &manager->act, &error);
    if (r < 0)
        return journal_failed(manager, r, error);
    r2 = leave_kept && act_kept(manager->act) ? 0 : recover(manager);
    if (r == ACT_E_CORRUPT && r2 != -ENOMEM)
        return journal_failed(manager, -EUCLEAN, error);
    return r2;
}

/* The last daemon that placed on this host may have had another directory and have been killed: what it has left would
 * be taken for the original. What is to stay is left until it is certain, from the configuration, that this daemon
 * places. Returns -EBUSY then, or if that directory is in use. */
static int undo_elsewhere(Manager *manager, const char *directory)
{
    CLEANUP(manager_free_p) Manager *other = NULL;
    CLEANUP_FREE char *error = NULL;
    ManagerOptions options = manager->options;
    int r;

    options.runtime_directory = directory;
    other = manager_alloc(&options, manager->log);
    r = other ? manager_open_root(other) : -ENOMEM;
    if (r == 0)
        r = find_journal(other);
    if (r <= 0)
        return r;
    other->mode = MANAGER_MODE_ACTIVE;
    r = lock_directory(other, &error);
    if (r == -EBUSY) /* it is this one's, or that of a rehearsal or of a daemon that only observes */
        return r;
    if (r < 0)
        return lock_failed(manager, r, error);
    r = open_journal(other, !manager->config);
    if (r < 0 || !act_kept(other->act))
        return r;
    manager->kept_elsewhere = true;
    return -EBUSY;
}

/* Whether the next start is to try a directory again. What must not be believed is given up, as is what could not be
 * read of a damaged journal; any other failure may pass, such as a lack of descriptors. */
static bool is_left(int error)
{
    return error < 0 && error != -EPERM && error != -EUCLEAN && error != -ENOTDIR && error != -ELOOP &&
           error != -ENAMETOOLONG;
}

/* Puts back what is found in other directories. *ret: this daemon's, then those that the next start is to try again,
 * one a line. Returns 0 or -ENOMEM. */
static int undo_last(Manager *manager, char *last, char **ret)
{
    const char *own = manager->options.runtime_directory;
    CLEANUP_FREE char *paths = strdup(own);
    char *rest;

    for (char *path = strtok_r(last, "\n", &rest); path && paths; path = strtok_r(NULL, "\n", &rest)) {
        int r = *path == '/' && strcmp(path, own) != 0 ? undo_elsewhere(manager, path) : 0;

        if (r == -ENOMEM)
            return r;
        if (is_left(r)) {
            char *longer = format_text("%s\n%s", paths, path);

            free(paths);
            paths = longer;
        }
    }
    *ret = TAKE_PTR(paths);
    return *ret ? 0 : -ENOMEM;
}

/* To place tasks. */
static int take_host(Manager *manager, char **ret_error)
{
    CLEANUP_FREE char *last = NULL, *paths = NULL;
    int r;

    if ((manager->host_fd >= 0 && !manager->kept_elsewhere) || needs_no_host(manager))
        return 0;
    if (manager->host_fd < 0)
        manager->host_fd = host_lock_take(NUMAPLACE_RUNTIME_DIRECTORY, ret_error);
    if (manager->host_fd < 0)
        return manager->host_fd;
    manager->kept_elsewhere = false;
    last = host_lock_last(manager->host_fd);
    r = last ? undo_last(manager, last, &paths) : -errno;
    if (r == 0)
        host_lock_sign(manager->host_fd, paths);
    return r;
}

int manager_lock(Manager *manager)
{
    CLEANUP_FREE char *error = NULL;
    bool active = manager->mode == MANAGER_MODE_ACTIVE;
    int r;

    if (!active) {
        close_p(&manager->host_fd);
        manager->host_fd = -1;
    }
    if (manager->options.once && !active)
        return 0;
    r = lock_directory(manager, &error);
    if (r >= 0 && active)
        r = take_host(manager, &error);
    return r < 0 ? lock_failed(manager, r, error) : 0;
}

/* Logs how many threads and cgroups still have CPUs of a daemon that is gone, which this one leaves. Returns
 * 0 or -ENOMEM. */
static int tell_leftover(Manager *manager, const char *how)
{
    CLEANUP_FREE char *path = journal_path(manager), *error = NULL;
    const char *directory = manager->options.runtime_directory;
    bool standard = strcmp(directory, NUMAPLACE_RUNTIME_DIRECTORY) == 0;
    ActLeftover *leftover = &manager->leftover;
    int r;

    if (!path)
        return -ENOMEM;
    r = act_leftover(&act_ops_dry_run, NULL, manager->root_fd, path, leftover, &error);
    if (r < 0 && r != -ENOMEM)
        log_warning(manager->log, NUMAPLACE_MESSAGE_LEFTOVER,
                    "cannot tell what an earlier daemon has left in place: %s", error ? error : strerror(-r));
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (leftover->n_threads > 0 || leftover->n_cgroups > 0)
        log_notice(manager->log, NUMAPLACE_MESSAGE_LEFTOVER,
                   "%zu %s and %zu %s still have the CPUs that an earlier daemon gave them%s, and keep "
                   "them: to put them back, %snumaplaced --restore%s%s",
                   leftover->n_threads, human_noun(leftover->n_threads, "thread", "threads"),
                   leftover->n_cgroups, human_noun(leftover->n_cgroups, "cgroup", "cgroups"),
                   leftover->kept ? " (KeepOnStop=yes)" : "", how,
                   standard ? "" : " --runtime-dir=", standard ? "" : directory);
    return 0;
}

int manager_undo_first(Manager *manager)
{
    int r;

    if (manager->options.dry_run || act_forbidden(manager->root_fd))
        return 0;
    r = find_journal(manager);
    if (r <= 0)
        return r;
    manager->mode = MANAGER_MODE_ACTIVE;
    r = manager_lock(manager);
    return r < 0 ? r : open_journal(manager, true);
}

int manager_open_act(Manager *manager)
{
    CLEANUP_FREE char *error = NULL;
    int r;

    if (manager->mode == MANAGER_MODE_ACTIVE) {
        (void)find_others(manager, true);
        if (!manager->act)
            return open_journal(manager, false);
        return act_kept(manager->act) ? recover(manager) : 0;
    }
    manager->act = act_free(manager->act);
    r = act_new(&act_ops_dry_run, NULL, manager->root_fd, NULL, &manager->act, &error);
    /* Without the lock, the journal may be that of a running daemon. */
    if (r < 0 || manager->lock_fd < 0 || strcmp(manager->options.root, "/") != 0)
        return r;
    return tell_leftover(manager, "stop this daemon and run ");
}

int manager_keep(Manager *manager)
{
    int r = act_note_kept(manager->act, true);

    if (r < 0)
        log_warning(manager->log, NUMAPLACE_MESSAGE_JOURNAL,
                    "the undo journal cannot record that placements stay (%s): the next start puts them back",
                    strerror(-r));
    log_notice(manager->log, NUMAPLACE_MESSAGE_STOPPED,
               "stopped; placements stay as they are (KeepOnStop=yes) until the next start");
    return 0;
}

/* To put back, while nobody places. */
static int pass_host(Manager *manager, char **ret_error)
{
    if (needs_no_host(manager))
        return 0;
    manager->host_fd = host_lock_pass(NUMAPLACE_RUNTIME_DIRECTORY, ret_error);
    return manager->host_fd == -ENOENT ? 0 : MIN(manager->host_fd, 0);
}

/* Puts back under the lock of the directory, while no other daemon places on the host; -EBUSY if one does.
 * `own`: there is a journal of this namespace, not only of others. */
static int restore(Manager *manager, ManagerRestore what, bool own)
{
    CLEANUP_FREE char *error = NULL;
    int r = lock_directory(manager, &error);

    if (r >= 0)
        r = pass_host(manager, &error);
    if (r == -EBUSY && what == MANAGER_RESTORE_CRASH)
        return 0;
    if (r < 0)
        return lock_failed(manager, r, error);
    r = own ? open_journal(manager, what == MANAGER_RESTORE_CRASH) : 0;
    return r == 0 && what == MANAGER_RESTORE_ALL && find_others(manager, true) ? -EREMOTEIO : r;
}

int manager_restore(const ManagerOptions *options, ManagerRestore what, Log *log)
{
    CLEANUP(manager_free_p) Manager *manager = manager_alloc(options, log);
    const char *forbidden;
    int own, r;

    if (!manager)
        return -ENOMEM;
    r = manager_open_root(manager);
    if (r < 0)
        return r;
    own = find_journal(manager);
    if (own < 0 || (own == 0 && (what == MANAGER_RESTORE_CRASH || !find_others(manager, false))))
        return own;
    manager->mode = MANAGER_MODE_ACTIVE;
    forbidden = act_forbidden(manager->root_fd);
    if (!forbidden)
        return restore(manager, what, own > 0);
    log_error(log, NULL, "not permitted to place tasks of others (%s)", forbidden);
    r = tell_leftover(manager, "run as root: ");
    return r < 0 || what == MANAGER_RESTORE_CRASH ? r : -EPERM;
}
