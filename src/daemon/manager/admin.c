/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What an administrator can request.
 *
 *   pause    nothing new is done; the next plan recalls leases; homes stay, so that resuming costs nothing
 *   release  everything done to it is put back now, and it is left alone
 *   resume   undoes both
 *
 * A workload remembers this itself (Workload.paused). A single process is taken out of its workload:
 * manager_refuses() names it to probe, so it leaves the World at the next discovery. */

#include "base/scan.h"
#include "base/time.h"
#include "daemon/manager/manager.h"
#include "numaplace/messages.h"

#include <stdio.h>

/* Pauses or resumes one workload, or all for "". Workload names that look like numbers win over PIDs. */
static int set_paused(Manager *manager, const char *name, bool paused)
{
    if (!*name) {
        manager->paused = paused;
        for (size_t i = 0; i < manager->world->n_workloads; i++)
            manager->world->workloads[i].paused = paused;
    } else {
        Workload *workload = world_workload_by_name(manager->world, name);

        if (!workload)
            return MANAGER_E_NO_SUCH_WORKLOAD;
        workload->paused = paused;
    }
    manager->objects_changed = true;
    /* The next plan acts on it, and is due now. */
    pace_now(&manager->pace, time_now_usec());
    manager_arm(manager);
    return 0;
}

void manager_tell_admin(Manager *manager, const char *what, const char *name)
{
    LogFields fields = {0};

    log_fields_add(&fields, "NUMAPLACE_WORKLOAD", "%s", name);
    log_record(manager->log, LOG_NOTICE, NUMAPLACE_MESSAGE_ADMINISTRATOR, &fields,
               "%s by the administrator: %s", what, *name ? name : "everything");
}

int manager_pause(Manager *manager, const char *name)
{
    int r = set_paused(manager, name, true);

    if (r == 0)
        manager_tell_admin(manager, "paused", name);
    return r;
}

void manager_stand_back(Manager *manager)
{
    (void)set_paused(manager, "", true);
}

int manager_resume(Manager *manager, const char *name)
{
    pid_t pid;
    int r = set_paused(manager, name, false);

    if (!*name)
        task_set_clear(manager->released);
    if (r == MANAGER_E_NO_SUCH_WORKLOAD && scan_pid(name, &pid)) {
        if (!task_set_remove(manager->released, pid) && !world_process(manager->world, pid))
            return MANAGER_E_NO_SUCH_PROCESS;
        pace_now(&manager->pace, time_now_usec());
        manager_arm(manager);
        r = 0;
    }
    if (r == 0)
        manager_tell_admin(manager, "resumed", name);
    return r;
}

/* Puts back through a plan, so that the World knows. restore() then does so from the journal, which also
 * knows children that inherited a mask. pid 0: all of the workload. */
static int put_back(Manager *manager, WorkloadIx workload, pid_t pid)
{
    Plan plan = {0};
    int r = manager_release_plan(manager, workload, pid, &plan);

    if (r == 0)
        r = manager_carry_out(manager, &plan);
    plan_done(&plan);
    return r;
}

/* Puts back from the journal. `what` is for the log: what could not be put back. */
static int restore(Manager *manager, const char *name, pid_t pid, const char *what)
{
    ManagerReleased released = {manager->world, name, pid};
    const ActSelection selection = {.wants = manager_is_released, .userdata = &released};
    size_t restored = 0, left = 0;
    int r = manager_put_back(manager, pid > 0 || *name ? &selection : NULL, &restored, &left);

    if (r < 0)
        log_error(manager->log, NUMAPLACE_MESSAGE_NOT_RESTORED,
                  "not all threads of %s could be put back; they stay in the undo journal", what);
    return r;
}

static int release_process(Manager *manager, pid_t pid)
{
    const Process *process = world_process(manager->world, pid);
    char what[32];
    bool is_long;
    int r;

    if (!process || process->gone)
        return MANAGER_E_NO_SUCH_PROCESS;
    if (task_set_size(manager->released) >= MANAGER_RELEASED_MAX)
        return MANAGER_E_LIMIT;
    is_long = manager_release_is_long(manager, WORKLOAD_NONE, pid);
    if (is_long && manager_release_is_full(manager))
        return MANAGER_E_BUSY;
    r = task_set_add(manager->released, pid, process->start_ticks);
    if (r < 0)
        return r;
    if (is_long)
        return manager_release_begin(manager, "", WORKLOAD_NONE, pid);
    r = put_back(manager, process->workload, pid);
    if (r < 0)
        return r;
    (void)snprintf(what, sizeof(what), "process %d", (int)pid);
    r = restore(manager, "", pid, what);
    if (r < 0)
        return r == -ENOMEM ? r : -EREMOTEIO;
    /* The process leaves the World before another plan can be made for it. The next discovery asks about all
     * processes once more, and from then on about this one each time (manager_refuses()). */
    probe_set_wants(manager->probe, manager->policies->wants);
    r = probe_discover(manager->probe, manager->world, time_now_usec());
    if (r == 0)
        r = manager_follow_births(manager);
    probe_set_wants(manager->probe, manager->policies->wants);
    return r == -ENOMEM ? r : 0;
}

static int release_workload(Manager *manager, const char *name)
{
    Workload *workload = *name ? world_workload_by_name(manager->world, name) : NULL;
    WorkloadIx ix = world_workload_index(manager->world, workload);
    bool is_long;
    int r;

    if (*name && !workload)
        return MANAGER_E_NO_SUCH_WORKLOAD;
    is_long = manager_release_is_long(manager, ix, 0);
    if (is_long && manager_release_is_full(manager))
        return MANAGER_E_BUSY;
    r = set_paused(manager, name, true);
    if (r != 0)
        return r;
    if (is_long)
        return manager_release_begin(manager, name, ix, 0);
    r = put_back(manager, ix, 0);
    if (r < 0)
        return r;
    r = restore(manager, name, 0, *name ? name : "all workloads");
    return r < 0 && r != -ENOMEM ? -EREMOTEIO : r;
}

int manager_release(Manager *manager, const char *name)
{
    pid_t pid;
    int r;

    if (*name && !world_workload_by_name(manager->world, name) && scan_pid(name, &pid))
        r = release_process(manager, pid);
    else
        r = release_workload(manager, name);
    if (r == 0)
        manager_tell_admin(manager, "released", name);
    return r;
}
