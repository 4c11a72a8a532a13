/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When is a home sure enough for memory to follow? Memory costs a hundred times what threads cost to move, and a home may be
 * taken back until SettleSec= is over. But waiting for that would leave a process far from its memory for ten seconds,
 * which for many is all the time there is. So memory follows at once, except to a home that shows signs of being wrong:
 *
 * - it was chosen before it was known where the memory is: the choice is made again after MinResidencySec=;
 * - its threads wait longer than they did before, and it has not been judged yet.
 *
 * A wrong guess then costs two moves: there, and back. MinResidencySec= lies between two of one process, and
 * PingPongSec= behind one that returns to where its memory was before (I7).
 *
 * Example: 64 MiB on node 0, a home on node 1, 512 MiB free there of 1 GiB: 64 MiB are elsewhere, more than a fiftieth
 * of 64 MiB and more than 2 MiB; 512 less a tenth of 1 GiB is room enough. The order is given with the home, and the mover looks at each
 * block, so what has been allocated since counts as well.
 *
 * What it does badly: of a home of several nodes it is not known which of them a block belongs to; where memory moves at
 * all it is spread over them. Whether it is spread although it lies on them already, stripe.c says (P17). */

#include "plan/follow.h"

#include "plan/follow-internal.h"
#include "plan/group.h"

#include <string.h>

/* A home may be younger than what is known of the memory by this: two slow ticks. */
#define EVIDENCE_USEC 2000000U

/* Where MinResidencySec= is 0, an order in vain is followed by a pause all the same, or it could not double. */
#define PAUSE_MIN_USEC 1000U

/* P20: of the rates that were tried there, what is moved when others wait for memory half a tenth of the time. */
#define PRESSED_RATE     ((uint64_t)1280 << 20)
#define PRESSED_PERMILLE 50U
#define CALM_PERMILLE    10U

bool follow_has_memory(const Topology *topology, uint32_t node)
{
    if (topology->nodes[node].memory_bytes > 0)
        return true;
    /* Descriptions of machines may leave sizes out. */
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].memory_bytes > 0)
            return false;
    return true;
}

static uint32_t count_memory_nodes(const Topology *topology)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        n += follow_has_memory(topology, i);
    return n;
}

static bool has_usable_cpu(const World *world, uint32_t node)
{
    for (uint32_t i = 0; i < world->topology->cpu_limit; i++)
        if (world->topology->cpus[i].present && world->topology->cpus[i].node.i == (int32_t)node &&
            world->cpus[i].online && world->cpus[i].usable)
            return true;
    return false;
}

/* Whether memory of a group is to lie on the node: it is of its home, or, where the group roams and has none, some thread may
 * run there. */
static bool takes_memory(const World *world, CpuMask home_nodes, uint32_t node)
{
    return follow_has_memory(world->topology, node) &&
           (home_nodes ? (bool)hwloc_bitmap_isset(home_nodes, node) : has_usable_cpu(world, node));
}

static CpuMask intern_nodes(const Planner *p, hwloc_const_bitmap_t set)
{
    return hwloc_bitmap_iszero(set) ? NULL : intern_mask(p->world->pool, set);
}

/* Where memory of a group is to lie; NULL: nowhere. */
static CpuMask find_nodes(Planner *p, CpuMask home_nodes)
{
    hwloc_bitmap_t set = p->s->nodes;
    CpuMask nodes;

    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; i < p->world->topology->n_nodes; i++)
        if (takes_memory(p->world, home_nodes, i) && hwloc_bitmap_set(set, i) < 0)
            p->error = -ENOMEM;
    nodes = intern_nodes(p, set);
    if (!nodes && !hwloc_bitmap_iszero(set))
        p->error = -ENOMEM;
    return nodes;
}

/* What lies where it should not: outside, or, of what is striped, more than its share on a node. */
static void find_outside(Follow *f)
{
    const Topology *topology = f->p->world->topology;
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX, all = 0;
    hwloc_bitmap_t set = f->p->s->nodes;

    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; f->process->node_bytes && i < topology->n_nodes; i++) {
        uint64_t bytes = f->process->node_bytes[i];
        uint64_t due = f->to && hwloc_bitmap_isset(f->to, i) ? share : 0;

        all += bytes;
        if (bytes <= due)
            continue;
        f->outside_bytes += bytes - due;
        if (hwloc_bitmap_set(set, i) < 0)
            f->p->error = -ENOMEM;
    }
    f->from = intern_nodes(f->p, set);
    if (!f->from && f->outside_bytes > 0)
        f->p->error = -ENOMEM;
    f->few_bytes = MAX(all / FOLLOW_FEW_PART, FOLLOW_FEW_BYTES) + f->process->memory.stuck_bytes;
}

