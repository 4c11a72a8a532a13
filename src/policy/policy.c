/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lifetime of policies and sets, and queries that need no matching. */

#include "policy/policy.h"

#include "policy/pattern.h"

#include <string.h>

Policy *policy_free(Policy *policy)
{
    if (!policy)
        return NULL;
    for (size_t i = 0; i < policy->n_matches; i++)
        policy_match_done(&policy->matches[i]);
    free(policy->matches);
    for (size_t i = 0; i < policy->n_files; i++)
        free(policy->files[i]);
    free(policy->files);
    free(policy->settings);
    free(policy->name);
    free(policy->description);
    hwloc_bitmap_free(policy->nodes);
    free(policy);
    return NULL;
}

const PolicySetting *policy_setting_find(const Policy *policy, const char *section, const char *name)
{
    const ConfKey *key = conf_table_find(policy_keys, policy_n_keys, section, name);

    for (size_t i = 0; i < policy->n_settings; i++)
        if (&policy_keys[policy->settings[i].key] == key)
            return &policy->settings[i];
    return NULL;
}

bool policy_chooses_nodes(const Policy *policy)
{
    return policy->mode != POLICY_MODE_NONE && policy->mode != POLICY_MODE_FIXED;
}

bool policy_locates_use(const Policy *policy)
{
    return policy->evidence == POLICY_EVIDENCE_AUTO || policy->evidence == POLICY_EVIDENCE_WRITE;
}

PolicyGroupBy policy_group_by(const Policy *policy)
{
    if (policy->group_by != POLICY_GROUP_BY_AUTO)
        return (PolicyGroupBy)policy->group_by;
    return policy->mode == POLICY_MODE_AUTO && policy->act != POLICY_ACT_UNIT &&
                   policy->act != POLICY_ACT_CPUSET
               ? POLICY_GROUP_BY_AUTO
               : POLICY_GROUP_BY_CGROUP;
}

bool policy_parts_groups(const Policy *policy)
{
    return policy_group_by(policy) == POLICY_GROUP_BY_CGROUP && policy->mode == POLICY_MODE_AUTO &&
           policy->act != POLICY_ACT_UNIT && policy->act != POLICY_ACT_CPUSET && policy->max_nodes == 0 &&
           policy->expect_width == 0;
}

bool policy_groups_sharers(const Policy *policy)
{
    PolicyGroupBy by = policy_group_by(policy);

    return by == POLICY_GROUP_BY_AUTO || by == POLICY_GROUP_BY_SHARED_MEMORY || policy_parts_groups(policy);
}

static unsigned policy_wants(const Policy *policy)
{
    unsigned wants = 0;

    for (size_t i = 0; i < policy->n_matches; i++) {
        const PolicyMatch *m = &policy->matches[i];

        wants |= m->exe.n_values > 0 ? POLICY_WANTS_EXE : 0U;
        wants |= m->command_line.n_values > 0 ? POLICY_WANTS_COMMAND_LINE : 0U;
        wants |= m->environment.n_values > 0 ? POLICY_WANTS_ENVIRONMENT : 0U;
        wants |= m->min_memory_bytes || m->min_cpu_permille || m->min_threads ? POLICY_WANTS_DYNAMIC : 0U;
    }
    return wants;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(Policy *const *)a)->name, (*(Policy *const *)b)->name);
}

int policy_set_new(Policy **policies, size_t n, PolicySet **ret)
{
    CLEANUP_FREE Policy **sorted = NULL;
    PolicySet *set;
    unsigned wants = 0;

    if (n > POLICY_MAX)
        return -E2BIG;
    sorted = calloc(n + 1, sizeof(Policy *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = policies[i];
        wants |= policy_wants(sorted[i]);
    }
    qsort(sorted, n, sizeof(Policy *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return -EEXIST;

    set = malloc(sizeof(*set));
    if (!set)
        return -ENOMEM;
    *set = (PolicySet){.policies = TAKE_PTR(sorted), .n_policies = n, .wants = wants};
    for (size_t i = 0; i < n; i++)
        policies[i] = NULL;
    *ret = set;
    return 0;
}

PolicySet *policy_set_free(PolicySet *set)
{
    if (!set)
        return NULL;
    for (size_t i = 0; i < set->n_policies; i++)
        set->policies[i] = policy_free(set->policies[i]);
    free(set->policies);
    free(set);
    return NULL;
}
