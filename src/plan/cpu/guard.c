/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The guards of load balancing (P7), which keep a balancer from chasing noise. Restated for ticks of 100 ms:
 *
 * - residency stands for task_hot(): what was moved stays for MinResidencySec=;
 * - the locality veto stands for migrate_degrades_locality() and cache_nice_tries: leaving the node must be
 *   wanted for NiceTries passes before it is granted. With 2, the third pass moves;
 * - back-off stands for the doubling balance interval: after passes that changed nothing 1, 2, 4 ...
 *   BackoffMax passes are left out. A lend, a veto, and the end of all waiting reset it;
 * - at most one pass a tick: a plan computed twice in one tick must not count as two tries (I9).
 *
 * A CPU recalled for its owner cools down. Otherwise an owner that wakes every few seconds would pay the
 * delay of a recall each time. The first cool-down is MinResidencySec=, as for a thread that moved. If the
 * owner is back before the lease has lasted as long as the last cool-down, the length doubles, up to
 * BackoffMax times MinResidencySec=. After a lease several times as long as the first cool-down, it is
 * shorter by that factor, because the recall costs the owner a small part of that time. Example with 2 s:
 * owner back after 1 s of lease: 2 s; after 1 s again: 4 s; after 1 s: 8 s; then only after 20 s: 0.2 s. */

#include "plan/planner.h"

bool guard_residency(const Policy *policy, const Task *task, uint64_t now_usec, uint64_t *ret_value)
{
    uint64_t since = now_usec > task->last_move_usec ? now_usec - task->last_move_usec : 0;

    /* Never twice at one instant, even with MinResidencySec=0: loads measured before a move say nothing after it. */
    if (task->last_move_usec == 0 || since >= MAX(policy->min_residency_usec, 1U))
        return false;
    *ret_value = since;
    return true;
}

PlanPass guard_after(const Group *group, const Policy *policy, uint64_t tick, GuardPass result)
{
    PlanPass pass = {.group_id = group->id};

    switch (result) {
    case GUARD_PASS_NO_WISH:
        break;
    case GUARD_PASS_CHANGED:
        pass.backoff_until_tick = tick + 1;
        break;
    case GUARD_PASS_VETOED:
        pass.n_vetoes = group->n_vetoes + 1;
        pass.backoff_until_tick = tick + 1;
        break;
    case GUARD_PASS_NOTHING:
        pass.n_vetoes = group->n_vetoes;
        pass.backoff_ticks = MIN(MAX(group->backoff_ticks * 2, 1U), policy->backoff_max);
        pass.backoff_until_tick = tick + 1 + pass.backoff_ticks;
        break;
    }
    return pass;
}

uint64_t guard_cooldown_unit(const Policy *policy, uint64_t interval_usec)
{
    return MAX(policy->min_residency_usec, interval_usec);
}

uint32_t guard_cooldown(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec, uint64_t interval_usec)
{
    uint64_t last_usec;

    if (__builtin_mul_overflow(guard_cooldown_unit(policy, interval_usec), (uint64_t)cpu->cooldown_ticks,
                               &last_usec))
        last_usec = UINT64_MAX;
    if (cpu->cooldown_ticks == 0 || held_usec >= last_usec)
        return 1;
    return cpu->cooldown_ticks > policy->backoff_max / 2 ? MAX(policy->backoff_max, 1U)
                                                         : cpu->cooldown_ticks * 2;
}

uint64_t guard_cooldown_usec(const CpuLoad *cpu, const Policy *policy, uint64_t held_usec,
                             uint64_t interval_usec)
{
    uint64_t unit = guard_cooldown_unit(policy, interval_usec), usec;

    if (cpu->cooldown_ticks <= 1)
        return MAX(unit / MAX(held_usec / MAX(unit, 1U), 1U), interval_usec);
    return __builtin_mul_overflow(unit, (uint64_t)cpu->cooldown_ticks, &usec) ? UINT64_MAX : usec;
}