bool follow_refuse(const Follow *f, uint8_t mechanism, PlanReason reason, uint64_t value, uint64_t limit)
{
    planner_refuse_process(f->p, mechanism, reason, f->process, value, limit);
    return false;
}

uint64_t follow_age_usec(const Follow *f, uint64_t then_usec)
{
    return f->p->world->now_usec - MIN(then_usec, f->p->world->now_usec);
}

uint64_t follow_home_usec(const Follow *f)
{
    bool new = f->g->home != f->group->home || f->g->roams != f->group->roams;

    return new ? f->p->world->now_usec : f->group->last_home_usec;
}

bool follow_may(const Follow *f)
{
    if (f->p->world->topology->rehearsal > 0)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_REHEARSAL, 0, 0);
    if (!f->policy->follow)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_FOLLOW_OFF, 0, 0);
    return true;
}

/* A reading from before the home or the last move says nothing of what is to be moved now. */
static bool is_known(const Follow *f)
{
    uint64_t measured = f->process->node_bytes_usec, over = f->process->memory.over_usec;

    if (measured == 0 || (over > 0 && measured <= over) || measured + EVIDENCE_USEC < follow_home_usec(f))
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_EVIDENCE,
                             measured > 0 ? follow_age_usec(f, measured) : 0, EVIDENCE_USEC);
    return true;
}

/* Whether there is enough to be worth it. Nothing at all is nothing to speak of. */
static bool is_worth_it(const Follow *f)
{
    bool stripes = stripe_is(f->rule);

    if (f->outside_bytes > f->few_bytes)
        return true;
    return f->outside_bytes > 0 ? follow_refuse(f, stripes ? MECHANISM_STRIPE : MECHANISM_BLOCKS,
                                                stripes ? PLAN_REASON_MEMORY_EVEN : PLAN_REASON_MEMORY_NEAR,
                                                f->outside_bytes, f->few_bytes)
                                : false;
}

/* See above. What a home of this very plan will be like is not known yet. */
static bool is_sure(const Follow *f)
{
    const Group *group = f->group;
    uint32_t before = group->before_wait_permille, others = f->g->others_permille;

    if (f->policy->mode == POLICY_MODE_FIXED || f->g->home != group->home)
        return true;
    if (group->guessed && follow_age_usec(f, group->last_home_usec) < f->policy->min_residency_usec)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_UNSETTLED,
                             follow_age_usec(f, group->last_home_usec), f->policy->min_residency_usec);
    before += others - MIN(others, group->before_others_permille);
    if (group->judge_usec > 0 && !f->g->judged && f->g->wait_permille > before + PLANNER_WORSE_PERMILLE)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_UNSETTLED, f->g->wait_permille,
                             before + PLANNER_WORSE_PERMILLE);
    return true;
}

/* Threads that somebody else sent elsewhere use this memory, too; how much of it is not known. */
static bool is_together(const Follow *f, CpuMask due)
{
    const World *world = f->p->world;
    size_t n, first = world_process_tasks(world, f->process, &n);

    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone || planner_placeable(f->policy, f->process, task))
            continue;
        if (!task->allowed || task->hands == TASK_HANDS_UNKNOWN)
            return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_UNREADABLE, 0, 0);
        if (!hwloc_bitmap_isincluded(task->allowed, due))
            return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_FOREIGN_AFFINITY, 0, 0);
    }
    return true;
}

bool follow_is_time(const Follow *f)
{
    const World *world = f->p->world;
    const MemoryMove *memory = &f->process->memory;

    if (world->kernel_balances)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_KERNEL_BALANCES, 0, 0);
    if (world->memory_pressure_permille > f->policy->max_pressure_permille)
        return follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_MEMORY_PRESSURE,
                             world->memory_pressure_permille, f->policy->max_pressure_permille);
    if (world->now_usec < memory->until_usec)
        return follow_refuse(f, MECHANISM_BLOCKS, PLAN_REASON_RESIDENCY,
                             follow_age_usec(f, memory->over_usec),
                             memory->until_usec - MIN(memory->over_usec, memory->until_usec));
    return true;
}

/* P19. What may still come to a node, of which a part is spoken for already. */
static uint64_t node_room(const Follow *f, uint32_t node, uint64_t reserve_bytes)
{
    const World *world = f->p->world;
    uint64_t size = world->topology->nodes[node].memory_bytes;
    uint64_t keep = size / 100 * f->policy->headroom_percent + reserve_bytes + f->p->s->node_incoming[node];
    uint64_t have = world->nodes[node].free_known ? world->nodes[node].free_bytes : 0;

    return have - MIN(have, keep);
}

uint64_t follow_reserve_bytes(const Follow *f)
{
    return f->to ? f->g->grown_bytes / (uint64_t)hwloc_bitmap_weight(f->to) : 0;
}

