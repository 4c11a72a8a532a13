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
 *   stall.c              and how much they wait for it
 *   manager/remember.c   outcomes of a plan: ring, log, signals
 *   manager/match.c      which policy a process is under (asked by probe)
 *   manager/reload.c     new configuration, policies or topology
 *   manager/admin.c      pause, resume, release
 *   manager/release.c    release of very many threads
 *   manager/assign.c     processes assigned to a policy by name
 *   views/describe.c     answers on the bus: what there is
 *   views/explain.c      and why
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

/* Signals per tick to all clients together, but for one of which everybody hears; more moves than that are fetched
 * with ListMoves. A signal takes some 20 us to build and 3 us to send, so this is 10 ms of a tick at worst. */
#define MANAGER_SIGNALS_PER_TICK   512U
#define MANAGER_SIGNALS_PER_CLIENT 64U /* as include/numaplace/bus.h says */

/* Processes the administrator took out one by one; a limit against scripts that never resume. */
#define MANAGER_RELEASED_MAX 4096U

/* Calls of AssignProcess that wait for the tick that carries them out; each is a message of a client. */
#define MANAGER_ASSIGNING_MAX 256U

/* The same of calls of Release that take several ticks; and what takes that long: threads, 70 us each. */
#define MANAGER_RELEASING_MAX   64U
#define MANAGER_RELEASE_AT_ONCE 1024U

/* What a program that plans once needs to see first: a base line, and the two ticks an overload takes (P1).
 */
#define MANAGER_ONCE_TICKS 3U

/* How long it waits for who cannot be read yet (probe/tasks/aside.h). */
#define MANAGER_ONCE_TICKS_MAX 30U

/* What was asked for on the command line. Strings are borrowed and outlive the manager. */
typedef struct ManagerOptions {
    const char *config_path;               /* NULL: search */
    const char *const *policy_directories; /* NULL-terminated */
    const char *runtime_directory;         /* not used with once && dry_run */
    const char *root;                      /* "/" is this machine */
    TopologyOptions topology;
    bool dry_run;
    bool once; /* plan once, print the plan on standard output, stop */
    bool system_bus;
    const char *record; /* a file for all plans, NULL: none */
    const struct ProgressEvents *counters; /* what is counted, NULL: what the processor has */
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
    uint64_t tick_late_usec; /* what the last tick that was due at a time was late, */
    uint64_t tick_late_max_usec;
    uint64_t tick_cpu_usec; /* and what it took of this thread's time, */
    uint64_t tick_cpu_max_usec;
} ManagerStatistics;

typedef struct Manager {
    ManagerOptions options;
    Log *log;
    sd_event *event;
    sd_event_source *psi_source;
    sd_event_source *signal_sources[3]; /* SIGTERM, SIGINT, SIGHUP */
    int root_fd, runtime_fd;
    int lock_fd, host_fd; /* of the runtime directory, and of the host; -1: not held */

    Config *config;
    PolicySet *policies;
    bool reloaded;            /* since the last discovery */
    bool policies_name_users; /* some User= holds a login name */
    UserCache *users;

    ManagerMode mode;
    World *world;
    Probe *probe;
    Act *act;
    ActLeftover leftover; /* at the start, when it is not put back */
    Orders *orders;       /* NULL: memory is not moved */
    sd_event_source *memory_source;
    struct ManagerEvidence *evidence; /* NULL: it was not tried who uses which memory */
    struct ManagerStall *stall;       /* NULL: nor was it counted who waits for memory */
    Plan plan;                        /* of the last tick */
    Would would;                      /* of workloads that are only observed; of the last slow tick */
    PlanOutcome *outcomes;
    size_t outcomes_capacity;
    Recorder *recorder; /* NULL: nothing is recorded */

    Pace pace;
    Moves *moves;
    Gains *gains;
    History *history;
    BusServer *bus;
    BusSystem *system_bus; /* NULL: it is not served */
    struct ObjectViews *views;
    bool objects_changed; /* what clients are told about objects may have changed */
    TaskSet *released;    /* processes the administrator took out */
    Assignments *assigned;
    struct Assigning *assigning; /* calls that wait for a tick */
    size_t n_assigning, assigning_capacity;
    struct Releasing *releasing; /* what is released in many steps */
    size_t n_releasing, releasing_capacity;
    TaskSet *yielded; /* re-pinned ones, carried over while the World is made anew; else NULL */
    bool paused;      /* everything, also workloads still to come */
    uint64_t started_usec;
    uint64_t signals_sent;    /* in this tick */
    uint64_t due_usec;        /* when the next tick is due */
    uint64_t armed_usec;      /* when an event has said so, 0: the last tick did */
    uint64_t glanced_usec;    /* when there last was a tick, or a glance whether one would help */
    uint64_t watchdog_usec;   /* within which the service manager wants to hear of a tick, 0: it does not */
    uint64_t fed_usec;        /* when it was told last */
    uint64_t neighbours_usec; /* when it was looked who else is there, 0: never */
    Neighbours neighbours;    /* as seen then */
    char status[160];         /* STATUS= as told last */
    bool put_off;             /* the last discovery has not asked about everybody */
    bool unfinished;          /* the last tick has not done all that it was to do */
    bool told_descriptors;    /* that there are too few */
    bool over_limit;          /* MaxTasks= was reached at the last discovery */
    int tick_error;           /* last errno of sensing, so that a lasting failure is said once */
    ManagerStatistics statistics;
} Manager;

