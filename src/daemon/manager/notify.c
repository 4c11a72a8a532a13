/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages to the service manager (sd_notify(3)): that the daemon is ready, reloads, stops, what it is doing,
 * and that it still ticks.
 *
 * sd-event does not feed the watchdog, because it would do so as long as the loop turns: a daemon that no
 * longer ticks would still serve clients, but place nothing. */

#include "base/human.h"
#include "base/time.h"
#include "daemon/manager/manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

void manager_notify_init(Manager *manager)
{
    if (sd_watchdog_enabled(0, &manager->watchdog_usec) <= 0)
        manager->watchdog_usec = 0;
}

/* Feeds the watchdog, unless it was fed less than `rest_usec` ago. */
static void feed_watchdog(Manager *manager, uint64_t rest_usec)
{
    uint64_t now_usec;

    if (manager->watchdog_usec == 0)
        return;
    now_usec = time_now_usec();
    if (now_usec - manager->fed_usec < rest_usec)
        return;
    (void)sd_notify(0, "WATCHDOG=1");
    manager->fed_usec = now_usec;
}

/* Sends one line of status if it has changed. */
static void tell_status(Manager *manager)
{
    const World *world = manager->world;
    char text[sizeof(manager->status)];

    (void)snprintf(text, sizeof(text), "%s%s: %zu %s, %zu %s, %zu %s lent", manager_mode_name(manager->mode),
                   manager->paused ? ", paused" : "", world->n_workloads,
                   human_noun(world->n_workloads, "workload", "workloads"), world->n_processes,
                   human_noun(world->n_processes, "process", "processes"), world->n_leases,
                   human_noun(world->n_leases, "CPU", "CPUs"));
    if (strcmp(text, manager->status) == 0)
        return;
    (void)strcpy(manager->status, text); /* NOLINT: same size */
    (void)sd_notifyf(0, "STATUS=%s", text);
}

void manager_notify_ready(Manager *manager)
{
    (void)sd_notify(0, "READY=1");
    tell_status(manager);
}

void manager_notify_reloading(void)
{
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, time_now_usec());
}

void manager_notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void manager_notify_ticked(Manager *manager)
{
    /* Not ten times a second: two ticks come within the watchdog's time, so it is fed within three quarters of it. */
    feed_watchdog(manager, manager->watchdog_usec / 4);
    tell_status(manager);
}

int manager_put_back(Manager *manager, const ActSelection *selection, size_t *ret_restored, size_t *ret_left)
{
    int r;

    feed_watchdog(manager, 0);
    r = act_restore_persistently(manager->act, selection, ret_restored, ret_left);
    manager->statistics.n_foreign_restores += *ret_left;
    return r;
}