/* Nodes that have more than their share get nothing. */
bool follow_has_room(const Follow *f)
{
    uint64_t share = stripe_is(f->rule) ? stripe_share(f) : UINT64_MAX, room = 0;

    for (int i = f->to ? hwloc_bitmap_first(f->to) : -1; i >= 0; i = hwloc_bitmap_next(f->to, i))
        if (share == UINT64_MAX || f->process->node_bytes[i] < share)
            room += node_room(f, (uint32_t)i, follow_reserve_bytes(f));
    return room > f->few_bytes ? true
                               : follow_refuse(f, MECHANISM_SHORTAGE, PLAN_REASON_HEADROOM, room,
                                               MIN(f->outside_bytes, f->few_bytes));
}

bool follow_has_rate(const Follow *f)
{
    const World *world = f->p->world;
    const Plan *plan = f->p->plan;
    bool taken = false;

    if (f->policy->rate_limit_bytes == 0)
        return true;
    for (size_t i = 0; i < world->n_processes && !taken; i++)
        taken = !world->processes[i].gone && world->processes[i].workload.i == f->process->workload.i &&
                world->processes[i].memory.to &&
                hwloc_bitmap_intersects(world->processes[i].memory.to, f->to);
    for (size_t i = plan->n_actions; i > 0 && plan->actions[i - 1].kind == PLAN_KIND_MOVE_PAGES; i--)
        taken |= plan->actions[i - 1].workload.i == f->process->workload.i &&
                 hwloc_bitmap_intersects(plan->actions[i - 1].memory.to, f->to);
    return taken ? follow_refuse(f, MECHANISM_RATE, PLAN_REASON_RATE_MEMORY, f->outside_bytes,
                                 f->policy->rate_limit_bytes)
                 : true;
}

/* So many bytes are on their way to these nodes. */
static void speak_for(PlanScratch *s, CpuMask nodes, uint64_t bytes)
{
    for (int i = hwloc_bitmap_first(nodes); i >= 0; i = hwloc_bitmap_next(nodes, i))
        s->node_incoming[i] += bytes / (uint64_t)hwloc_bitmap_weight(nodes);
}

void follow_order(const Follow *f, uint8_t mechanism, const PlanUse *use)
{
    const PlanAction action = {
        .kind = PLAN_KIND_MOVE_PAGES,
        .rule = f->rule,
        .mechanism = mechanism,
        .subject = planner_process_key(f->process),
        .workload = f->process->workload,
        .group_id = f->group->id,
        .cpu = CPU_NONE,
        .memory =
            {
                .from = f->from,
                .to = f->to,
                .help = follow_help(f),
                .bytes = f->outside_bytes,
                .reserve_bytes = follow_reserve_bytes(f),
                .rate_bytes = f->policy->rate_limit_bytes,
                .headroom_percent = f->policy->headroom_percent,
                .nice = FOLLOW_MOVER_NICE,
                .shared = f->policy->group_by == POLICY_GROUP_BY_SHARED_MEMORY,
                .ranges = use ? use->ranges : NULL,
                .n_ranges = use ? use->n_ranges : 0,
                .stripe = use ? use->stripe : stripe_is(f->rule),
            },
        .value = (uint32_t)MIN(f->outside_bytes >> 20, UINT32_MAX),
        .limit = (uint32_t)MIN(f->few_bytes >> 20, UINT32_MAX),
    };

    if (planner_act(f->p, &action))
        speak_for(f->p->s, f->to, f->outside_bytes);
}

/* `to`: where its memory is to be; `due`: the CPUs of its threads. */
static void follow_process(Planner *p, const Process *process, CpuMask to, CpuMask due)
{
    Follow f = {
        .p = p,
        .process = process,
        .group = &p->world->groups[process->group.i],
        .g = &p->s->groups[process->group.i],
        .policy = p->s->workloads[process->workload.i].policy,
        .to = to,
    };

    if (!follow_may(&f) || !is_known(&f))
        return;
    if (process->use_awaited && hwloc_bitmap_weight(f.to) > 1) {
        (void)follow_refuse(&f, MECHANISM_FILTER, PLAN_REASON_USE_AWAITED, 0, 0);
        return;
    }
    f.rule = stripe_rule(&f);
    if (f.g->roams && !stripe_is(f.rule))
        return;
    find_outside(&f);
    if (!is_worth_it(&f) || !is_together(&f, due) || !follow_is_time(&f) || !is_sure(&f) ||
        !follow_has_room(&f) || !follow_has_rate(&f))
        return;
    if (planner_has_budget(p))
        follow_order(&f, stripe_is(f.rule) ? MECHANISM_STRIPE : MECHANISM_BLOCKS, NULL);
    else
        (void)follow_refuse(&f, MECHANISM_BLOCKS, PLAN_REASON_BUDGET, p->n_spent, PLAN_ACTIONS_PER_TICK);
}

