/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the last change of home of a group was worth (daemon/tables/gains.h). */

#include "daemon/views/describe.h"

static void put(Dict *dict, const char *key, const char *noise_key, GainMean before)
{
    if (!before.known)
        return;
    dict_u32(dict, key, before.permille);
    dict_u32(dict, noise_key, before.noise);
}

void describe_gain(Dict *dict, const Manager *manager, uint64_t group_id)
{
    uint64_t now = manager->world->now_usec;
    Gain gain;

    if (!gains_find(manager->gains, group_id, &gain))
        return;
    dict_u64(dict, "gain_age_usec", now - MIN(now, gain.since_usec));
    put(dict, "gain_waits_before_permille", "gain_waits_before_noise_permille", gain.before.waits);
    put(dict, "gain_waits_permille", "gain_waits_noise_permille", gain.after.waits);
    put(dict, "gain_local_before_permille", "gain_local_before_noise_permille", gain.before.local);
    put(dict, "gain_local_permille", "gain_local_noise_permille", gain.after.local);
}
