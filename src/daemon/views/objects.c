/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Changes are found by comparing with the last values sent, whatever caused them: plans, reloads, administrators.
 * That is done only after an event (manager->objects_changed), and costs one pass over the groups.
 *
 * Numbers that change all the time (tasks, lends) are properties without signals; clients read them when they
 * need them. */

#include "daemon/views/objects.h"

#include "base/parse.h"
#include "base/time.h"
#include "conf/utf8.h"
#include "numaplace/bus.h"

#include <string.h>

/* Between two summaries of refusals. */
#define REFUSED_INTERVAL_USEC (10 * USEC_PER_SEC)

/* A workload as last told to clients. */
typedef struct ObjectView {
    char *name;
    hwloc_bitmap_t home; /* of all its groups together, never NULL */
    bool paused;
    bool present; /* while comparing: it still exists */
} ObjectView;

typedef struct ObjectViews {
    ObjectView *items;
    size_t n, capacity;
    bool paused;
    uint64_t n_refused[PLAN_REASON_MAX];
    uint64_t refused_usec; /* of the last summary */
} ObjectViews;

static void view_done(ObjectView *view)
{
    free(view->name);
    hwloc_bitmap_free(view->home);
}

ObjectViews *object_views_free(ObjectViews *views)
{
    if (!views)
        return NULL;
    for (size_t i = 0; i < views->n; i++)
        view_done(&views->items[i]);
    free(views->items);
    free(views);
    return NULL;
}

static char *workload_path(const char *name)
{
    char *path = NULL;

    return sd_bus_path_encode(NUMAPLACE_BUS_PATH_WORKLOADS, name, &path) < 0 ? NULL : path;
}

const Workload *manager_object_workload(Manager *manager, const char *path)
{
    CLEANUP_FREE char *name = NULL;

    if (sd_bus_path_decode(path, NUMAPLACE_BUS_PATH_WORKLOADS, &name) <= 0)
        return NULL;
    return world_workload_by_name(manager->world, name);
}

int manager_object_find(sd_bus *bus, const char *path, const char *interface, void *userdata,
                        void **ret_found, sd_bus_error *error)
{
    if (!manager_object_workload(manager_of(userdata), path))
        return 0;
    *ret_found = userdata;
    return 1;
}

static void paths_free_p(char ***paths)
{
    for (char **p = *paths; p && *p; p++)
        free(*p);
    free(*paths);
}

int manager_object_list(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                        sd_bus_error *error)
{
    const World *world = manager_of(userdata)->world;
    CLEANUP(paths_free_p) char **paths = calloc(world->n_workloads + 1, sizeof(*paths));

    if (!paths)
        return -ENOMEM;
    for (size_t i = 0; i < world->n_workloads; i++) {
        paths[i] = workload_path(world->workloads[i].name);
        if (!paths[i])
            return -ENOMEM;
    }
    *ret_nodes = TAKE_PTR(paths);
    return 0;
}

hwloc_bitmap_t manager_object_homes(const Manager *manager, WorkloadIx workload,
                                    ManagerGroupElsewhere *elsewhere, bool nodes)
{
    CLEANUP_BITMAP hwloc_bitmap_t home = hwloc_bitmap_alloc();
    const World *world = manager->world;
    int r = home ? 0 : -1;

    for (size_t i = 0; i < world->n_groups && r >= 0; i++) {
        const Group *group = &world->groups[i];

        if (group->workload.i != workload.i || group->gone)
            continue;
        if (elsewhere)
            group = elsewhere(manager, group);
        if (group && group->home)
            r = nodes ? topology_add_node_numbers(world->topology, group->home_nodes, home)
                      : hwloc_bitmap_or(home, home, group->home);
    }
    return r >= 0 ? TAKE_PTR(home) : NULL;
}

static int append_text(sd_bus_message *reply, const char *foreign)
{
    CLEANUP_FREE char *text = utf8_escape_alloc(foreign);

    return text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
}