bool follow_gather(Planner *p)
{
    PlanScratch *s = p->s;
    size_t n_nodes = p->world->topology->n_nodes;

    if (!GROW(s->node_incoming, s->node_incoming_capacity, n_nodes)) {
        p->error = -ENOMEM;
        return false;
    }
    memset(s->node_incoming, 0, n_nodes * sizeof(*s->node_incoming));
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->gone)
            continue;
        if (process->group.i >= 0)
            s->groups[process->group.i].grown_bytes += process->grown_bytes;
        if (process->memory.to)
            speak_for(s, process->memory.to, process->memory.todo_bytes);
    }
    return true;
}

/* Whether its group needs all nodes, so that its memory may be dealt out over them (P17), and nothing else. */
static bool roams(const Planner *p, const Process *process)
{
    return !process->gone && !process->yielded && process->group.i >= 0 && process->cpuset &&
           p->s->groups[process->group.i].roams && !p->world->workloads[process->workload.i].paused &&
           !p->world->partial && stripe_concerns(p, process);
}

void follow_homes(Planner *p)
{
    CpuMask all = NULL;

    if (count_memory_nodes(p->world->topology) < 2 || !follow_gather(p))
        return;
    for (size_t i = 0; i < p->world->n_processes; i++) {
        const Process *process = &p->world->processes[i];

        if (process->memory.to)
            continue;
        if (p->s->processes[i].at_home) {
            follow_process(p, process, find_nodes(p, p->s->groups[process->group.i].home_nodes),
                           p->s->processes[i].due);
        } else if (roams(p, process)) {
            all = all ? all : find_nodes(p, NULL);
            follow_process(p, process, all, process->cpuset);
        }
    }
}

/* Afterwards */

static uint64_t add_usec(uint64_t a, uint64_t b)
{
    return b < UINT64_MAX - a ? a + b : UINT64_MAX;
}

void follow_begun(World *world, const Policy *policy, const PlanAction *action, Process *process)
{
    MemoryMove *memory = &process->memory;
    uint64_t pause = policy ? MAX(policy->ping_pong_usec, policy->min_residency_usec) : 0;

    memory->to = action->memory.to;
    memory->by_use = action->memory.ranges != NULL;
    memory->todo_bytes = action->memory.bytes;
    memory->since_usec = world->now_usec;
    memory->stuck_bytes = 0;
    if (memory->by_use) /* what of it went where is remembered by block (plan/sorting.h) */
        return;
    if (memory->before == action->memory.to &&
        world->now_usec - MIN(memory->over_usec, world->now_usec) < pause)
        memory->until_usec = add_usec(world->now_usec, pause);
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

/* In vain the pause doubles, up to PingPongSec=. So it does after each stripe over the same nodes: see stripe.c. */
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

/* What of it the next one would not move either. A stripe that found nothing to do has shown that all blocks lie where their
 * addresses say, however uneven that is. */
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
    /* Other parts may go to another node at once. */
    if (!memory->by_use || result->end != FOLLOW_END_DONE || result->moved_bytes == 0)
        memory->until_usec =
            MAX(memory->until_usec, add_usec(result->time_usec, pause_usec(memory, policy, result->end)));
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

/* The nodes that take its memory, and nothing else. */
static bool is_home(const World *world, const Group *group, CpuMask to)
{
    if (!group->home_nodes && !group->roams)
        return false;
    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        if (takes_memory(world, group->home_nodes, i) != (bool)hwloc_bitmap_isset(to, i))
            return false;
    return true;
}

static bool leads_home(const World *world, const Group *group, const MemoryMove *memory)
{
    if (memory->by_use)
        return !group->home_nodes || hwloc_bitmap_isincluded(memory->to, group->home_nodes);
    return is_home(world, group, memory->to);
}

bool follow_holds(const World *world, const PolicySet *policies, const Process *process)
{
    const Policy *policy = group_policy(world, policies, process->workload);
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;

    return process->memory.to && !process->gone && !process->yielded && policy && policy->follow && group &&
           !world->workloads[process->workload.i].paused && !world->kernel_balances &&
           world->memory_pressure_permille <= policy->max_pressure_permille &&
           leads_home(world, group, &process->memory);
}

bool follow_wants_look(const World *world, const Process *process)
{
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;

    return group && (group->home || group->roams) && process->node_bytes && !process->memory.to &&
           process->node_bytes_usec <= MAX(group->last_home_usec, process->memory.over_usec);
}

/* Example: 1.25 GiB/s at 5 %, half of that at 10 %, and as many as can be below 1 %. */
uint64_t follow_rate(const World *world)
{
    uint32_t pressure = world->memory_pressure_permille;

    return pressure < CALM_PERMILLE ? 0 : PRESSED_RATE * PRESSED_PERMILLE / MAX(pressure, 1U);
}
