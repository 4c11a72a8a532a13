/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Connects policies, which name the means (Act=), and the cpuset confinement of act/, which reports the result. */

#include "act/fence/fence.h"
#include "daemon/views/describe.h"
#include "plan/group.h"

#include <string.h>

/* Memory is confined only if a policy names the means and the nodes, and lets memory be moved there. */
static ActWish manager_wish(void *userdata, const World *world, WorkloadIx workload, bool *ret_memory)
{
    const Manager *manager = userdata;
    const Policy *policy = group_policy(world, manager->policies, workload);

    *ret_memory = policy && policy->mode == POLICY_MODE_FIXED && policy->follow &&
                  (policy->act == POLICY_ACT_UNIT || policy->act == POLICY_ACT_CPUSET);
    switch (policy ? (PolicyAct)policy->act : POLICY_ACT_OBSERVE) {
    case POLICY_ACT_AUTO:
        return ACT_WISH_AUTO;
    case POLICY_ACT_UNIT:
        return ACT_WISH_UNIT;
    case POLICY_ACT_CPUSET:
        return ACT_WISH_CPUSET;
    default:
        return ACT_WISH_AFFINITY;
    }
}

bool manager_fence_bound(void *userdata, const char *path, hwloc_bitmap_t ret)
{
    const Manager *manager = userdata;

    return fences_bound(act_fences(manager->act), path, ret);
}

int manager_follow_fences(Manager *manager)
{
    return fences_follow(act_fences(manager->act), manager->world, manager_wish, manager);
}

void describe_host(Dict *dict, const Manager *manager)
{
    ActHost host;

    fences_host(act_fences(manager->act), &host);
    dict_bool(dict, "fence_units", host.systemd);
    dict_string(dict, "fence_cpusets", host.cpuset1 || host.cpusetfs ? "v1" : host.cpuset2 ? "v2" : "none");
    dict_string(dict, "libcpuset", host.cpusetfs ? "used" : host.libcpuset ? "built-in" : "none");
    dict_bool(dict, "forgets_masks", host.forgets);
    dict_u32(dict, "fences", host.n_known);
    dict_u32(dict, "fences_up", host.n_up);
    dict_u32(dict, "memory_fences_up", host.n_memory);
}

void describe_means(Dict *dict, const Manager *manager, uint64_t group_id)
{
    ActMeans means = fences_means(act_fences(manager->act), group_id);

    dict_string(dict, "means", act_fence_name(means.why == ACT_WHY_UP ? means.kind : ACT_FENCE_NONE));
    dict_string(dict, "means_reason", act_why_name(means.why));
    dict_string(dict, "means_text", act_why_text(means.why));
    dict_string(dict, "means_error", means.error > 0 ? strerror(means.error) : "");
    dict_bool(dict, "means_memory", means.memory);
}