int manager_object_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const Manager *manager = manager_of(userdata);

    if (strcmp(property, "Version") == 0)
        return sd_bus_message_append(reply, "s", NUMAPLACE_VERSION);
    if (strcmp(property, "Mode") == 0)
        return sd_bus_message_append(reply, "s", manager_mode_name(manager->mode));
    if (strcmp(property, "Paused") == 0)
        return sd_bus_message_append(reply, "b", (int)manager->paused);
    assert(strcmp(property, "Workloads") == 0);
    return sd_bus_message_append(reply, "u", (uint32_t)manager->world->n_workloads);
}

static int append_home(sd_bus_message *reply, const Manager *manager, const Workload *workload, bool nodes)
{
    CLEANUP_BITMAP hwloc_bitmap_t home =
        manager_object_homes(manager, world_workload_index(manager->world, workload), NULL, nodes);
    CLEANUP_FREE char *text = home ? format_list(home, PARSE_CPU_MAX) : NULL;

    return text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
}

int manager_object_get_workload(sd_bus *bus, const char *path, const char *interface, const char *property,
                                sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    Manager *manager = manager_of(userdata);
    const Workload *workload = manager_object_workload(manager, path);

    if (!workload)
        return -ENOENT;
    if (strcmp(property, "Name") == 0)
        return append_text(reply, workload->name);
    if (strcmp(property, "Description") == 0)
        return append_text(reply, manager->policies->policies[workload->policy]->description);
    if (strcmp(property, "Paused") == 0)
        return sd_bus_message_append(reply, "b", (int)workload->paused);
    if (strcmp(property, "Home") == 0)
        return append_home(reply, manager, workload, false);
    if (strcmp(property, "HomeNodes") == 0)
        return append_home(reply, manager, workload, true);
    if (strcmp(property, "Processes") == 0)
        return sd_bus_message_append(reply, "u", workload->n_processes);
    if (strcmp(property, "Tasks") == 0)
        return sd_bus_message_append(reply, "u", workload->n_tasks);
    if (strcmp(property, "Lends") == 0)
        return sd_bus_message_append(reply, "t", workload->n_lends);
    assert(strcmp(property, "Recalls") == 0);
    return sd_bus_message_append(reply, "t", workload->n_recalls);
}

void manager_tell(Manager *manager, BusTell tell, void *userdata)
{
    if (manager->bus)
        bus_server_tell(manager->bus, tell, userdata);
    if (manager->system_bus)
        bus_system_tell(manager->system_bus, tell, userdata);
}

static void tell_added(sd_bus *bus, void *path)
{
    (void)sd_bus_emit_interfaces_added(bus, path, NUMAPLACE_BUS_INTERFACE_WORKLOAD, NULL);
}

static void tell_removed(sd_bus *bus, void *path)
{
    (void)sd_bus_emit_interfaces_removed(bus, path, NUMAPLACE_BUS_INTERFACE_WORKLOAD, NULL);
}

typedef struct Change {
    const char *path, *interface, *property, *other; /* NULL: one property only */
} Change;

static void tell_change(sd_bus *bus, void *userdata)
{
    const Change *change = userdata;

    (void)sd_bus_emit_properties_changed(bus, change->path, change->interface, change->property,
                                         change->other, NULL);
}

static ObjectView *find_view(ObjectViews *views, const char *name)
{
    for (size_t i = 0; i < views->n; i++)
        if (strcmp(views->items[i].name, name) == 0)
            return &views->items[i];
    return NULL;
}

/* Takes over `home`. */
static void add_view(Manager *manager, const Workload *workload, char *path, hwloc_bitmap_t home)
{
    ObjectViews *views = manager->views;
    ObjectView view = {
        .name = strdup(workload->name), .home = home, .paused = workload->paused, .present = true};

    if (!view.name || !GROW(views->items, views->capacity, views->n + 1)) {
        view_done(&view);
        return;
    }
    views->items[views->n++] = view;
    manager_tell(manager, tell_added, path);
}

