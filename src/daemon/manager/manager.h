/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The manager owns all run-time state and drives the loop: sense, plan, act, remember.
 *
 *   main.c               arguments --> ManagerOptions
 *   manager.c            life: start, event sources, stop
 *   manager/undo.c       what an earlier daemon has left, and the locks
 *   manager/tick.c       one tick
 *   manager/notify.c     messages to the service manager
 *   manager/memory.c     memory on its way to homes
 *   manager/evidence.c   which thread uses which memory
 *   stall.c              how much processes wait for memory
 *   manager/remember.c   outcomes of a plan: ring, log, signals
 *   manager/match.c      which policy a process is under (asked by probe)
 *   manager/reload.c     new configuration, policies or topology
 *   manager/admin.c      pause, resume, release
 *   manager/release.c    release of very many threads
 *   manager/assign.c     processes assigned to a policy by name
 *   views/describe.c     answers on the bus: the present state
 *   views/explain.c      answers on the bus: why it is so
 *   views/objects.c      the objects on the buses, and signals when they change
 *   bus/vtables.c        the methods */

#include "act/act.h"
#include "base/util.h"
#include "daemon/bus/server.h"
#include "daemon/bus/system.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/pace.h"
#include "daemon/recorder.h"
#include "daemon/tables/assignments.h"
#include "daemon/tables/gains.h"
#include "daemon/tables/history.h"
#include "daemon/tables/moves.h"
#include "daemon/tables/task-set.h"
#include "daemon/tables/user-cache.h"
#include "plan/plan.h"
#include "plan/would.h"
#include "policy/policy.h"
#include "probe/neighbours.h"
#include "probe/probe.h"
#include "topo/topology.h"
#include "world/world.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Signals per tick to all clients together; with more clients than that, each client gets one. ListMoves has
 * the other moves. A signal takes some 20 us to build and 3 us to send, so this is 10 ms of a tick at worst. */
#define MANAGER_SIGNALS_PER_TICK   512U
#define MANAGER_SIGNALS_PER_CLIENT 64U /* as include/numaplace/bus.h says */

/* Processes that the administrator released one by one; a limit against scripts that never resume. */
#define MANAGER_RELEASED_MAX 4096U

/* Calls of AssignProcess that wait for the tick that carries them out; each is a message of a client. */
#define MANAGER_ASSIGNING_MAX 256U

/* Calls of Release that take several ticks, each a message of a client; and the most threads that are
 * released at once, 70 us each. */
#define MANAGER_RELEASING_MAX   64U
#define MANAGER_RELEASE_AT_ONCE 1024U

/* Ticks that --once measures: a base line, and the two that an overload takes (P1, overload map). */
#define MANAGER_ONCE_TICKS 3U

/* Most ticks of --once, if some processes cannot be read yet (probe/tasks/aside.h). */
#define MANAGER_ONCE_TICKS_MAX 30U

/* The command line. Strings are borrowed and outlive the manager. */
typedef struct ManagerOptions {
    const char *config_path;               /* NULL: search */
    const char *const *policy_directories; /* NULL-terminated */
    const char *runtime_directory;         /* not used with once && dry_run */
    const char *root;                      /* "/" is this machine */
    TopologyOptions topology;
    bool dry_run;
    bool once; /* plan once, print the plan on standard output, stop */
    bool system_bus;
    const char *record;                    /* file that records all plans; NULL: none */
    const struct ProgressEvents *counters; /* events to count; NULL: those of the processor */
} ManagerOptions;

typedef enum ManagerMode {
    MANAGER_MODE_ACTIVE,
    MANAGER_MODE_OBSERVE, /* not permitted to change anything */
    MANAGER_MODE_DRY_RUN,
    MANAGER_MODE_MAX,
    MANAGER_MODE_INVALID = -EINVAL,
} ManagerMode;

