/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is left to the kernel while it balances itself (kernel.numa_balancing): with Mode=auto, groups of which the
 * daemon knows less than the kernel. It moves no memory then, and mostly does not see which thread uses what. */

#include "plan/planner.h"
#include "world/load.h"

static bool is_beside(const Planner *p, size_t index)
{
    return rule_holds(p->world, ABLATION_BESIDE) && p->world->kernel_balances &&
           p->s->workloads[p->world->groups[index].workload.i].policy->mode == POLICY_MODE_AUTO &&
           !thread_homes_known(p, index);
}

/* It cannot be divided among nodes with regard to who uses what. The kernel can do that. */
bool beside_is_wide(const Planner *p, size_t index, PackNodes set)
{
    return (set & (set - 1)) != 0 && is_beside(p, index);
}

/* The kernel takes seconds to bring memory to a home. Who ends before that would only be away from it. */
bool beside_is_too_new(const Planner *p, size_t index)
{
    const Group *group = &p->world->groups[index];

    return !group->home && !group->roams &&
           p->world->now_usec - MIN(group->first_seen_usec, p->world->now_usec) < LOAD_YOUNG_USEC &&
           is_beside(p, index);
}
