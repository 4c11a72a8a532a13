/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* When the next tick is due, and what wakes the manager. */

#include "base/time.h"
#include "daemon/manager/manager.h"

const char *manager_mode_name(ManagerMode mode)
{
    static const char *const names[] = {"active", "observe", "dry-run"};

    assert(mode >= 0 && mode < MANAGER_MODE_MAX);
    return names[mode];
}

/* An event may make a tick due at a time that has passed, because the last tick was long ago. Such a tick is
 * not late: lateness counts from armed_usec. */
void manager_arm(Manager *manager)
{
    const Pace *pace = &manager->pace;
    uint64_t now = time_now_usec();

    if (manager->due_usec > now)
        manager->armed_usec = now;
    manager->due_usec = pace->due_usec;
    if (manager->watchdog_usec > 0)
        manager->due_usec = MIN(pace->due_usec, pace->last_fast_usec + manager->watchdog_usec / 2);
}