/* Takes the locks, restores what a predecessor left, reads the configuration, checks what the program needs,
 * and gets ready to run. What is wrong is logged, in one line each; returns 0 or -errno. */
int manager_new(const ManagerOptions *options, Log *log, Manager **ret);
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager *, manager_free)

typedef enum ManagerRestore {
    MANAGER_RESTORE_ALL,
    MANAGER_RESTORE_CRASH, /* not what is to stay (KeepOnStop=), and nothing while another daemon runs */
} ManagerRestore;

/* Puts back what a daemon that is not running any more has left, and nothing else: neither the configuration nor
 * policies are read. Returns 0, or -errno after saying why; -EREMOTEIO when something could not be put back, and
 * stays in the journal. */
int manager_restore(const ManagerOptions *options, ManagerRestore what, Log *log);

/* Runs until a signal, or (options.once) until the plan was printed, and puts everything back. Returns 0, or
 * -errno when something could not be put back or the loop broke. */
int manager_run(Manager *manager);

/* manager/undo.c: the start and the stop. What is wrong is said; all return 0 or -errno, and the second and third
 * -EREMOTEIO when something could not be put back. */

/* A manager that holds nothing but what it was asked; NULL when memory is out. */
Manager *manager_alloc(const ManagerOptions *options, Log *log);
int manager_open_root(Manager *manager);
/* Before any file is read: takes the locks when there is a journal, and puts back what a crash has left. */
int manager_undo_first(Manager *manager);
/* In the mode that is settled now: puts back what was to stay, or counts what is left. */
int manager_open_act(Manager *manager);
/* The runtime directory, its lock and that of the host, as far as the mode needs them and they are not held; none
 * for a program that only looks once. */
int manager_lock(Manager *manager);
/* At the stop: everything is to stay. */
int manager_keep(Manager *manager);

/* As the configuration says; of a daemon that changes nothing, by its policies or for want of rights, so that it only
 * watches. */
PaceSettings manager_pace_settings(const Manager *manager);

PlanLimits manager_limits(const Manager *manager, bool slow_tick);

/* Sets due_usec: after each tick, and when somebody asked for an earlier one. */
void manager_arm(Manager *manager);

/* Whether a tick would help before one is due: processes have begun that can be looked for now, or threads wait that
 * may be lent a CPU, and one has become idle. Costs a system call. */
bool manager_glance(Manager *manager, uint64_t now_usec);

/* One tick, after a glance: sense, plan, act, remember, and arm the next. Returns 0, or -errno that ends the daemon
 * (-ENOMEM). */
int manager_tick(Manager *manager);

/* Carries out `plan` and folds it back: what a tick and an administrator's release have in common. A tick does what
 * it can spare the time for; manager->unfinished says whether that was not all. */
int manager_carry_out(Manager *manager, Plan *plan);
int manager_carry_out_slice(Manager *manager, Plan *plan);

/* Has those judged that the last discovery met first (act_follow_births()). Returns 0 or -ENOMEM. */
int manager_follow_births(Manager *manager);

