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

/* An event may have a tick due at a time that is over, because the last one was long ago. It is not late for that. */
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
