/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cpuset confinement as the manager sees it. */

#include "daemon/manager/manager.h"
#include "daemon/views/dict.h"

/* Lets fences follow what was discovered. Returns 0 or -ENOMEM. */
int manager_follow_fences(Manager *manager);

/* What probe asks (ProbeCallbacks.bound); userdata is the Manager. */
bool manager_fence_bound(void *userdata, const char *path, hwloc_bitmap_t ret);

/* What this host has: for the status. */
void describe_host(Dict *dict, const Manager *manager);

/* By what means a group is kept at home, and why: "means", "means_reason", "means_text", "means_error"; and
 * "means_memory". */
void describe_means(Dict *dict, const Manager *manager, uint64_t group_id);
