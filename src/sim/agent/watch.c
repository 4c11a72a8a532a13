/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes are sampled, and what follows, in the same order as in the daemon
 * (daemon/manager/evidence.c). At the end of a tick, processes with several nodes to live on are looked at if
 * they are due (plan/memory/watch.h), and plan_follow_use() requests that memory moves to its users.
 *
 * It also runs where the kernel balances. The model then knows how much of a region is on each node, but not
 * which blocks the kernel moved, and it has no counters of the kernel's faults. */

#include "plan/group.h"
#include "sim/agent/agent.h"

typedef struct Seen {
    Family *family;
    AgentFamily *seen;
    Process *process;     /* NULL: it has ended, or was not found yet */
    const Policy *policy; /* NULL: not sampled */
} Seen;

static Seen see(const Engine *e, const Agent *agent, uint32_t index)
{
    Seen found = {.family = &e->families[index],
                  .seen = &agent->families[index],
                  .process = world_process(agent->world, agent_pid(e, index))};
    const Process *process = found.process;
    const Policy *policy =
        process ? group_policy(agent->world, e->variant->policies, process->workload) : NULL;

    if (found.family->n_alive > 0 && policy && policy_locates_use(policy) &&
        memory_watch_wanted(agent->world, policy, process))
        found.policy = policy;
    return found;
}

void agent_watch_foresee(Engine *e, Agent *agent)
{
    for (uint32_t i = 0; i < e->n_families; i++) {
        Seen seen = see(e, agent, i);

        if (seen.process && !seen.seen->scan)
            seen.process->use_awaited =
                seen.policy && follow_awaits_use(agent->world, seen.policy, seen.process, NULL);
    }
}

/* Starts or stops sampling a process. */
static int choose(Engine *e, const Agent *agent, const Seen *seen)
{
    bool wanted = seen->policy && memory_watch_is_asked(agent->world, seen->policy, seen->process);

    if (wanted && !seen->seen->scan)
        return agent_scan_new(e, seen->family, &seen->seen->scan);
    if (wanted || !seen->seen->scan)
        return 0;
    if (seen->process)
        memory_watch_forget(agent->world, seen->process);
    seen->seen->scan = agent_scan_free(seen->seen->scan);
    return 0;
}

/* Runs after a plan of homes. */
static void tell_planned(const Agent *agent, const Seen *seen)
{
    MemoryWatch *watch = &seen->seen->scan->watch;

    memory_watch_planned(watch, agent->world, seen->process, seen->policy);
    seen->process->use_awaited = follow_awaits_use(agent->world, seen->policy, seen->process, watch);
}

static int look(Engine *e, const Agent *agent, const Seen *seen)
{
    AgentScan *scan = seen->seen->scan;
    MemoryWatchLook what = {
        .watch = &scan->watch,
        .world = agent->world,
        .process = seen->process,
        .policy = seen->policy,
        .now_usec = agent->world->now_usec,
        .touches = &scan->touches,
        .regions = &scan->regions,
        .whole = true,
    };
    int r;

    if (agent->world->now_usec < scan->looked_usec + scan_pace_usec(&scan->watch.pace))
        return 0;
    r = agent_scan_round(e, scan, seen->family, seen->process->pid);
    if (r < 0 || scan->regions.n == 0)
        return r;
    r = memory_watch_look(&what);
    if (r == 0 && what.window)
        agent_scan_mark(e, scan, seen->family);
    scan->looked_usec = agent->world->now_usec;
    return r;
}

static int watch_family(Engine *e, Agent *agent, uint32_t index, bool slow)
{
    Seen seen = see(e, agent, index);
    bool first = seen.policy && memory_watch_begins_early(agent->world, seen.policy, seen.process);
    int r = slow || first || !seen.policy ? choose(e, agent, &seen) : 0;

    if (r < 0 || !seen.seen->scan)
        return r;
    r = memory_watch_note_busy(&seen.seen->scan->watch, agent->world, seen.process);
    if (r == 0 && slow)
        tell_planned(agent, &seen);
    return r == 0 ? look(e, agent, &seen) : r;
}

/*
 * Migration requests
 */

static bool was_taken(const Agent *agent, pid_t pid)
{
    for (size_t i = 0; i < agent->plan.n_actions; i++)
        if (agent->plan.actions[i].subject.pid == pid)
            return agent->outcomes[i] == PLAN_OUTCOME_DONE;
    return false;
}

static int order(Engine *e, Agent *agent, const PlanUse *uses, size_t n)
{
    const PlanLimits limits = {.slow_tick = false};
    int r = plan_follow_use(agent->world, e->variant->policies, &limits, uses, n, &agent->plan);

    if (r == 0)
        r = agent_tell(e, agent, &limits, uses, n);
    if (r == 0)
        r = agent_carry_out(e, agent);
    for (size_t i = 0; i < n && r == 0; i++) {
        Sorting *sorting =
            &agent->families[agent_family(e, uses[i].subject.pid) - e->families].scan->watch.sorting;

        if (was_taken(agent, uses[i].subject.pid))
            r = sorting_taken(sorting, agent->world->now_usec);
        else
            sorting_refused(sorting);
    }
    return r;
}

static int give_orders(Engine *e, Agent *agent)
{
    CLEANUP_FREE PlanUse *uses = calloc(MAX(e->n_families, 1U), sizeof(*uses));
    size_t n = 0;

    if (!uses)
        return -ENOMEM;
    for (uint32_t i = 0; i < e->n_families; i++) {
        const Process *process = world_process(agent->world, agent_pid(e, i));
        AgentScan *scan = agent->families[i].scan;

        if (scan && process && !process->memory.to && sorting_next(&scan->watch.sorting, process, &uses[n]))
            n++;
    }
    return n > 0 ? order(e, agent, uses, n) : 0;
}

int agent_watch(Engine *e, Agent *agent, bool slow)
{
    int r = 0;

    for (uint32_t i = 0; i < e->n_families && r == 0; i++)
        r = watch_family(e, agent, i, slow);
    return r == 0 ? give_orders(e, agent) : r;
}
