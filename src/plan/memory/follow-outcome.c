/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What becomes of a migration request, and what is remembered of it. */

#include "plan/memory/follow.h"

#include "base/time.h"
#include "plan/group.h"
#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

/* Even with MinResidencySec=0 a pause follows a request in vain: zero could not double. */
#define PAUSE_MIN_USEC 1000U

/* P20: the rate while others wait for memory 5 % of the time; one of those tried there. */
#define PRESSED_RATE     ((uint64_t)1280 << 20)
#define PRESSED_PERMILLE 50U
#define CALM_PERMILLE    10U

void follow_begun(World *world, const Policy *policy, const PlanAction *action, Process *process)
{
    MemoryMove *memory = &process->memory;
    uint64_t pause = policy ? MAX(policy->ping_pong_usec, policy->min_residency_usec) : 0;

    if (action->rule == PLAN_RULE_FOLLOW_HOME)
        gather_begun(world, policy, process, action->memory.to);
    memory->to = action->memory.to;
    memory->by_use = action->memory.ranges != NULL;
    memory->todo_bytes = action->memory.bytes;
    memory->since_usec = world->now_usec;
    memory->stuck_bytes = 0;
    if (memory->by_use) /* what went where is remembered by block (plan/memory/sorting.h) */
        return;
    if (memory->before == action->memory.to && world_since(world, memory->over_usec) < pause)
        memory->until_usec = time_after(world->now_usec, pause);
    if (memory->last != action->memory.to) {
        memory->before = memory->last ? memory->last : action->memory.from;
        memory->last = action->memory.to;
        memory->n_vain = 0;
    }
    memory->stripe = action->memory.stripe;
}

static void add_account(MemoryAccount *account, const FollowResult *result)
{
    account->n_orders++;
    account->moved_bytes += result->moved_bytes;
    account->refused_bytes += result->refused_bytes;
    account->blocked_usec += result->blocked_usec;
}

static Process *find_process(World *world, TaskKey subject)
{
    Process *process = world_process(world, subject.pid);

    return process && process->start_ticks == subject.start_ticks ? process : NULL;
}

/* The pause doubles after each request in vain, up to PingPongSec, and after each further round of
 * interleaving over the same nodes (stripe.c). */
static uint64_t pause_usec(const MemoryMove *memory, const Policy *policy, FollowEnd end)
{
    uint64_t longest, pause;

    if (!policy)
        return 0;
    longest = MAX(policy->ping_pong_usec, policy->min_residency_usec);
    if (end == FOLLOW_END_FAILED)
        return longest;
    pause = MAX(policy->min_residency_usec, PAUSE_MIN_USEC);
    for (uint32_t i = 0; i < memory->n_vain && pause < longest; i++)
        pause *= 2;
    return MIN(pause, longest);
}

/* Bytes that the next request would not move either. If interleaving found nothing to do, all blocks lie
 * where their addresses say, however uneven that is. */
static uint64_t stuck_bytes(const MemoryMove *memory, const FollowResult *result)
{
    if (result->end != FOLLOW_END_DONE || memory->by_use)
        return 0;
    return memory->stripe && result->moved_bytes == 0 ? MAX(memory->todo_bytes, result->refused_bytes)
                                                      : result->refused_bytes;
}

static void end_order(MemoryMove *memory, const Policy *policy, const FollowResult *result)
{
    bool again = memory->stripe && !memory->by_use;

    memory->to = NULL;
    memory->stuck_bytes = stuck_bytes(memory, result);
    memory->todo_bytes = 0;
    memory->over_usec = result->time_usec;
    if (result->end != FOLLOW_END_CANCELLED)
        memory->n_vain =
            result->moved_bytes == 0 || again ? memory->n_vain + (memory->n_vain < UINT32_MAX) : 0;
    /* Other parts may move to another node at once. */
    if (!memory->by_use || result->end != FOLLOW_END_DONE || result->moved_bytes == 0)
        memory->until_usec =
            MAX(memory->until_usec, time_after(result->time_usec, pause_usec(memory, policy, result->end)));
    memory->by_use = false;
}

void follow_over(World *world, const PolicySet *policies, const FollowResult *result)
{
    Process *process = find_process(world, result->subject);
    Group *group = world_group_by_id(world, result->group_id);
    const Policy *policy = group ? group_policy(world, policies, group->workload) : NULL;

    if (group) {
        add_account(&group->memory, result);
        add_account(&world->workloads[group->workload.i].memory, result);
    }
    if (process && process->memory.to)
        end_order(&process->memory, policy, result);
}

void follow_progress(World *world, TaskKey subject, uint64_t moved_bytes)
{
    Process *process = find_process(world, subject);

    if (process && process->memory.to)
        process->memory.todo_bytes -= MIN(process->memory.todo_bytes, moved_bytes);
}

/* Whether these are exactly the nodes that take the group's memory. */
static bool is_home(const World *world, const Group *group, CpuMask to)
{
    if (!group->home_nodes && !group->roams)
        return false;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (follow_takes_memory(world, group->home_nodes, i) != (bool)hwloc_bitmap_isset(to, i))
            return false;
    return true;
}

static bool leads_home(const World *world, const Policy *policy, const Group *group, const Process *process)
{
    const MemoryMove *memory = &process->memory;

    if (memory->to == process->gather.nodes && gather_is_undone(world, policy, process))
        return true;
    if (!group->home && !group->roams && follow_is_pinned(world, process))
        return follow_is_pinned_to(world, process, memory->to);
    if (memory->by_use)
        return !group->home_nodes || hwloc_bitmap_isincluded(memory->to, group->home_nodes);
    return is_home(world, group, memory->to);
}

bool follow_holds(const World *world, const PolicySet *policies, const Process *process)
{
    const Policy *policy = group_policy(world, policies, process->workload);
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;

    return process->memory.to && !process->gone && !process->yielded && policy && policy->follow && group &&
           !world->workloads[process->workload.i].paused &&
           world->memory_pressure_permille <= policy->max_pressure_permille &&
           (process->memory.by_use || !follow_is_kernels(world, policy, process, process->memory.to)) &&
           leads_home(world, policy, group, process);
}

/* If the process has more than twice the memory that was found, that says little of where it is. */
bool follow_wants_look(const World *world, const Process *process)
{
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;
    bool lives = group && (group->home || group->roams || follow_is_pinned(world, process));

    return group && process->node_bytes && !process->memory.to &&
           (lives ? process->node_bytes_usec <= MAX(group->last_home_usec, process->memory.over_usec)
                  : process->rss_bytes / 2 > world_sum_nodes(world, process->node_bytes));
}

/* Example: 1.25 GiB/s at 5 %, half of that at 10 %, and no limit below 1 %. */
uint64_t follow_rate(const World *world)
{
    uint32_t pressure = world->memory_pressure_permille;

    return pressure < CALM_PERMILLE ? 0 : PRESSED_RATE * PRESSED_PERMILLE / MAX(pressure, 1U);
}
