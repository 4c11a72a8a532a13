/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Only the names of methods and who may call them. The answers are in views/describe.c, the effects in
 * manager/admin.c and manager/reload.c, the properties in views/objects.c. */

#include "base/scan.h"
#include "daemon/bus/authorize.h"
#include "daemon/views/describe.h"
#include "daemon/views/objects.h"
#include "numaplace/bus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t page(uint32_t max)
{
    return max == 0 ? NUMAPLACE_BUS_PAGE_MAX : MIN(max, NUMAPLACE_BUS_PAGE_MAX);
}

/* An empty reply to be filled by a describe_ function and sent by reply_send(). */
static Dict reply_new(sd_bus_message *call)
{
    Dict dict = {0};

    dict.error = MIN(sd_bus_message_new_method_return(call, &dict.message), 0);
    return dict;
}

/* Sends the reply. If filling it failed, returns that error, and sd-bus answers with it. */
static int reply_send(Dict *dict)
{
    int r = dict->error < 0 ? dict->error : sd_bus_send(NULL, dict->message, NULL);

    sd_bus_message_unref(dict->message);
    return r;
}

static int no_such_workload(sd_bus_error *error, const char *name)
{
    pid_t pid;

    if (scan_pid(name, &pid))
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD,
                                 "there is no workload '%s': expected a workload, not a process", name);
    return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD, "there is no workload '%s'", name);
}

static int method_describe(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    static const struct {
        const char *member;
        void (*describe)(Dict *dict, Manager *manager);
    } methods[] = {
        {"GetStatus", describe_status},        {"GetTopology", describe_topology},
        {"ListCpus", describe_cpus},           {"GetCpuLoads", describe_cpu_loads},
        {"ListWorkloads", describe_workloads},
    };
    Dict dict = reply_new(message);

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (!strcmp(methods[i].member, sd_bus_message_get_member(message)))
            methods[i].describe(&dict, manager_of(userdata));
    return reply_send(&dict);
}

static int method_get_workload(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    Manager *manager = manager_of(userdata);
    const Workload *workload;
    const char *name;
    Dict dict;
    int r = sd_bus_message_read(message, "s", &name);

    if (r < 0)
        return r;
    workload = world_workload_by_name(manager->world, name);
    if (!workload)
        return no_such_workload(error, name);
    dict = reply_new(message);
    describe_workload(&dict, manager, workload);
    return reply_send(&dict);
}

static int method_list_tasks(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    Manager *manager = manager_of(userdata);
    const Workload *workload;
    const char *name;
    int32_t pid, tid;
    uint32_t max;
    Dict dict;
    int r = sd_bus_message_read(message, "siiu", &name, &pid, &tid, &max);

    if (r < 0)
        return r;
    workload = world_workload_by_name(manager->world, name);
    if (!workload)
        return no_such_workload(error, name);
    dict = reply_new(message);
    describe_tasks(&dict, manager, workload, pid, tid, page(max));
    return reply_send(&dict);
}

static int method_explain(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    Manager *manager = manager_of(userdata);
    const Workload *workload;
    const char *name;
    pid_t pid;
    Dict dict;
    int r = sd_bus_message_read(message, "s", &name);

    if (r < 0)
        return r;
    workload = world_workload_by_name(manager->world, name);
    if (!workload && !scan_pid(name, &pid))
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD,
                                 "there is no workload '%s', and it is not a PID", name);

    dict = reply_new(message);
    r = workload ? describe_explain_workload(&dict, manager, name, workload)
                 : describe_explain_process(&dict, manager, name, pid);
    if (r < 0)
        dict.error = r;
    r = reply_send(&dict);
    if (r == -ESRCH)
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_PROCESS, "there is no process %s", name);
    return r;
}

/* ListMoves and ListHistory. */
static int method_list_past(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    bool moves = !strcmp(sd_bus_message_get_member(message), "ListMoves");
    uint64_t after;
    uint32_t max;
    Dict dict;
    int r = sd_bus_message_read(message, "tu", &after, &max);

    if (r < 0)
        return r;
    dict = reply_new(message);
    (moves ? describe_moves : describe_history)(&dict, manager_of(userdata), after, page(max));
    return reply_send(&dict);
}

/* Does what the message says: Pause, Resume or Release. The answer is empty. */
static int administer(sd_bus_message *message, void *userdata, sd_bus_error *error, const char *name)
{
    Manager *manager = manager_of(userdata);
    const char *member = sd_bus_message_get_member(message);
    int r = !strcmp(member, "Pause")    ? manager_pause(manager, name)
            : !strcmp(member, "Resume") ? manager_resume(manager, name)
                                        : manager_release(manager, name);

    switch (r) {
    case 0:
        return sd_bus_reply_method_return(message, NULL);
    case MANAGER_E_LATER:
        manager_release_answer(manager, message);
        return 1;
    case MANAGER_E_NO_SUCH_WORKLOAD:
        return no_such_workload(error, name);
    case MANAGER_E_NO_SUCH_PROCESS:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_PROCESS, "process %s is not managed", name);
    case MANAGER_E_LIMIT:
        return sd_bus_error_setf(
            error, NUMAPLACE_ERROR_LIMIT,
            "%u processes are already released one by one; release their workload instead",
            MANAGER_RELEASED_MAX);
    case MANAGER_E_BUSY:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_LIMIT,
                                 "%u releases are under way already; try again later", MANAGER_RELEASING_MAX);
    case -EREMOTEIO:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NOT_RESTORED,
                                 "not all of '%s' could be put back; see the log", name);
    default:
        return r;
    }
}

