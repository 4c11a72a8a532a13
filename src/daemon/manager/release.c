/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A release may concern a hundred thousand threads. Then each tick puts back some of them, and the call is answered
 * when none is left:
 *
 *     THREADS    those of the World, by a plan made anew in each tick until it is empty. They are not placed again
 *        |       meanwhile: their workload is paused, or the process has none
 *     REST       those not in the World: threads created just now, and children (act_restore_slowly())
 *        |
 *     answered
 *
 * A daemon that stops or is killed in between has the journal, as always. */

#include "base/time.h"
#include "daemon/manager/manager.h"
#include "numaplace/bus.h"
#include "numaplace/messages.h"

#include <stdio.h>
#include <string.h>

typedef enum ReleaseState {
    RELEASE_THREADS,
    RELEASE_REST,
} ReleaseState;

typedef struct Releasing {
    ReleaseState state;
    char *name; /* of the workload; "": all of them, or a process */
    pid_t pid;  /* 0: a workload */
    sd_bus_message *call;
    int error;
} Releasing;

static bool is_about(const World *world, const Process *process, WorkloadIx workload, pid_t pid)
{
    return pid > 0 ? process->pid == pid : workload.i < 0 || process->workload.i == workload.i;
}

bool manager_release_is_long(Manager *manager, WorkloadIx workload, pid_t pid)
{
    const World *world = manager->world;
    size_t sum = 0;

    for (size_t i = 0; i < world->n_processes; i++) {
        size_t n;

        (void)world_process_tasks(world, &world->processes[i], &n);
        if (is_about(world, &world->processes[i], workload, pid))
            sum += n;
    }
    return manager->mode == MANAGER_MODE_ACTIVE && sum > MANAGER_RELEASE_AT_ONCE;
}

bool manager_release_is_full(const Manager *manager)
{
    return manager->n_releasing >= MANAGER_RELEASING_MAX;
}

int manager_release_begin(Manager *manager, const char *name, WorkloadIx workload, pid_t pid)
{
    char *copy;

    assert(!manager_release_is_full(manager));
    if (!GROW(manager->releasing, manager->releasing_capacity, manager->n_releasing + 1))
        return -ENOMEM;
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    manager->releasing[manager->n_releasing++] = (Releasing){.name = copy, .pid = pid};
    /* All processes are asked about again, and manager_refuses() says that this one is not to be placed. */
    if (pid > 0)
        probe_set_wants(manager->probe, manager->policies->wants);
    pace_now(&manager->pace, time_now_usec());
    manager_arm(manager);
    return MANAGER_E_LATER;
}

void manager_release_answer(Manager *manager, sd_bus_message *call)
{
    assert(manager->n_releasing > 0);
    manager->releasing[manager->n_releasing - 1].call = sd_bus_message_ref(call);
}

static void done(Releasing *releasing)
{
    free(releasing->name);
    sd_bus_message_unref(releasing->call);
}

void manager_release_done(Manager *manager)
{
    for (size_t i = 0; i < manager->n_releasing; i++)
        done(&manager->releasing[i]);
    free(manager->releasing);
}

bool manager_is_released(void *userdata, pid_t pid, const char *workload)
{
    const ManagerReleased *released = userdata;
    const Process *process;

    if (released->pid > 0 || !*released->name)
        return released->pid == 0 || pid == released->pid;
    process = world_process(released->world, pid);
    if (process && process->workload.i >= 0)
        workload = released->world->workloads[process->workload.i].name;
    return workload && strcmp(workload, released->name) == 0;
}

static bool is_forgotten(void *userdata, pid_t pid, const char *workload)
{
    const Manager *manager = userdata;
    const Process *process = world_process(manager->world, pid);
    const Workload *known = workload ? world_workload_by_name(manager->world, workload) : NULL;
    const Policy *policy = known ? manager->policies->policies[known->policy] : NULL;

    if (!workload || (process && !process->gone && process->workload.i >= 0))
        return false;
    return !policy || policy->act == POLICY_ACT_OBSERVE || policy->mode == POLICY_MODE_NONE;
}

void manager_release_forgotten(Manager *manager)
{
    if (manager->reloaded)
        act_search(manager->act, &(ActSelection){.wants = is_forgotten, .userdata = manager});
    manager->reloaded = false;
}