/* manager/notify.c: sd_notify(3); without a service manager nothing happens. The watchdog is fed by ticks, and
 * manager_arm() has two of them in its time, because a loop that turns without ticking is as good as one that hangs. */
void manager_notify_init(Manager *manager);
void manager_notify_ready(Manager *manager);
void manager_notify_reloading(void);
void manager_notify_stopping(void);
void manager_notify_ticked(Manager *manager);

/* Puts back the masks of a selection of processes (NULL: of all), as act_restore_persistently() does: up to 330 s
 * beside a storm of forks. The watchdog is fed first, so that what went before does not count. */
int manager_put_back(Manager *manager, const ActSelection *selection, size_t *ret_restored, size_t *ret_left);

/* bus/vtables.c: a BusAddObjects; the peer's userdata is the Manager. include/numaplace/bus.h is the manual of what is
 * served. */
int manager_bus_add(sd_bus *bus, BusPeer *peer);

/* manager/fence.c: lets fences follow what was discovered. Returns 0 or -ENOMEM. */
int manager_follow_fences(Manager *manager);

/* manager/neighbours.c: looks who else decides about CPUs and memory, at most once in ten seconds, says what has
 * changed, and pauses everything when numad is new among them. Returns 0 or -ENOMEM. */
int manager_neighbours_look(Manager *manager, uint64_t now_usec);

/* views/objects.c: calls `tell` for every connection of both buses. */
void manager_tell(Manager *manager, BusTell tell, void *userdata);
struct ObjectViews *object_views_free(struct ObjectViews *views);

/* manager/remember.c: ring, log, signals and counters. The first also needs manager->outcomes. Return 0 or
 * -ENOMEM. */
int manager_remember_actions(Manager *manager, const Plan *plan);
int manager_remember_refusals(Manager *manager, const Plan *plan);
/* What would_compute() found. */
int manager_remember_would(Manager *manager);
/* In slow ticks: how it goes, for the report of the day. */
int manager_remember_course(Manager *manager);

/* manager/carry.c: whether a workload is only observed; and, in slow ticks, what acting would do for those. The second
 * returns 0 or -ENOMEM. */
bool manager_observes(const Manager *manager, WorkloadIx workload);
int manager_look_ahead(Manager *manager);

/* What probe asks (ProbeCallbacks); userdata is the Manager. */
bool manager_refuses(void *userdata, pid_t pid, uint64_t start_ticks);
bool manager_is_settled(void *userdata, const ProbeSubject *subject);
ProbeDecision manager_decide(void *userdata, const ProbeSubject *subject, size_t *ret_policy);
int manager_assign(void *userdata, World *world, Process *process, size_t policy);
unsigned manager_wants_memory(void *userdata, const World *world, const Process *process);
void manager_hangs(void *userdata, const ProbeSubject *subject);
bool manager_fence_bound(void *userdata, const char *path, hwloc_bitmap_t ret);

/* Whether memory has a place on these nodes: pretend nodes have none, and those of a description are not this
 * machine's. */
bool manager_has_memory(const Manager *manager, const Topology *topology);

/* manager/memory.c: orders to move memory, which last longer than ticks. What could not be set up is said, and then no
 * memory is moved. Stopping cancels all of them, and takes MOVER_END_USEC at most. */
void manager_memory_start(Manager *manager);
void manager_memory_stop(Manager *manager);
/* At the end of a tick: cancels what is not wanted any more. */
void manager_memory_ticked(Manager *manager, bool slow);

/* Fills what policies look at from what was read. `user` stays NULL while no policy names users. */
void manager_subject(Manager *manager, const ProbeSubject *from, PolicySubject *ret);

/* Loads configuration and policies without touching the manager. Every message goes to the log; the first
 * error also to *ret_error (malloc'd; may be NULL). Returns 0, -EBADMSG, or -ENOMEM. */
int manager_load(Manager *manager, const Topology *topology, Config **ret_config, PolicySet **ret_policies,
                 char **ret_error);

/* Reload: load, then swap. On -EBADMSG nothing has changed; any other error ends the daemon. */
int manager_reload(Manager *manager, char **ret_error);

