/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What becomes of a migration request, and what is remembered of it. */

#include "plan/memory/follow.h"

#include "plan/group.h"
#include "plan/memory/follow-internal.h"
#include "plan/scan/gather.h"

/* P20: the rate while others wait for memory 5 % of the time; one of those tried there. */
#define PRESSED_RATE     ((uint64_t)1280 << 20)
#define PRESSED_PERMILLE 50U
#define CALM_PERMILLE    10U

void follow_begun(World *world, const Policy *policy, const PlanAction *action, Process *process)
{
    MemoryMove *memory = &process->memory;

    if (action->rule == PLAN_RULE_FOLLOW_HOME)
        gather_begun(world, policy, process, action->memory.to);
    memory->to = action->memory.to;
    memory->by_use = action->memory.ranges != NULL;
    memory->todo_bytes = action->memory.bytes;
    memory->since_usec = world->now_usec;
    memory->stuck_bytes = 0;
    if (memory->by_use) /* what went where is remembered by block (plan/memory/sorting.h) */
        return;
    follow_pause_begun(world, policy, memory);
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

static void end_order(MemoryMove *memory, const Policy *policy, const FollowResult *result)
{
    memory->over_usec = result->time_usec;
    follow_pause_over(policy, result, memory);
    memory->to = NULL;
    memory->todo_bytes = 0;
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