int manager_release_plan(Manager *manager, WorkloadIx workload, pid_t pid, Plan *plan)
{
    int r = plan_release(manager->world, workload, PLAN_RULE_PAUSED, plan);
    size_t n = 0;

    for (size_t i = 0; i < plan->n_actions; i++)
        if (pid == 0 || plan->actions[i].subject.pid == pid)
            plan->actions[n++] = plan->actions[i];
    plan->n_actions = n;
    return r;
}

/* Puts back as many threads as a tick has time for. Returns 1 if there were none, 0, or -errno. */
static int put_back_some(Manager *manager, const Releasing *releasing)
{
    const Workload *workload =
        *releasing->name ? world_workload_by_name(manager->world, releasing->name) : NULL;
    WorkloadIx ix = world_workload_index(manager->world, workload);
    bool unfinished = manager->unfinished;
    Plan plan = {0};
    int r = 0;

    if (*releasing->name && !workload)
        return 1; /* its policy has gone, and everything was put back with it */
    r = manager_release_plan(manager, ix, releasing->pid, &plan);
    if (r == 0 && plan.n_actions == 0)
        r = 1;
    if (r == 0)
        r = manager_carry_out_slice(manager, &plan);
    manager->unfinished |= unfinished;
    plan_done(&plan);
    return r;
}

static void answer(Manager *manager, const Releasing *releasing)
{
    char pid[16];
    const char *name = releasing->name;

    (void)snprintf(pid, sizeof(pid), "%d", (int)releasing->pid);
    if (releasing->pid > 0)
        name = pid;
    if (releasing->error < 0)
        log_error(manager->log, NUMAPLACE_MESSAGE_NOT_RESTORED,
                  "not all threads of %s could be put back; they stay in the undo journal",
                  *name ? name : "all workloads");
    else
        manager_tell_admin(manager, "released", name);
    if (!releasing->call)
        return;
    if (releasing->error < 0)
        (void)sd_bus_reply_method_errorf(releasing->call, NUMAPLACE_ERROR_NOT_RESTORED,
                                         "not all of '%s' could be put back; see the log", name);
    else
        (void)sd_bus_reply_method_return(releasing->call, NULL);
}

/* Whether the released process is in the World without a workload, which the next discovery ends. If it was resumed
 * meanwhile, it has a workload again. */
static bool is_leaving(const Manager *manager, const Releasing *releasing)
{
    const Process *process = releasing->pid > 0 ? world_process(manager->world, releasing->pid) : NULL;

    return process && !process->gone && process->workload.i < 0;
}

/* Returns 1 when the release is over, 0, or -errno. */
static int step(Manager *manager, Releasing *releasing)
{
    ManagerReleased released = {manager->world, releasing->name, releasing->pid};
    const ActSelection selection = {.wants = manager_is_released, .userdata = &released};
    int r;

    /* Each discovery must ask about the process, or it would be swept from manager->released. When it has
     * left the World, probe sees to that. */
    if (releasing->pid > 0)
        probe_ask_about(manager->probe, releasing->pid);
    switch (releasing->state) {
    case RELEASE_THREADS:
        r = put_back_some(manager, releasing);
        if (r <= 0)
            return r;
        releasing->error = act_restore_slowly(manager->act, &selection);
        releasing->state = RELEASE_REST;
        return 0;
    case RELEASE_REST:
        if (act_is_restoring(manager->act, &selection) || is_leaving(manager, releasing))
            return 0;
        r = act_restoring_error(manager->act);
        if (releasing->error == 0)
            releasing->error = r;
        answer(manager, releasing);
        return 1;
    }
    return 1;
}

int manager_release_ticked(Manager *manager)
{
    size_t kept = 0;
    int r = 0;

    for (size_t i = 0; i < manager->n_releasing; i++) {
        int over = r == 0 ? step(manager, &manager->releasing[i]) : 0;

        if (over < 0)
            r = over;
        if (over > 0)
            done(&manager->releasing[i]);
        else
            manager->releasing[kept++] = manager->releasing[i];
    }
    manager->n_releasing = kept;
    manager->unfinished |= kept > 0;
    return r;
}