/* Makes World and Probe for `topology` with the present configuration, carrying over what must survive:
 * pauses, buckets, counters, group numbers, yielded processes. Everything that was placed is put back first.
 * On error the old ones stay. */
int manager_rebuild(Manager *manager, Topology *topology);

/* The topology changed: reads it anew and rebuilds; on failure the old one is kept and the log says so. */
int manager_reload_topology(Manager *manager);

/* What an administrator asked for. `name` is a workload, a pid (release, resume), or "" for everything.
 * Return 0, or a positive ManagerAdmin, or -errno (-EREMOTEIO: something could not be put back). */
typedef enum ManagerAdmin {
    MANAGER_E_NO_SUCH_WORKLOAD = 1,
    MANAGER_E_NO_SUCH_PROCESS,
    MANAGER_E_LIMIT,
    MANAGER_E_NO_SUCH_POLICY,
    MANAGER_E_LATER, /* of manager_release(): it takes several ticks; see manager_release_answer() */
} ManagerAdmin;

int manager_pause(Manager *manager, const char *name);
/* As manager_pause() of everything, not by an administrator, and without a word. */
void manager_stand_back(Manager *manager);
int manager_resume(Manager *manager, const char *name);
int manager_release(Manager *manager, const char *name);

/* manager/release.c: what is released when that takes several ticks. */

/* What puts back a process, or (pid 0) a workload, or all of them (WORKLOAD_NONE). As plan_release(). */
int manager_release_plan(Manager *manager, WorkloadIx workload, pid_t pid, Plan *plan);

/* Whether that is so: of a process, or (pid 0) of a workload, or all of them (WORKLOAD_NONE). */
bool manager_release_is_long(Manager *manager, WorkloadIx workload, pid_t pid);
/* Begins it; what it was called by is remembered. Returns MANAGER_E_LATER, MANAGER_E_LIMIT, or -ENOMEM. */
int manager_release_begin(Manager *manager, const char *name, WorkloadIx workload, pid_t pid);
/* The call that the last manager_release_begin() came of, to be answered when it is over. */
void manager_release_answer(Manager *manager, sd_bus_message *call);
/* What is released: a process, or (pid 0) a workload, or all of them (""); and ActSelection.wants for that. */
typedef struct ManagerReleased {
    World *world;
    const char *name;
    pid_t pid;
} ManagerReleased;
bool manager_is_released(void *userdata, pid_t pid, const char *workload);
/* A step of all that are under way, with each tick. Returns 0 or -ENOMEM. */
int manager_release_ticked(Manager *manager);
/* After a discovery. What has ended is in no plan; whoever has inherited a mask from it is put back when its policy has
 * gone. */
void manager_release_forgotten(Manager *manager);
void manager_release_done(Manager *manager);
/* Says in the log that the administrator has done it. */
void manager_tell_admin(Manager *manager, const char *what, const char *name);

/* manager/assign.c */

/* Whether a process with this number and start time is there, and whose it is. -ESRCH: not; or -errno. */
int manager_process_owner(Manager *manager, pid_t pid, uint64_t start_ticks, uid_t *ret);

/* Puts a process under a policy by its name and has it placed in the next tick, which is due at once; `call` is
 * answered then. `starting`: the process will give itself the memory policy it is answered, for itself and its
 * descendants. Returns 0, MANAGER_E_NO_SUCH_POLICY, MANAGER_E_LIMIT, or -ENOMEM. */
int manager_assign_process(Manager *manager, sd_bus_message *call, const Assignment *who, bool starting);
/* Answers the calls that wait. */
void manager_answer_assigned(Manager *manager);

/* The policy a process is assigned to: its index, SIZE_MAX when none is or there is none of that name any more. */
size_t manager_assigned_policy(Manager *manager, const ProbeSubject *subject);

/* After a discovery: forgets who has ended, and keeps the rest for the next daemon. */
void manager_assignments_keep(Manager *manager);
/* At the start: takes over what the daemon before has kept. Returns 0 or -ENOMEM. */
int manager_assignments_load(Manager *manager);
void manager_assignments_done(Manager *manager);

/* Whether the text is a process number, and which. */
bool manager_is_pid(const char *text, pid_t *ret);

const char *manager_mode_name(ManagerMode mode);