/* Since start. */
typedef struct ManagerStatistics {
    uint64_t probe_cpu_nsec, plan_cpu_nsec, act_cpu_nsec;
    uint64_t managed_cpu_usec; /* CPU time of all managed tasks */
    uint64_t n_done[PLAN_KIND_MAX];
    uint64_t n_outcome[PLAN_OUTCOME_MAX];
    uint64_t n_refused[PLAN_REASON_MAX];
    uint64_t n_reloads, n_reload_failures, n_topology_reloads;
    uint64_t n_foreign_restores;
    uint64_t tick_late_usec; /* lateness of the last tick that was due at a time */
    uint64_t tick_late_max_usec;
    uint64_t tick_cpu_usec; /* CPU time of the last tick, in this thread */
    uint64_t tick_cpu_max_usec;
} ManagerStatistics;

typedef struct Manager {
    ManagerOptions options;
    Log *log;
    sd_event *event;
    sd_event_source *psi_source;
    sd_event_source *signal_sources[3]; /* SIGTERM, SIGINT, SIGHUP */
    int root_fd, runtime_fd;
    int lock_fd, host_fd; /* locks of the runtime directory and the host; <0: not held */
    bool kept_elsewhere;  /* placements that are to stay were found in another runtime directory */

    Config *config;
    PolicySet *policies;
    bool reloaded;            /* since the last discovery */
    bool policies_name_users; /* some User= holds a login name */
    UserCache *users;

    ManagerMode mode;
    World *world;
    Probe *probe;
    Act *act;
    ActLeftover leftover; /* found at the start, and not put back */
    Orders *orders;       /* NULL: memory is not moved */
    sd_event_source *memory_source;
    struct ManagerEvidence *evidence; /* NULL: use of memory was never sampled */
    struct ManagerStall *stall;       /* NULL: waiting for memory was never counted */
    Plan plan;                        /* of the last tick */
    Would would;                      /* what acting would do for observed workloads, at the last slow tick */
    PlanOutcome *outcomes;
    size_t outcomes_capacity;
    Recorder *recorder; /* NULL: nothing is recorded */

    Pace pace;
    Moves *moves;
    Gains *gains;
    History *history;
    BusServer *bus;
    BusSystem *system_bus; /* NULL: not served */
    struct ObjectViews *views;
    bool objects_changed; /* the objects on the buses may have changed */
    TaskSet *released;    /* processes that the administrator released */
    Assignments *assigned;
    struct Assigning *assigning; /* calls of AssignProcess that wait for a tick */
    size_t n_assigning, assigning_capacity;
    struct Releasing *releasing; /* releases that take several ticks */
    size_t n_releasing, releasing_capacity;
    TaskSet *yielded; /* re-pinned processes, while the World is made anew; else NULL */
    bool paused;      /* everything, also workloads to come */
    uint64_t started_usec;
    uint64_t signals_sent;        /* in this tick */
    uint64_t due_usec;            /* when the next tick is due */
    uint64_t armed_usec;          /* when an event set due_usec; 0: the last tick did */
    uint64_t glanced_usec;        /* last tick or glance */
    uint64_t watchdog_usec;       /* time in which the service manager expects a tick; 0: no watchdog */
    uint64_t fed_usec;            /* when the watchdog was fed last */
    uint64_t topology_usec;       /* when reading the topology is tried again; 0: it was read */
    uint64_t topology_pause_usec; /* since the last try */
    uint64_t neighbours_usec;     /* last look for other software, 0: never */
    Neighbours neighbours;        /* as seen then */
    char status[160];             /* STATUS= as sent last */
    bool put_off;                 /* the last discovery could not read some processes yet */
    bool unfinished;              /* the last tick has left some of its work */
    bool told_descriptors;        /* their lack was logged */
    bool told_assigned;           /* that `assigned` cannot be written was logged */
    bool over_limit;              /* MaxTasks= was reached at the last discovery */
    int tick_error;               /* last errno of sensing, so that a lasting failure is logged once */
    ManagerStatistics statistics;
} Manager;

/* Takes the locks, puts back what a predecessor left, reads the configuration, checks the requirements, and
 * gets ready to run. Logs errors, in one line each; returns 0 or -errno. */
