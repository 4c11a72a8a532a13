/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is left to the kernel while it balances itself (kernel.numa_balancing): with Mode=auto, groups of which the
 * daemon knows less than the kernel. It moves no memory then, and mostly does not see which thread uses what. */

#include "plan/planner.h"

/* It cannot be divided among nodes with regard to who uses what. The kernel can do that, unless a policy says which
 * nodes it is to have, or how many. */
bool beside_is_wide(const Planner *p, size_t index, PackNodes set)
{
    const Policy *policy = p->s->workloads[p->world->groups[index].workload.i].policy;

    return (set & (set - 1)) != 0 && rule_holds(p->world, ABLATION_BESIDE) && p->world->kernel_balances &&
           policy->mode == POLICY_MODE_AUTO && !policy->nodes && policy->max_nodes == 0 &&
           !thread_homes_known(p, index);
}
