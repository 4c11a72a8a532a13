/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One turn of the loop. Its parts are timed separately, in CPU time of this thread, to show whether reading
 * /proc, deciding, or changing masks costs too much (MaxCPU=). The time for deciding, as a share of the
 * managed tasks' CPU time, is the "search time" by which stealing was always judged (P1, overload map). */

#include "act/fence/fence.h"
#include "base/human.h"
#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "daemon/manager/manager.h"
#include "daemon/stall.h"
#include "numaplace/messages.h"
#include "plan/home/sharing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* If all managed tasks together run for less than this much of one CPU, everything counts as asleep: a few timers. */
#define ASLEEP_PERMILLE 10U

#ifndef NDEBUG
/* A plan that breaks an invariant must not be carried out; in a debug build that is a bug to be shown at once. */
static bool plan_is_sound(Manager *manager, const PlanLimits *limits)
{
    CLEANUP_FREE char *what = NULL;

    if (plan_check(manager->world, manager->policies, limits, &manager->plan, &what) == 0)
        return true;
    log_error(manager->log, NULL, "the plan of tick %" PRIu64 " is broken, dropping it: %s",
              manager->plan.tick, what ? what : "?");
    return false;
}
#else
static bool plan_is_sound(Manager *manager, const PlanLimits *limits)
{
    return true;
}
#endif

/* Logs once that sensing fails, until it works again or fails in another way. */
static void note_sensing(Manager *manager, const char *what, int r)
{
    if (r == manager->tick_error)
        return;
    if (r < 0)
        log_warning(manager->log, NULL, "cannot read %s: %s; changing nothing until it works again", what,
                    strerror(-r));
    else
        log_notice(manager->log, NULL, "reading from the kernel works again");
    manager->tick_error = r;
}

/* Logs once that MaxTasks= is reached, until it no longer is. */
static void note_limit(Manager *manager)
{
    uint64_t n = probe_statistics(manager->probe)->n_over_limit;

    if (n > 0 && !manager->over_limit)
        log_warning(manager->log, NUMAPLACE_MESSAGE_LIMIT,
                    "MaxTasks=%" PRIu32 " is reached, leaving %" PRIu64 " %s alone",
                    manager->config->max_tasks, n, human_noun(n, "thread", "threads"));
    manager->over_limit = n > 0;
}

/* Logs once that processes and threads cannot be read for want of descriptors. */
static void note_descriptors(Manager *manager)
{
    struct rlimit limit = {0};

    if (manager->told_descriptors || probe_statistics(manager->probe)->n_no_descriptors == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    log_warning(manager->log, NUMAPLACE_MESSAGE_LIMIT,
                "too few descriptors (RLIMIT_NOFILE is %" PRIu64 "): leaving alone what cannot be read",
                (uint64_t)limit.rlim_cur);
    manager->told_descriptors = true;
}

/* Finds processes (between slow ticks only newcomers) and, when CPUs came or went, the new topology. *ret_found is
 * false when /proc could not be read. */
static int sense_slow(Manager *manager, bool slow, uint64_t now_usec, bool *ret_found)
{
    bool changes = manager->world->topology->origin == TOPOLOGY_ORIGIN_LIVE ||
                   manager->world->topology->origin == TOPOLOGY_ORIGIN_REHEARSAL;
    uint64_t n_put_off;
    int r;

    r = manager_follow_topology(manager, probe_topology_changed(manager->probe) && changes, now_usec);
    if (r < 0)
        return r;
    n_put_off = probe_statistics(manager->probe)->n_put_off;
    fences_sense(act_fences(manager->act));
    r = slow ? probe_discover(manager->probe, manager->world, now_usec)
             : probe_find_newcomers(manager->probe, manager->world, now_usec);
    manager->put_off = probe_statistics(manager->probe)->n_put_off > n_put_off;
    if (r == 0)
        r = manager_follow_births(manager);
    *ret_found = r == 0;
    if (r == 0)
        r = sharing_group(manager->world, manager->policies);
    if (r == 0)
        r = manager_follow_fences(manager);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        note_sensing(manager, "/proc", r);
    task_set_sweep(manager->released);
    manager_evidence_foresee(manager);
    if (*ret_found)
        manager_assignments_keep(manager);
    note_limit(manager);
    note_descriptors(manager);
    return manager_neighbours_look(manager, now_usec);
}

static uint64_t managed_run_permille(const World *world)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < world->n_workloads; i++)
        sum += world->workloads[i].run_permille;
    return sum;
}

static int print_plan(Manager *manager)
{
    CLEANUP_FREE char *text = plan_format(manager->world, &manager->plan);
    int r;

    if (!text)
        return -ENOMEM;
    errno = 0;
    if (fputs(text, stdout) != EOF && fflush(stdout) != EOF)
        return 0;
    r = errno ? -errno : -EIO;
    return log_failure(r, manager->log, NULL, "cannot write to standard output: %s", strerror(-r));
}