int manager_new(const ManagerOptions *options, Log *log, Manager **ret);
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager *, manager_free)

/* The manager behind a BusPeer, the userdata of handlers. */
static inline Manager *manager_of(void *userdata)
{
    const BusPeer *peer = userdata;

    return peer->userdata;
}

typedef enum ManagerRestore {
    MANAGER_RESTORE_ALL,
    MANAGER_RESTORE_CRASH, /* not what is to stay (KeepOnStop=), and nothing while another daemon runs */
} ManagerRestore;

/* Puts back what a daemon that no longer runs has left. Reads neither the configuration nor policies. Returns
 * 0, or -errno after logging why; -EREMOTEIO if something, also of another PID namespace, could not be put
 * back and stays in the journal. */
int manager_restore(const ManagerOptions *options, ManagerRestore what, Log *log);

/* Runs until a signal, or (options.once) until the plan was printed, and puts back what is not to stay.
 * Returns 0, or -errno if something could not be put back or the loop broke. */
int manager_run(Manager *manager);

/* manager/undo.c: the start and the stop. These functions log errors and return 0 or -errno. manager_undo_first() and
 * manager_open_act() return -EREMOTEIO if something could not be put back. */

/* Makes a manager that holds only its options; NULL: out of memory. */
Manager *manager_alloc(const ManagerOptions *options, Log *log);
int manager_open_root(Manager *manager);
/* Before any file is read: takes the locks if there is a journal, and puts back what a crash has left. */
int manager_undo_first(Manager *manager);
/* After the mode is chosen: puts back what was to stay, or counts what is left. */
int manager_open_act(Manager *manager);
/* Takes the locks of the runtime directory, which is created if missing, and of the host, if the mode needs
 * them and they are not held. --once needs none if it changes nothing. */
int manager_lock(Manager *manager);
/* At the stop: notes in the journal that everything is to stay. */
int manager_keep(Manager *manager);

/* As configured. A daemon that changes nothing, by its policies or for want of rights, only watches. */
PaceSettings manager_pace_settings(const Manager *manager);

PlanLimits manager_limits(const Manager *manager, bool slow_tick);

/* Sets due_usec: after each tick, and when an event asks for an earlier one. */
void manager_arm(Manager *manager);

/* Whether a tick would help before one is due: new processes can be looked for now, or threads wait that may
 * be lent a CPU, and one has become idle. Costs a system call. */
bool manager_glance(Manager *manager, uint64_t now_usec);

/* Makes one tick, after a glance: sense, plan, act, remember, and set the pace of the next. Returns 0, or
 * -errno that ends the daemon (-ENOMEM; with --once any failure to read or print). */
int manager_tick(Manager *manager);

/* Carries out `plan` and folds back its outcomes, for a tick or a release. manager_carry_out_slice() does
 * what a tick has time for; manager->unfinished says whether some is left. */
int manager_carry_out(Manager *manager, Plan *plan);
int manager_carry_out_slice(Manager *manager, Plan *plan);

/* Judges processes that the last discovery met for the first time (act_follow_births()). Returns 0 or -ENOMEM. */
int manager_follow_births(Manager *manager);

/* manager/notify.c: sd_notify(3); without a service manager nothing happens. Ticks feed the watchdog, and
 * manager_arm() has two of them in its time: a loop that turns without ticking is no better than one that hangs. */
void manager_notify_init(Manager *manager);
void manager_notify_ready(Manager *manager);
void manager_notify_reloading(void);
void manager_notify_stopping(void);
void manager_notify_ticked(Manager *manager);

/* Puts back the masks of a selection of processes (NULL: of all), as act_restore_persistently() does: up to
 * 330 s during a storm of forks. Feeds the watchdog first. */