/* The manager's methods take a name; "" is everything. */
static int method_administer(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const char *name;
    int r = sd_bus_message_read(message, "s", &name);

    if (r < 0)
        return r;
    r = bus_authorize(message, userdata, *name ? NUMAPLACE_ACTION_OVERRIDE : NUMAPLACE_ACTION_MANAGE, name,
                      method_administer, error);
    if (r <= 0)
        return r < 0 ? r : 1;
    return administer(message, userdata, error, name);
}

static int method_reload(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    CLEANUP_FREE char *what = NULL;
    int r = bus_authorize(message, userdata, NUMAPLACE_ACTION_MANAGE, "", method_reload, error);

    if (r <= 0)
        return r < 0 ? r : 1;
    r = manager_reload(manager_of(userdata), &what);
    if (r == -EBADMSG)
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_BAD_POLICY, "%s", what ? what : "see the log");
    return r < 0 ? r : sd_bus_reply_method_return(message, NULL);
}

static int read_assignment(sd_bus_message *message, Assignment *ret, bool *ret_starting)
{
    const char *policy;
    int32_t pid;
    int starting;
    int r = sd_bus_message_read(message, "itsb", &pid, &ret->start_ticks, &policy, &starting);

    if (r < 0)
        return r;
    ret->pid = pid;
    *ret_starting = starting;
    /* A name longer than any policy's becomes "", which no policy has. */
    (void)snprintf(ret->policy, sizeof(ret->policy), "%s", strlen(policy) <= POLICY_NAME_MAX ? policy : "");
    return 0;
}

/* Answered after the next tick, by manager_answer_assigned(). */
static int method_assign_process(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    Manager *manager = manager_of(userdata);
    Assignment who = {0};
    bool starting;
    uid_t owner;
    int r = read_assignment(message, &who, &starting);

    if (r < 0)
        return r;
    r = bus_authorize(message, userdata, NUMAPLACE_ACTION_OVERRIDE, who.policy, method_assign_process, error);
    if (r <= 0)
        return r < 0 ? r : 1;
    r = manager_process_owner(manager, who.pid, who.start_ticks, &owner);
    if (r == -ESRCH)
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_PROCESS,
                                 "there is no process %d that started at %" PRIu64, (int)who.pid,
                                 who.start_ticks);
    if (r < 0)
        return r;
    if (!bus_is_owner(message, userdata, owner))
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NOT_PERMITTED, "process %d belongs to another user",
                                 (int)who.pid);
    r = manager_assign_process(manager, message, &who, starting);
    switch (r) {
    case 0:
        return 1;
    case MANAGER_E_NO_SUCH_POLICY:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD, "there is no policy '%s'",
                                 who.policy);
    case MANAGER_E_LIMIT:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_LIMIT,
                                 "%u processes are already assigned to policies, or %u calls are waiting",
                                 ASSIGNMENTS_MAX, MANAGER_ASSIGNING_MAX);
    default:
        return r;
    }
}

/* The workload a call was sent to. sd-bus has just looked for it, but polkit's answer may have come after a
 * reload without it. */
static const Workload *workload_of(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const char *path = sd_bus_message_get_path(message);
    const Workload *workload = manager_object_workload(manager_of(userdata), path);

    if (!workload)
        (void)no_such_workload(error, path);
    return workload;
}

static int workload_method_get(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const Workload *workload = workload_of(message, userdata, error);
    Dict dict;

    if (!workload)
        return -sd_bus_error_get_errno(error);
    dict = reply_new(message);
    describe_workload(&dict, manager_of(userdata), workload);
    return reply_send(&dict);
}

static int workload_method_administer(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const Workload *workload = workload_of(message, userdata, error);
    int r;

    if (!workload)
        return -sd_bus_error_get_errno(error);
    r = bus_authorize(message, userdata, NUMAPLACE_ACTION_OVERRIDE, workload->name,
                      workload_method_administer, error);
    if (r <= 0)
        return r < 0 ? r : 1;
    return administer(message, userdata, error, workload->name);
}

/* Everyone who can connect may read. bus_authorize() decides about changes: sd-bus itself would look for
 * CAP_SYS_ADMIN, and wait for the bus to say who has it. */
#define READ   SD_BUS_VTABLE_UNPRIVILEGED
#define CHANGE SD_BUS_VTABLE_UNPRIVILEGED