static int decide_and_act(Manager *manager, bool slow, uint64_t *cpu_nsec)
{
    PlanLimits limits = manager_limits(manager, slow);
    uint64_t now_nsec;
    int r = plan_compute(manager->world, manager->policies, &limits, &manager->plan);

    if (r < 0)
        return r;
    r = recorder_add(manager->recorder, &(TranscriptEntry){.world = manager->world,
                                                           .policies = manager->policies,
                                                           .limits = &limits,
                                                           .plan = &manager->plan});
    if (r < 0)
        return r;
    r = manager_remember_refusals(manager, &manager->plan);
    if (r < 0)
        return r;
    if (!plan_is_sound(manager, &limits))
        manager->plan.n_actions = 0;
    now_nsec = time_thread_cpu_nsec();
    manager->statistics.plan_cpu_nsec += now_nsec - *cpu_nsec;
    *cpu_nsec = now_nsec;

    if (manager->options.once) {
        r = print_plan(manager);
        if (r < 0)
            return r;
    }
    manager->world->action_cost_usec = act_cost_usec(manager->act);
    r = manager->options.once ? manager_carry_out(manager, &manager->plan)
                              : manager_carry_out_slice(manager, &manager->plan);
    now_nsec = time_thread_cpu_nsec();
    manager->statistics.act_cpu_nsec += now_nsec - *cpu_nsec;
    *cpu_nsec = now_nsec;
    return r;
}

/* --once plans once, on its last tick: when loads are known, and every process that can be read was. */
static bool is_early(const Manager *manager)
{
    uint64_t tick = manager->world->tick;

    return manager->options.once &&
           (tick < MANAGER_ONCE_TICKS || (manager->put_off && tick < MANAGER_ONCE_TICKS_MAX));
}

bool manager_glance(Manager *manager, uint64_t now_usec)
{
    bool discover = pace_may_discover(&manager->pace, now_usec);
    bool help = manager->plan.full && pace_may_tick(&manager->pace, now_usec);

    if (!discover && !help)
        return false;
    probe_glance(manager->probe);
    return (discover && probe_newcomers(manager->probe)) ||
           (help && probe_room(manager->probe, manager->world, manager->plan.n_waiting));
}

/* Continues an unfinished discovery by one step; with --once, to its end. */
static int go_on(Manager *manager)
{
    int r = 0;

    if (probe_unfinished(manager->probe))
        r = probe_go_on(manager->probe, manager->world);
    while (r == 0 && manager->options.once && probe_unfinished(manager->probe))
        r = probe_go_on(manager->probe, manager->world);
    return r;
}

/* The number of processes that have joined a workload and of tasks that have ended. */
static uint64_t n_member_changes(const Manager *manager)
{
    const ProbeStatistics *statistics = probe_statistics(manager->probe);

    return statistics->n_taken + statistics->n_gone;
}

static PacePress press_of(const Manager *manager)
{
    const Plan *plan = &manager->plan;

    if (manager->options.once)
        return PACE_PRESSED;
    return !plan->pressed ? PACE_CALM : plan->full ? PACE_FULL : PACE_PRESSED;
}

/* Records how workloads fare, and plans what acting would do for observed ones. */
static int look_back_and_ahead(Manager *manager)
{
    int r = gains_look(manager->gains, manager->world);

    if (r == 0)
        r = manager_remember_course(manager);
    return r < 0 ? r : manager_look_ahead(manager);
}

int manager_tick(Manager *manager)
{
    uint64_t now = time_now_usec(), start = time_thread_cpu_nsec(), slow_cost = 0, cpu, run;
    bool slow = pace_slow_due(&manager->pace, now) || (manager->options.once && manager->put_off);
    uint64_t n_changes = n_member_changes(manager);
    bool found = true;
    int r, sampled;

    manager->signals_sent = 0;
    if (slow || (pace_may_discover(&manager->pace, now) && probe_newcomers(manager->probe))) {
        r = sense_slow(manager, slow, now, &found);
        if (r < 0)
            return r;
        slow_cost = time_thread_cpu_nsec() - start;
    }
    r = go_on(manager);
    if (r < 0)
        return r;
    sampled = probe_sample(manager->probe, manager->world, now);
    if (sampled == -ENOMEM)
        return sampled;
    if (found)
        note_sensing(manager, "CPU times", sampled);
    if (manager->options.once && (sampled < 0 || !found))
        return sampled < 0 ? sampled : -EIO;
    manager_stall_take_in(manager);
    cpu = time_thread_cpu_nsec();
    manager->statistics.probe_cpu_nsec += cpu - start;

    run = managed_run_permille(manager->world);
    manager->statistics.managed_cpu_usec += run * manager->world->interval_usec / 1000;

    /* With --once, the last tick also plans homes, whether or not it is a slow one. */
    if (!is_early(manager)) {
        r = decide_and_act(manager, ((slow || manager->unfinished) && found) || manager->options.once, &cpu);
        if (r < 0)
            return r;
        if (slow && found && !manager->options.once) {
            uint64_t before = cpu;

            r = look_back_and_ahead(manager);
            if (r < 0)
                return r;
            cpu = time_thread_cpu_nsec();
            slow_cost += cpu - before;
            manager->statistics.plan_cpu_nsec += cpu - before;
            manager_release_forgotten(manager);
        }
        r = manager_release_ticked(manager);
        if (r < 0)
            return r;
        manager_memory_ticked(manager, slow);
        /* Processes that have just got several nodes to live on are sampled from now on. */
        r = manager_evidence_ticked(manager, slow || manager->plan.n_homes > 0);
        if (r < 0)
            return r;
        manager_stall_begin(manager);
        if (manager->options.once)
            return sd_event_exit(manager->event, 0);
    }
    assert(cpu - start >= slow_cost);
    pace_ticked(&manager->pace, now, slow, press_of(manager),
                (run < ASLEEP_PERMILLE || manager->plan.settled) && !manager->options.once,
                cpu - start - slow_cost, slow_cost);
    pace_unfinished(&manager->pace, manager->unfinished || probe_unfinished(manager->probe));
    if (n_member_changes(manager) > n_changes)
        pace_members_changed(&manager->pace);
    return 0;
}