int manager_put_back(Manager *manager, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* bus/vtables.c: a BusAddObjects; the peer's userdata is the Manager. include/numaplace/bus.h describes what
 * is served. */
int manager_bus_add(sd_bus *bus, BusPeer *peer);

/* manager/fence.c: makes cpuset confinement follow what was discovered. Returns 0 or -ENOMEM. */
int manager_follow_fences(Manager *manager);

/* manager/neighbours.c: looks for other software that decides about CPUs and memory, at most every ten
 * seconds. Logs changes, and pauses everything when numad is new. Returns 0 or -ENOMEM. */
int manager_neighbours_look(Manager *manager, uint64_t now_usec);

/* views/objects.c: calls `tell` for every connection of both buses. */
void manager_tell(Manager *manager, BusTell tell, void *userdata);
struct ObjectViews *object_views_free(struct ObjectViews *views);

/* manager/remember.c: ring, log, signals and counters. The first also needs manager->outcomes. Return 0 or -ENOMEM. */
int manager_remember_actions(Manager *manager, const Plan *plan);
int manager_remember_refusals(Manager *manager, const Plan *plan);
/* The same of what would_compute() found. */
int manager_remember_would(Manager *manager);
/* In slow ticks: adds to the history of the day. */
int manager_remember_course(Manager *manager);

/* manager/carry.c: whether a workload is only observed; and, in slow ticks, what acting would do for such
 * workloads. The second returns 0 or -ENOMEM. */
bool manager_observes(const Manager *manager, WorkloadIx workload);
int manager_look_ahead(Manager *manager);

/* Answers to probe (ProbeCallbacks); userdata is the Manager. */
bool manager_refuses(void *userdata, pid_t pid, uint64_t start_ticks);
bool manager_is_settled(void *userdata, const ProbeSubject *subject);
ProbeDecision manager_decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy);
int manager_assign(void *userdata, World *world, Process *process, size_t policy);
unsigned manager_wants_memory(void *userdata, const World *world, const Process *process);
void manager_hangs(void *userdata, const ProbeSubject *subject);
bool manager_fence_bound(void *userdata, const char *path, hwloc_bitmap_t ret);

/* Whether memory can lie on these nodes. Emulated nodes have none. Those of a description are another
 * machine's, unless its kernel tree is read as well (--root=). */
bool manager_has_memory(const Manager *manager, const Topology *topology);

/* manager/memory.c: migration requests, which last longer than ticks. If they cannot be set up, that is
 * logged and no memory moves. Stopping cancels all of them, and takes MOVER_END_USEC at most. */
void manager_memory_start(Manager *manager);
void manager_memory_stop(Manager *manager);
/* At the end of a tick: cancels requests that are no longer wanted. */
void manager_memory_ticked(Manager *manager, bool slow);

/* Fills in what policies match on. `user` stays NULL while no policy names users. */
void manager_subject(Manager *manager, const ProbeSubject *from, PolicySubject *ret);

/* Loads configuration and policies without touching the manager. Logs every message; the first error also
 * goes to *ret_error (malloc'd; may be NULL). Returns 0, -EBADMSG, or -ENOMEM. */
int manager_load(Manager *manager, const Topology *topology, Config **ret_config, PolicySet **ret_policies,
                 char **ret_error);

/* Loads, then swaps. An error while loading changes nothing; -EBADMSG is one. An error while swapping ends
 * the daemon, which would be between two states. */
int manager_reload(Manager *manager, char **ret_error);

/* Makes World and Probe for `topology` with the current configuration. Puts back everything first, and carries over
 * what must survive: pauses, token buckets, counters, group numbers, yielded processes. An error ends the daemon. */
int manager_rebuild(Manager *manager, Topology *topology);

/* In every discovery, `changed` if the topology has changed since the last one: reads it anew and rebuilds. If it
 * cannot be read, or a Probe cannot be made (descriptors may be exhausted), keeps the old one, logs that once, and
 * tries again after pauses that double. Returns 0 or -errno, which ends the daemon. */
int manager_follow_topology(Manager *manager, bool changed, uint64_t now_usec);

/* Requests of an administrator. `name` is a workload, a PID (release, resume), or "" for everything. Return
 * 0, or a positive ManagerAdmin, or -errno (-EREMOTEIO: something could not be put back). */