static void compare_workload(Manager *manager, const Workload *workload)
{
    ObjectView *view = find_view(manager->views, workload->name);
    CLEANUP_FREE char *path = workload_path(workload->name);
    CLEANUP_BITMAP hwloc_bitmap_t home =
        manager_object_homes(manager, world_workload_index(manager->world, workload), NULL, false);

    /* Out of memory: the change is told when something changes again. */
    if (!path || !home) {
        if (view)
            view->present = true;
        return;
    }
    if (!view) {
        add_view(manager, workload, path, TAKE_PTR(home));
        return;
    }
    view->present = true;
    if (view->paused != workload->paused) {
        view->paused = workload->paused;
        manager_tell(manager, tell_change, &(Change){path, NUMAPLACE_BUS_INTERFACE_WORKLOAD, "Paused", NULL});
    }
    if (!hwloc_bitmap_isequal(view->home, home)) {
        hwloc_bitmap_t old = view->home;

        view->home = home;
        home = old;
        manager_tell(manager, tell_change,
                     &(Change){path, NUMAPLACE_BUS_INTERFACE_WORKLOAD, "Home", "HomeNodes"});
    }
}

static void drop_absent(Manager *manager)
{
    ObjectViews *views = manager->views;
    size_t n = 0;

    for (size_t i = 0; i < views->n; i++) {
        CLEANUP_FREE char *path = views->items[i].present ? NULL : workload_path(views->items[i].name);

        if (views->items[i].present) {
            views->items[n++] = views->items[i];
            continue;
        }
        view_done(&views->items[i]);
        if (path)
            manager_tell(manager, tell_removed, path);
    }
    views->n = n;
}

static void compare(Manager *manager)
{
    ObjectViews *views = manager->views;
    size_t n = views->n;

    for (size_t i = 0; i < views->n; i++)
        views->items[i].present = false;
    for (size_t i = 0; i < manager->world->n_workloads; i++)
        compare_workload(manager, &manager->world->workloads[i]);
    drop_absent(manager);
    if (views->n != n)
        manager_tell(manager, tell_change,
                     &(Change){NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, "Workloads", NULL});
    if (views->paused != manager->paused) {
        views->paused = manager->paused;
        manager_tell(manager, tell_change,
                     &(Change){NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, "Paused", NULL});
    }
}

typedef struct RefusedSignal {
    const Manager *manager;
    const uint64_t *before;
} RefusedSignal;

static int fill_refused(sd_bus_message *message, const RefusedSignal *signal)
{
    int r = sd_bus_message_open_container(message, 'a', "{st}");

    for (int i = 0; i < PLAN_REASON_MAX && r >= 0; i++) {
        uint64_t n = signal->manager->statistics.n_refused[i] - signal->before[i];

        if (n > 0)
            r = sd_bus_message_append(message, "{st}", plan_reason_name((PlanReason)i), n);
    }
    return r < 0 ? r : sd_bus_message_close_container(message);
}

static void tell_refused(sd_bus *bus, void *userdata)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;

    if (sd_bus_message_new_signal(bus, &message, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                  "Refused") >= 0 &&
        fill_refused(message, userdata) >= 0)
        (void)sd_bus_send(bus, message, NULL);
}

static void summarize_refusals(Manager *manager)
{
    ObjectViews *views = manager->views;
    RefusedSignal signal = {.manager = manager, .before = views->n_refused};
    uint64_t now = manager->world->now_usec;

    if (now < views->refused_usec + REFUSED_INTERVAL_USEC ||
        memcmp(views->n_refused, manager->statistics.n_refused, sizeof(views->n_refused)) == 0)
        return;
    manager_tell(manager, tell_refused, &signal);
    (void)memcpy(views->n_refused, manager->statistics.n_refused, sizeof(views->n_refused));
    views->refused_usec = now;
}

void manager_objects_tell(Manager *manager)
{
    if (!manager->views)
        manager->views = calloc(1, sizeof(*manager->views));
    if (!manager->views)
        return;
    if (manager->objects_changed)
        compare(manager);
    manager->objects_changed = false;
    summarize_refusals(manager);
}
