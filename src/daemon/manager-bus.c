/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Only what a method is called and who may call it; what it says is in manager-describe.c, what it does in
 * manager-admin.c and manager-reload.c. */

#include "daemon/manager-bus.h"

#include "daemon/manager-describe.h"
#include "daemon/manager.h"
#include "numaplace/bus.h"

#include <string.h>

static Manager *manager_of(void *userdata)
{
    return bus_client_userdata(userdata);
}

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

/* Sends the reply; when filling it failed, returns why, and sd-bus answers with that error. */
static int reply_send(Dict *dict)
{
    int r = dict->error < 0 ? dict->error : sd_bus_send(NULL, dict->message, NULL);

    sd_bus_message_unref(dict->message);
    return r;
}

static int no_such_workload(sd_bus_error *error, const char *name)
{
    return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD, "there is no workload '%s'", name);
}

/* A method without arguments: its answer is all there is to it. */
static int answer(sd_bus_message *message, void *userdata, void (*describe)(Dict *dict, Manager *manager))
{
    Dict dict = reply_new(message);

    describe(&dict, manager_of(userdata));
    return reply_send(&dict);
}

static int method_get_status(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return answer(message, userdata, describe_status);
}

static int method_get_topology(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return answer(message, userdata, describe_topology);
}

static int method_list_cpus(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return answer(message, userdata, describe_cpus);
}

static int method_list_workloads(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return answer(message, userdata, describe_workloads);
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
    if (!workload && !manager_is_pid(name, &pid))
        return no_such_workload(error, name);

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

static int method_list_moves(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    uint64_t after;
    uint32_t max;
    Dict dict;
    int r = sd_bus_message_read(message, "tu", &after, &max);

    if (r < 0)
        return r;
    dict = reply_new(message);
    describe_moves(&dict, manager_of(userdata), after, page(max));
    return reply_send(&dict);
}

static int not_permitted(void *userdata, sd_bus_error *error)
{
    return sd_bus_error_setf(error, NUMAPLACE_ERROR_NOT_PERMITTED,
                             "user %u may only look: changing is for root and for the user of the daemon",
                             (unsigned)bus_client_uid(userdata));
}

/* Pause, Resume and Release: one name, no answer but success. */
static int administer(sd_bus_message *message, void *userdata, sd_bus_error *error,
                      int (*method)(Manager *manager, const char *name))
{
    const char *name;
    int r;

    if (!bus_client_privileged(userdata))
        return not_permitted(userdata, error);
    r = sd_bus_message_read(message, "s", &name);
    if (r < 0)
        return r;
    r = method(manager_of(userdata), name);
    switch (r) {
    case 0:
        return sd_bus_reply_method_return(message, NULL);
    case MANAGER_E_NO_SUCH_WORKLOAD:
        return no_such_workload(error, name);
    case MANAGER_E_NO_SUCH_PROCESS:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NO_SUCH_PROCESS, "process %s is not managed", name);
    case MANAGER_E_LIMIT:
        return sd_bus_error_setf(
            error, NUMAPLACE_ERROR_LIMIT,
            "%u processes are released one by one already; release their workload instead",
            MANAGER_RELEASED_MAX);
    case -EREMOTEIO:
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_NOT_RESTORED,
                                 "not all of '%s' could be put back; see the log", name);
    default:
        return r;
    }
}

static int method_pause(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return administer(message, userdata, error, manager_pause);
}

static int method_resume(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return administer(message, userdata, error, manager_resume);
}

static int method_release(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return administer(message, userdata, error, manager_release);
}

static int method_reload(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    CLEANUP_FREE char *what = NULL;
    int r;

    if (!bus_client_privileged(userdata))
        return not_permitted(userdata, error);
    r = manager_reload(manager_of(userdata), &what);
    if (r == -EBADMSG)
        return sd_bus_error_setf(error, NUMAPLACE_ERROR_BAD_POLICY, "%s", what ? what : "see the log");
    return r < 0 ? r : sd_bus_reply_method_return(message, NULL);
}

/* Reading is for everyone who can connect; sd-bus must not ask for privileges itself, since on a private
 * socket it has no bus daemon to ask. */
#define READ   SD_BUS_VTABLE_UNPRIVILEGED
#define CHANGE SD_BUS_VTABLE_UNPRIVILEGED /* checked by bus_client_privileged() */

const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "a{sv}", method_get_status, READ),
    SD_BUS_METHOD("GetTopology", "", "a{sv}", method_get_topology, READ),
    SD_BUS_METHOD("ListCpus", "", "aa{sv}", method_list_cpus, READ),
    SD_BUS_METHOD("ListWorkloads", "", "aa{sv}", method_list_workloads, READ),
    SD_BUS_METHOD("GetWorkload", "s", "a{sv}", method_get_workload, READ),
    SD_BUS_METHOD("ListTasks", "siiu", "aa{sv}", method_list_tasks, READ),
    SD_BUS_METHOD("Explain", "s", "a{sv}", method_explain, READ),
    SD_BUS_METHOD("ListMoves", "tu", "aa{sv}", method_list_moves, READ),
    SD_BUS_METHOD("Pause", "s", "", method_pause, CHANGE),
    SD_BUS_METHOD("Resume", "s", "", method_resume, CHANGE),
    SD_BUS_METHOD("Release", "s", "", method_release, CHANGE),
    SD_BUS_METHOD("Reload", "", "", method_reload, CHANGE),
    SD_BUS_SIGNAL("Moved", "a{sv}", 0),
    SD_BUS_VTABLE_END,
};