typedef enum ManagerAdmin {
    MANAGER_E_NO_SUCH_WORKLOAD = 1,
    MANAGER_E_NO_SUCH_PROCESS,
    MANAGER_E_LIMIT,
    MANAGER_E_BUSY, /* of manager_release(): MANAGER_RELEASING_MAX calls are under way */
    MANAGER_E_NO_SUCH_POLICY,
    MANAGER_E_LATER, /* of manager_release(): it takes several ticks; see manager_release_answer() */
} ManagerAdmin;

int manager_pause(Manager *manager, const char *name);
/* Pauses everything, but not for an administrator, and without logging that. */
void manager_stand_back(Manager *manager);
int manager_resume(Manager *manager, const char *name);
int manager_release(Manager *manager, const char *name);

/* manager/release.c: releases that take several ticks. */

/* Plans to put back a process, or (pid 0) a workload, or all of them (WORKLOAD_NONE). Returns as plan_release(). */
int manager_release_plan(Manager *manager, WorkloadIx workload, pid_t pid, Plan *plan);

/* Whether the release of a process, or (pid 0) of a workload, or of all of them (WORKLOAD_NONE), takes
 * several ticks. */
bool manager_release_is_long(Manager *manager, WorkloadIx workload, pid_t pid);
/* Whether as many releases are under way as may be. */
bool manager_release_is_full(const Manager *manager);
/* Begins such a release, unless manager_release_is_full(); `name`, the workload or "", is copied. Returns
 * MANAGER_E_LATER or -ENOMEM. */
int manager_release_begin(Manager *manager, const char *name, WorkloadIx workload, pid_t pid);
/* Keeps the call that caused the last manager_release_begin(), to answer it when the release is over. */
void manager_release_answer(Manager *manager, sd_bus_message *call);
/* What is released: a process, or (pid 0) a workload, or all of them (""). manager_is_released() is the
 * ActSelection.wants for it. */
typedef struct ManagerReleased {
    World *world;
    const char *name;
    pid_t pid;
} ManagerReleased;
bool manager_is_released(void *userdata, pid_t pid, const char *workload);
/* Takes a step of every release, in each tick. Returns 0 or -ENOMEM. */
int manager_release_ticked(Manager *manager);
/* After a discovery that follows a reload: has children put back that inherited a mask from a process that
 * has ended, if its policy no longer places. No plan covers them. */
void manager_release_forgotten(Manager *manager);
void manager_release_done(Manager *manager);
/* Logs that the administrator has done it. */
void manager_tell_admin(Manager *manager, const char *what, const char *name);

/* manager/assign.c */

/* The owner of the process with this PID and start time. Returns 0, -ESRCH if there is none, or -errno. */
int manager_process_owner(Manager *manager, pid_t pid, uint64_t start_ticks, uid_t *ret);

/* Assigns a process to a policy by name, and has it placed in the next tick, which is due at once and answers
 * `call`. `starting`: the process will set the memory policy in the answer, for itself and its descendants.
 * Returns 0, MANAGER_E_NO_SUCH_POLICY, MANAGER_E_LIMIT, or -ENOMEM. */
int manager_assign_process(Manager *manager, sd_bus_message *call, const Assignment *who, bool starting);
/* Answers the waiting calls. */
void manager_answer_assigned(Manager *manager);

/* The index of the policy that a process is assigned to; SIZE_MAX if none is, or if it no longer exists. */
size_t manager_assigned_policy(Manager *manager, const ProbeSubject *subject);

/* After a discovery: forgets processes that have ended, and saves the rest for the next daemon. */
void manager_assignments_keep(Manager *manager);
/* At the start: loads what the previous daemon saved. Logs if that cannot be read, and keeps it as FILE.corrupt.
 * Returns 0, -ENOMEM, or the logged -errno if it cannot be kept. */
int manager_assignments_load(Manager *manager);
void manager_assignments_done(Manager *manager);

const char *manager_mode_name(ManagerMode mode);
