/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Everything is looked at as if it were going to be done. Whoever carries out a plan asks ActOps.changes first; the
 * refusal below is the second lock on the same door. */

#include "act/masks/ops-affinity.h"

static int dry_run_set_mask(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    return ACT_E_REFUSED;
}

const ActOps act_ops_dry_run = {
    .name = "dry-run",
    .changes = false,
    .get_online = affinity_get_online,
    .get_isolated = affinity_get_isolated,
    .get_cpuset = affinity_get_cpuset,
    .get_mask = affinity_get_mask,
    .set_mask = dry_run_set_mask,
    .list_threads = affinity_list_threads,
    .walk_threads = affinity_walk_threads,
    .list_processes = affinity_list_processes,
    .walk = affinity_walk,
    .read_process = affinity_read_process,
    .get_place = affinity_get_place,
    .is_first = affinity_is_first,
    .birth_mark = affinity_birth_mark,
    .may_fork = affinity_may_fork,
    .waits_in_fork = affinity_waits_in_fork,
};
