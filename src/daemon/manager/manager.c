/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The life of the daemon. The order of the start matters. What a crashed predecessor has left is put back first, so
 * that no invalid file keeps its masks in place (manager/undo.c). Nothing else is created before the command line,
 * the configuration and the policies are known to be valid, and nothing is changed before the locks are held. All
 * this precedes the first look at the machine, or masks of a predecessor would be taken for a user's choice. */

#include "daemon/manager/manager.h"

#include "base/human.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "daemon/stall.h"
#include "daemon/views/objects.h"
#include "kernel/psi.h"
#include "numaplace/messages.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

/* Wake when some task was stalled for a tenth of the shortest window the kernel takes. */
#define PSI_STALL_USEC  50000ULL
#define PSI_WINDOW_USEC 500000ULL
/* Without CAP_SYS_RESOURCE the kernel takes only windows of whole averaging periods. */
#define PSI_WINDOW_UNPRIVILEGED_USEC 2000000ULL

/* Listens to pressure events only while they can change something. On a full machine they never stop, and
 * each is a turn of the loop. */
static void hear_pressure(Manager *manager)
{
    bool hear = manager->plan.may_borrow && !manager->plan.full;

    if (manager->psi_source)
        (void)sd_event_source_set_enabled(manager->psi_source, hear ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Makes a tick and what follows one. Returns 1, or -errno of the event loop. */
static int turn(Manager *manager)
{
    uint64_t began_nsec = time_thread_cpu_nsec();
    int r = manager_tick(manager);

    if (r < 0) {
        log_error(manager->log, NULL, "stopping: %s", strerror(-r));
        r = sd_event_exit(manager->event, r);
        return r < 0 ? r : 1;
    }
    manager_notify_ticked(manager);
    manager_answer_assigned(manager);
    manager_objects_tell(manager);
    hear_pressure(manager);
    manager_arm(manager);
    manager->armed_usec = 0; /* not by an event: the next tick is late if this one took too long */
    manager->statistics.tick_cpu_usec = (time_thread_cpu_nsec() - began_nsec) / NSEC_PER_USEC;
    manager->statistics.tick_cpu_max_usec =
        MAX(manager->statistics.tick_cpu_max_usec, manager->statistics.tick_cpu_usec);
    return 1;
}

/* Makes a tick that is due, or that a glance says would help. Returns 1 if so, 0 if not, or -errno. */
static int turn_if_needed(Manager *manager, uint64_t now_usec)
{
    manager->glanced_usec = now_usec;
    if (now_usec < manager->due_usec)
        return manager_glance(manager, now_usec) ? turn(manager) : 0;
    if (manager->due_usec > 0) { /* the first one, due at time 0, is not late */
        manager->statistics.tick_late_usec =
            now_usec - MIN(now_usec, MAX(manager->due_usec, manager->armed_usec));
        manager->statistics.tick_late_max_usec =
            MAX(manager->statistics.tick_late_max_usec, manager->statistics.tick_late_usec);
    }
    probe_glance(manager->probe);
    return turn(manager);
}

/* When the next tick or glance is due. */
static uint64_t next_look(const Manager *manager)
{
    uint64_t glance = manager->glanced_usec + manager->pace.settings.fast_usec;

    return manager->options.once || manager->pace.settings.watches ? manager->due_usec
                                                                   : MIN(manager->due_usec, glance);
}

/* Waits until there is something for the event loop (returns 1), or until it is time for a tick (made: 1) or a glance
 * (0). Returns -errno on failure. Ten times a second, that is two system calls. A timer of the event loop would take
 * five, and four readings of clocks, which can be system calls too. *now_usec is the current time, and is updated. */
static int wait_and_turn(Manager *manager, uint64_t *now_usec)
{
    struct pollfd poll = {.fd = sd_event_get_fd(manager->event), .events = POLLIN};
    uint64_t now = *now_usec, next = next_look(manager);
    struct timespec timeout;
    int r;

    if (next <= now)
        return turn_if_needed(manager, now);
    timeout = time_spec(next - now);
    r = ppoll(&poll, 1, &timeout, NULL);
    *now_usec = time_now_usec();
    if (r == 0)
        return turn_if_needed(manager, *now_usec);
    return r < 0 && errno != EINTR ? -errno : 1;
}

/* While clients keep the event loop busy it does not wait; ticks come in between all the same. Returns 1, or
 * -errno. */
static int turn_between(Manager *manager)
{
    uint64_t now = time_now_usec();
    int r, code;

    if (now < next_look(manager) || sd_event_get_exit_code(manager->event, &code) != -ENODATA)
        return 1;
    r = turn_if_needed(manager, now);
    return r < 0 ? r : 1;
}

/* sd_event_loop() with ticks and glances in between. */
static int loop(Manager *manager)
{
    int code = 0;

    while (sd_event_get_state(manager->event) != SD_EVENT_FINISHED) {
        int r = sd_event_prepare(manager->event);

        if (r == 0) {
            uint64_t now = time_now_usec();

            do
                r = wait_and_turn(manager, &now);
            while (r == 0);
            if (r > 0)
                r = sd_event_wait(manager->event, 0);
        } else if (r > 0)
            r = turn_between(manager);
        if (r > 0)
            r = sd_event_dispatch(manager->event);
        if (r < 0)
            return r;
    }
    (void)sd_event_get_exit_code(manager->event, &code);
    return code;
}

static int on_pressure(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    Manager *manager = userdata;

    if (revents & (EPOLLERR | EPOLLHUP)) {
        log_warning(manager->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                    "pressure events have ended; checking every %llu s when idle instead",
                    PACE_IDLE_MAX_USEC / USEC_PER_SEC);
        manager->psi_source = sd_event_source_disable_unref(source);
        return 0;
    }
    pace_wake(&manager->pace);
    manager_arm(manager);
    return 0;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
    Manager *manager = userdata;

    return sd_event_exit(manager->event, 0);
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
    Manager *manager = userdata;
    (void)manager_reload(manager, NULL); /* logs itself what is wrong */
    return 0;
}

/* A SIGHUP during the start becomes a reload when the daemon has started. SIGTERM may end the start at any
 * time: what it was about to put back is in the journal. */
static int put_off_hangups(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int add_signals(Manager *manager)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        (void)sigaddset(&set, signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        int r = sd_event_add_signal(manager->event, &manager->signal_sources[i], signals[i],
                                    signals[i] == SIGHUP ? on_hangup : on_stop, manager);

        if (r < 0)
            return r;
        r = sd_event_source_set_priority(manager->signal_sources[i], SD_EVENT_PRIORITY_IMPORTANT);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Without triggers the daemon still works: when idle, it looks every two seconds. */
static int add_pressure(Manager *manager)
{
    const ProbeFeatures *features = probe_features(manager->probe);
    CLEANUP_CLOSE int fd = -1;
    int r;

    if (!features->psi || strcmp(manager->options.root, "/") != 0)
        return 0;
    fd = psi_trigger(manager->root_fd, "proc/pressure/cpu", PSI_STALL_USEC, PSI_WINDOW_USEC);
    if (fd < 0)
        fd = psi_trigger(manager->root_fd, "proc/pressure/cpu", PSI_STALL_USEC, PSI_WINDOW_UNPRIVILEGED_USEC);
    if (fd < 0) {
        log_notice(manager->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                   "no pressure events (%s): checking every %llu s when idle instead", strerror(-fd),
                   PACE_IDLE_MAX_USEC / USEC_PER_SEC);
        return 0;
    }
    r = sd_event_add_io(manager->event, &manager->psi_source, fd, EPOLLPRI, on_pressure, manager);
    if (r < 0)
        return r;
    r = sd_event_source_set_io_fd_own(manager->psi_source, 1);
    if (r < 0)
        return r;
    (void)TAKE_FD(fd);
    return 0;
}

static int add_sources(Manager *manager)
{
    int r = add_signals(manager);

    if (r < 0)
        return r;
    return manager->options.once ? 0 : add_pressure(manager);
}

/* Logs what is missing and what happens instead; each once. */
static void tell_features(Manager *manager)
{
    const ProbeFeatures *features = probe_features(manager->probe);
    const char *id = NUMAPLACE_MESSAGE_MISSING_FEATURE;

    if (!features->task_schedstat)
        log_notice(manager->log, id,
                   "no /proc/PID/schedstat: waiting for a CPU cannot be measured, so nothing will be lent");
    else if (!features->schedstat)
        log_notice(manager->log, id,
                   "no /proc/schedstat: waiting per CPU is taken from the managed threads instead");
    if (!features->psi)
        log_notice(manager->log, id, "no /proc/pressure: checking every %llu s when idle instead",
                   PACE_IDLE_MAX_USEC / USEC_PER_SEC);
    if (features->cgroup == PROBE_CGROUP_NONE)
        log_notice(manager->log, id, "no cgroups: Cgroup=, Unit= and Slice= match nothing");
    else if (features->cgroup != PROBE_CGROUP_V2)
        log_notice(manager->log, id, "no cgroup v2 hierarchy in charge: cpusets are taken from version 1");
}

static void choose_mode(Manager *manager)
{
    const char *forbidden = act_forbidden(manager->root_fd);

    if (manager->options.dry_run || manager->config->dry_run) {
        manager->mode = MANAGER_MODE_DRY_RUN;
    } else if (forbidden) {
        manager->mode = MANAGER_MODE_OBSERVE;
        log_notice(manager->log, NUMAPLACE_MESSAGE_OBSERVE_ONLY,
                   "not permitted to place tasks of others (%s): observing only", forbidden);
    } else {
        manager->mode = MANAGER_MODE_ACTIVE;
    }
}

static int listen_for_clients(Manager *manager)
{
    CLEANUP_FREE char *path = NULL;
    int r;

    if (manager->options.once)
        return 0;
    path = format_text("%s/bus", manager->options.runtime_directory);
    if (!path)
        return -ENOMEM;
    r = bus_server_new(manager->event, manager->log, path, manager_bus_add, manager, &manager->bus);
    if (r < 0)
        return log_failure(r, manager->log, NULL, "cannot listen on %s: %s", path, strerror(-r));
    if (!manager->options.system_bus)
        return 0;
    return bus_system_new(manager->event, manager->log, manager_bus_add, manager, &manager->system_bus);
}

static int read_files(Manager *manager, Topology **ret_topology)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    int r = topology_load(&manager->options.topology, &topology, &error);

    if (r < 0)
        return log_failure(r, manager->log, NULL, "cannot read the topology: %s",
                           error ? error : strerror(-r));
    r = manager_load(manager, topology, &manager->config, &manager->policies, NULL);
    if (r < 0)
        return r;
    *ret_topology = TAKE_PTR(topology);
    return 0;
}

/* Names the file if one that all else depends on is missing. */
static void say_unreadable(const Manager *manager, int error)
{
    static const char *const needed[] = {"proc", "proc/stat"};
    const char *root = strcmp(manager->options.root, "/") == 0 ? "" : manager->options.root;

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (faccessat(manager->root_fd, needed[i], R_OK, 0) < 0) {
            log_error(manager->log, NULL, "cannot read this machine: %s/%s: %s", root, needed[i],
                      strerror(errno));
            return;
        }
    log_error(manager->log, NULL, "cannot read this machine: %s", strerror(-error));
}

static int make_state(Manager *manager, Topology *topology)
{
    PaceSettings pace = manager_pace_settings(manager);
    int r;

    pace_init(&manager->pace, &pace);
    manager->users = user_cache_new();
    manager->released = task_set_new();
    manager->assigned = assignments_new();
    manager->moves = moves_new();
    manager->gains = gains_new();
    manager->history = history_new(time_now_usec());
    if (!manager->users || !manager->released || !manager->assigned || !manager->moves || !manager->gains ||
        !manager->history)
        return -ENOMEM;
    r = manager_assignments_load(manager);
    if (r < 0)
        return r;
    r = manager_open_act(manager);
    if (r < 0 && r != -EREMOTEIO)
        return r;
    r = act_measure(manager->act);
    if (r < 0)
        return r;
    r = manager_rebuild(manager, topology);
    if (r < 0)
        say_unreadable(manager, r);
    return r;
}

int manager_new(const ManagerOptions *options, Log *log, Manager **ret)
{
    CLEANUP(manager_free_p) Manager *manager = manager_alloc(options, log);
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    int r;

    if (!manager)
        return -ENOMEM;
    r = put_off_hangups();
    if (r < 0)
        return r;
    r = manager_open_root(manager);
    if (r < 0)
        return r;
    r = manager_undo_first(manager);
    if (r < 0 && r != -EREMOTEIO)
        return r;
    r = read_files(manager, &topology);
    if (r < 0)
        return r;
    choose_mode(manager);
    r = manager_lock(manager);
    if (r < 0)
        return r;
    if (options->record)
        r = recorder_new(options->record, log, &manager->recorder);
    if (r < 0)
        return r;
    r = make_state(manager, topology);
    if (r < 0)
        return r;
    r = sd_event_new(&manager->event);
    if (r >= 0)
        r = add_sources(manager);
    if (r < 0)
        return log_failure(r, manager->log, NULL, "cannot set up the event loop: %s", strerror(-r));
    r = manager_neighbours_look(manager, time_now_usec());
    if (r < 0)
        return r;
    manager_memory_start(manager);
    manager_evidence_start(manager);
    manager_stall_start(manager);
    r = listen_for_clients(manager);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(manager);
    return 0;
}

Manager *manager_free(Manager *manager)
{
    if (!manager)
        return NULL;
    manager_assignments_done(manager);
    manager_release_done(manager);
    bus_server_free(manager->bus);
    bus_system_free(manager->system_bus);
    object_views_free(manager->views);
    sd_event_source_disable_unref(manager->psi_source);
    for (size_t i = 0; i < ARRAY_SIZE(manager->signal_sources); i++)
        sd_event_source_disable_unref(manager->signal_sources[i]);
    manager_evidence_free(manager);
    manager_stall_free(manager);
    manager_memory_stop(manager);
    sd_event_unref(manager->event);
    plan_done(&manager->plan);
    would_done(&manager->would);
    recorder_free(manager->recorder);
    free(manager->outcomes);
    probe_free(manager->probe);
    act_free(manager->act);
    world_free(manager->world);
    moves_free(manager->moves);
    gains_free(manager->gains);
    history_free(manager->history);
    task_set_free(manager->released);
    assignments_free(manager->assigned);
    user_cache_free(manager->users);
    policy_set_free(manager->policies);
    config_free(manager->config);
    close_p(&manager->host_fd);
    close_p(&manager->lock_fd);
    close_p(&manager->runtime_fd);
    close_p(&manager->root_fd);
    free(manager);
    return NULL;
}

/* Puts everything back, unless it is to stay. SIGTERM and SIGINT are blocked meanwhile: a second one changes
 * nothing. */
static int stop(Manager *manager)
{
    size_t restored = 0, left = 0;
    int r;

    if (manager->mode != MANAGER_MODE_ACTIVE)
        return 0;
    if (manager->config->keep_on_stop)
        return manager_keep(manager);
    /* Nothing is sensed any more, and the probe may hold all the descriptors there are. */
    manager->probe = probe_free(manager->probe);
    r = manager_put_back(manager, NULL, &restored, &left);
    if (r < 0) {
        log_error(
            manager->log, NUMAPLACE_MESSAGE_NOT_RESTORED,
            "stopped, but not everything could be put back (%s); the undo journal is kept for the next start",
            strerror(-r));
        return -EREMOTEIO;
    }
    log_notice(manager->log, NUMAPLACE_MESSAGE_STOPPED,
               "stopped; put back %zu %s, left %zu that somebody else has pinned", restored,
               human_noun(restored, "thread", "threads"), left);
    return 0;
}

int manager_run(Manager *manager)
{
    const Topology *topology = manager->world->topology;
    size_t n_policies = manager->policies->n_policies, n_workloads = manager->world->n_workloads;
    int r, r2;

    if (!manager->options.once) {
        tell_features(manager);
        log_notice(manager->log, NUMAPLACE_MESSAGE_STARTED,
                   "ready (%s): %" PRIu32 " %s in %" PRIu32 " %s%s, %zu %s, %zu %s",
                   manager_mode_name(manager->mode), topology->n_cpus,
                   human_noun(topology->n_cpus, "CPU", "CPUs"), topology->n_nodes,
                   topology->rehearsal ? "rehearsal " : "", human_noun(topology->n_nodes, "node", "nodes"),
                   n_policies, human_noun(n_policies, "policy", "policies"), n_workloads,
                   human_noun(n_workloads, "workload", "workloads"));
    }
    manager_notify_ready(manager);
    r = loop(manager);
    manager_notify_stopping();
    manager_evidence_stop(manager);
    manager_stall_stop(manager);
    manager_memory_stop(manager);
    r2 = stop(manager);
    return r < 0 ? r : r2;
}
