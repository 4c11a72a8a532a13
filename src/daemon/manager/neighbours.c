/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Other software that decides where tasks run or where memory is. Most is only reported: its effects are seen and
 * respected in masks, cpusets and lists of CPUs. numad is different. It places the same processes by other
 * numbers, and each would take the other's work for the administrator's. So everything is paused when it appears.
 *
 * The daemon does not resume by itself when numad is gone: that would surprise an administrator who tries one and
 * then the other. */

#include "base/time.h"
#include "daemon/manager/manager.h"
#include "daemon/views/describe.h"
#include "numaplace/messages.h"

#include <string.h>

/* A look reads some ten small files, in less than a tenth of a millisecond. */
#define LOOK_USEC (10 * USEC_PER_SEC)

static void tell(Manager *manager, NeighbourKind kind, const Neighbour *neighbour)
{
    const char *detail = neighbour->detail;

    if (neighbour->present)
        log_info(manager->log, NUMAPLACE_MESSAGE_NEIGHBOUR, "other placement mechanism: %s%s%s%s: %s",
                 neighbour_name(kind), *detail ? " (" : "", detail, *detail ? ")" : "", neighbour_text(kind));
    else
        log_info(manager->log, NUMAPLACE_MESSAGE_NEIGHBOUR, "other placement mechanism gone: %s",
                 neighbour_name(kind));
}

static bool is_news(const Neighbour *before, const Neighbour *now)
{
    return before->present != now->present || strcmp(before->detail, now->detail) != 0;
}

int manager_neighbours_look(Manager *manager, uint64_t now_usec)
{
    Neighbours now;
    bool rival;
    int r;

    if (manager->neighbours_usec > 0 && now_usec - manager->neighbours_usec < LOOK_USEC)
        return 0;
    r = neighbours_read(manager->root_fd, &now);
    /* Otherwise numad would seem to end and come back, and what an administrator has resumed would pause again. */
    if (r == -EMFILE || r == -ENFILE)
        return 0;
    if (r < 0)
        return r;
    for (int i = 0; i < NEIGHBOUR_MAX; i++)
        if (is_news(&manager->neighbours.of[i], &now.of[i]))
            tell(manager, (NeighbourKind)i, &now.of[i]);
    rival = now.of[NEIGHBOUR_NUMAD].present && !manager->neighbours.of[NEIGHBOUR_NUMAD].present;
    manager->neighbours = now;
    manager->neighbours_usec = now_usec;
    if (rival && manager->mode == MANAGER_MODE_ACTIVE && !manager->paused) {
        log_warning(manager->log, NUMAPLACE_MESSAGE_NEIGHBOUR,
                    "numad is running: placement is paused until \"numaplacectl resume --all\"");
        manager_stand_back(manager);
    }
    return 0;
}

void describe_neighbours(Dict *dict, const Manager *manager)
{
    dict_list_begin(dict, "neighbours");
    for (int i = 0; i < NEIGHBOUR_MAX; i++) {
        if (!manager->neighbours.of[i].present)
            continue;
        dict_begin(dict);
        dict_string(dict, "name", neighbour_name((NeighbourKind)i));
        dict_string(dict, "detail", manager->neighbours.of[i].detail);
        dict_string(dict, "text", neighbour_text((NeighbourKind)i));
        dict_end(dict);
    }
    dict_list_end(dict, "neighbours");
}