#define METHOD(name, in, in_names, out, out_names, handler, flags) \
    SD_BUS_METHOD_WITH_NAMES(name, in, in_names, out, out_names, handler, flags)

static const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    METHOD("GetStatus", "", "", "a{sv}", SD_BUS_PARAM(status), method_describe, READ),
    METHOD("GetTopology", "", "", "a{sv}", SD_BUS_PARAM(topology), method_describe, READ),
    METHOD("ListCpus", "", "", "aa{sv}", SD_BUS_PARAM(cpus), method_describe, READ),
    METHOD("GetCpuLoads", "", "", "a{sv}", SD_BUS_PARAM(loads), method_describe, READ),
    METHOD("ListWorkloads", "", "", "aa{sv}", SD_BUS_PARAM(workloads), method_describe, READ),
    METHOD("GetWorkload", "s", SD_BUS_PARAM(name), "a{sv}", SD_BUS_PARAM(workload), method_get_workload,
           READ),
    METHOD("ListTasks", "siiu", SD_BUS_PARAM(name) SD_BUS_PARAM(pid) SD_BUS_PARAM(tid) SD_BUS_PARAM(max),
           "aa{sv}", SD_BUS_PARAM(tasks), method_list_tasks, READ),
    METHOD("Explain", "s", SD_BUS_PARAM(pid_or_name), "a{sv}", SD_BUS_PARAM(explanation), method_explain,
           READ),
    METHOD("ListMoves", "tu", SD_BUS_PARAM(after) SD_BUS_PARAM(max), "aa{sv}", SD_BUS_PARAM(moves),
           method_list_past, READ),
    METHOD("ListHistory", "tu", SD_BUS_PARAM(after) SD_BUS_PARAM(max), "aa{sv}", SD_BUS_PARAM(steps),
           method_list_past, READ),
    METHOD("Pause", "s", SD_BUS_PARAM(name), "", "", method_administer, CHANGE),
    METHOD("Resume", "s", SD_BUS_PARAM(name), "", "", method_administer, CHANGE),
    METHOD("Release", "s", SD_BUS_PARAM(name), "", "", method_administer, CHANGE),
    METHOD("Reload", "", "", "", "", method_reload, CHANGE),
    METHOD("AssignProcess", "itsb",
           SD_BUS_PARAM(pid) SD_BUS_PARAM(start_ticks) SD_BUS_PARAM(policy) SD_BUS_PARAM(starting), "a{sv}",
           SD_BUS_PARAM(assignment), method_assign_process, CHANGE),
    SD_BUS_SIGNAL_WITH_NAMES("Moved", "a{sv}", SD_BUS_PARAM(move), 0),
    SD_BUS_SIGNAL_WITH_NAMES("Refused", "a{st}", SD_BUS_PARAM(refused), 0),
    SD_BUS_PROPERTY("Version", "s", manager_object_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Mode", "s", manager_object_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Paused", "b", manager_object_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Workloads", "u", manager_object_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable workload_vtable[] = {
    SD_BUS_VTABLE_START(0),
    METHOD("Get", "", "", "a{sv}", SD_BUS_PARAM(workload), workload_method_get, READ),
    METHOD("Pause", "", "", "", "", workload_method_administer, CHANGE),
    METHOD("Resume", "", "", "", "", workload_method_administer, CHANGE),
    METHOD("Release", "", "", "", "", workload_method_administer, CHANGE),
    SD_BUS_PROPERTY("Name", "s", manager_object_get_workload, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Description", "s", manager_object_get_workload, 0, 0),
    SD_BUS_PROPERTY("Paused", "b", manager_object_get_workload, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Home", "s", manager_object_get_workload, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("HomeNodes", "s", manager_object_get_workload, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Processes", "u", manager_object_get_workload, 0, 0),
    SD_BUS_PROPERTY("Tasks", "u", manager_object_get_workload, 0, 0),
    SD_BUS_PROPERTY("Lends", "t", manager_object_get_workload, 0, 0),
    SD_BUS_PROPERTY("Recalls", "t", manager_object_get_workload, 0, 0),
    SD_BUS_VTABLE_END,
};

int manager_bus_add(sd_bus *bus, BusPeer *peer)
{
    int r = sd_bus_add_object_vtable(bus, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                     manager_vtable, peer);

    if (r < 0)
        return r;
    r = sd_bus_add_fallback_vtable(bus, NULL, NUMAPLACE_BUS_PATH_WORKLOADS, NUMAPLACE_BUS_INTERFACE_WORKLOAD,
                                   workload_vtable, manager_object_find, peer);
    if (r < 0)
        return r;
    r = sd_bus_add_node_enumerator(bus, NULL, NUMAPLACE_BUS_PATH_WORKLOADS, manager_object_list, peer);
    if (r < 0)
        return r;
    return sd_bus_add_object_manager(bus, NULL, NUMAPLACE_BUS_PATH);
}
