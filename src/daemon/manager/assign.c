/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Assigns a process to a policy by name, for `numaplacectl run`: the command must start where its policy says, not be
 * found elsewhere a second later. So the tick that placed the process answers the call, and only then does the caller
 * continue.
 *
 * Rejected: numaplacectl binds its command itself. Then nothing would know what to put back. PID and start time survive
 * execve(2), so the process that was placed is the command.
 *
 * Assignments outlive a restart of the daemon in /run/numaplace/assigned, which is rewritten when they change. It is no
 * undo journal: nothing has to be put back because of it, and if it cannot be written a restart loses what has changed.
 * Writing is tried again at each discovery until it works. A file that cannot be read is kept under another name,
 * because it would be replaced. */

#include "daemon/views/describe.h"

#include "base/parse.h"
#include "base/root.h"
#include "base/time.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME         "assigned"
#define FILE_NAME_NEW     "assigned.new"
#define FILE_NAME_CORRUPT "assigned.corrupt"
#define FILE_MAX          (4UL << 20) /* ASSIGNMENTS_MAX lines of 256 bytes */

typedef struct Assigning {
    sd_bus_message *call;
    pid_t pid;
    uint64_t start_ticks;
    bool starting;
} Assigning;

typedef struct Owner {
    uint64_t start_ticks;
    uid_t uid;
} Owner;

static int on_owner(void *userdata, const ProbeSubject *subject)
{
    Owner *owner = userdata;

    owner->uid = subject->uid;
    return subject->start_ticks == owner->start_ticks ? 0 : -ESRCH;
}

int manager_process_owner(Manager *manager, pid_t pid, uint64_t start_ticks, uid_t *ret)
{
    Owner owner = {.start_ticks = start_ticks};
    int r = pid > 0 ? probe_look(manager->probe, pid, 0, on_owner, &owner) : -ESRCH;

    if (r == PROBE_E_OUT_OF_REACH)
        return -ESRCH;
    if (r < 0)
        return r;
    *ret = owner.uid;
    return 0;
}

static size_t policy_index(const Manager *manager, const char *name)
{
    for (size_t i = 0; i < manager->policies->n_policies; i++)
        if (strcmp(manager->policies->policies[i]->name, name) == 0)
            return i;
    return SIZE_MAX;
}

size_t manager_assigned_policy(Manager *manager, const ProbeSubject *subject)
{
    const Assignment who = {
        .pid = subject->pid,
        .start_ticks = subject->start_ticks,
        .group = subject->group,
        .session = subject->session,
    };
    const Assignment *assignment = assignments_inherit(manager->assigned, &who, subject->parent);

    return assignment ? policy_index(manager, assignment->policy) : SIZE_MAX;
}

int manager_assign_process(Manager *manager, sd_bus_message *call, const Assignment *who, bool starting)
{
    int r;

    if (policy_index(manager, who->policy) == SIZE_MAX)
        return MANAGER_E_NO_SUCH_POLICY;
    if (manager->n_assigning >= MANAGER_ASSIGNING_MAX)
        return MANAGER_E_LIMIT;
    if (!GROW(manager->assigning, manager->assigning_capacity, manager->n_assigning + 1))
        return -ENOMEM;
    r = assignments_set(manager->assigned, who);
    if (r < 0)
        return r == -ENOSPC ? MANAGER_E_LIMIT : r;
    manager->assigning[manager->n_assigning++] = (Assigning){
        .call = sd_bus_message_ref(call),
        .pid = who->pid,
        .start_ticks = who->start_ticks,
        .starting = starting,
    };
    (void)task_set_remove(manager->released, who->pid);
    probe_ask_about(manager->probe, who->pid);
    pace_now(&manager->pace, time_now_usec());
    manager_arm(manager);
    return 0;
}

/* The nodes to interleave the memory of the process over (P17, interleaving): those of its home, or, before
 * it has one, those that its policy allows. Only nodes with CPUs: a home has no others, and memory elsewhere
 * is moved to it. Malloc'd; NULL: it is not to be interleaved, as on one node, or out of memory. */
static char *stripe_of(const Manager *manager, const Process *process, const Policy *policy)
{
    const Topology *topology = manager->world->topology;
    const Group *group = process->group.i >= 0 ? &manager->world->groups[process->group.i] : NULL;
    CLEANUP_BITMAP hwloc_bitmap_t nodes = NULL;

    if (policy->mode != POLICY_MODE_INTERLEAVE || policy->act == POLICY_ACT_OBSERVE ||
        manager->mode != MANAGER_MODE_ACTIVE || !manager_has_memory(manager, topology))
        return NULL;
    nodes = hwloc_bitmap_alloc();
    for (uint32_t i = 0; nodes && i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];
        bool wanted = group && group->home_nodes
                          ? hwloc_bitmap_isset(group->home_nodes, i)
                          : !policy->nodes || hwloc_bitmap_isset(policy->nodes, node->os_index);

        if (wanted && node->n_cpus > 0 && node->memory_bytes > 0)
            (void)hwloc_bitmap_set(nodes, node->os_index); /* on failure, one less */
    }
    return nodes && hwloc_bitmap_weight(nodes) > 1 ? format_list(nodes, PARSE_CPU_MAX) : NULL;
}

/* Whether all threads of the process are confined to its home. */
static bool is_placed(const World *world, const Process *process)
{
    const Group *group = process->group.i >= 0 ? &world->groups[process->group.i] : NULL;
    size_t n, first = world_process_tasks(world, process, &n);

    if (!group || !group->home)
        return false;
    for (size_t i = first; i < first + n; i++)
        if (!world->tasks[i].gone &&
            (!world->tasks[i].allowed || !hwloc_bitmap_isincluded(world->tasks[i].allowed, group->home)))
            return false;
    return n > 0;
}

static void describe_assigned(Dict *dict, Manager *manager, const Assigning *assigning)
{
    const Assignment *assignment =
        assignments_find(manager->assigned, assigning->pid, assigning->start_ticks);
    const World *world = manager->world;
    const Process *process = world_process(manager->world, assigning->pid);
    size_t index = assignment ? policy_index(manager, assignment->policy) : SIZE_MAX;
    const Policy *policy = index != SIZE_MAX ? manager->policies->policies[index] : NULL;
    const Group *group;

    if (process && (process->gone || process->group.i < 0 || process->start_ticks != assigning->start_ticks))
        process = NULL;
    group = process ? &world->groups[process->group.i] : NULL;
    dict_begin(dict);
    dict_string(dict, "policy", policy ? policy->name : NULL);
    dict_string(dict, "mode", policy ? policy_mode_names[policy->mode] : NULL);
    dict_bool(dict, "managed", process);
    dict_bool(dict, "placed", process && is_placed(world, process));
    dict_cpus(dict, "home", group ? group->home : NULL);
    dict_nodes(dict, "home_nodes", world->topology, group ? group->home_nodes : NULL);
    dict_string(dict, "stripe", assignment ? assignment->stripe : NULL);
    dict_end(dict);
}

/* Remembers the memory policy that the process is going to set. Returns 0 or -ENOMEM. */
static int note_stripe(Manager *manager, const Assigning *assigning)
{
    const Assignment *found = assignments_find(manager->assigned, assigning->pid, assigning->start_ticks);
    const Process *process = world_process(manager->world, assigning->pid);
    CLEANUP_FREE char *stripe = NULL;
    Assignment value;
    size_t policy;

    if (!assigning->starting || !found || !process || process->gone)
        return 0;
    policy = policy_index(manager, found->policy);
    stripe = policy != SIZE_MAX ? stripe_of(manager, process, manager->policies->policies[policy]) : NULL;
    value = *found;
    value.stripe = stripe;
    return assignments_set(manager->assigned, &value);
}

static void answer(Manager *manager, const Assigning *assigning)
{
    Dict dict = {0};
    int r = note_stripe(manager, assigning);

    dict.error = r < 0 ? r : MIN(sd_bus_message_new_method_return(assigning->call, &dict.message), 0);
    describe_assigned(&dict, manager, assigning);
    if (dict.error < 0)
        (void)sd_bus_reply_method_errno(assigning->call, dict.error, NULL);
    else
        (void)sd_bus_send(NULL, dict.message, NULL);
    sd_bus_message_unref(dict.message);
}

void manager_answer_assigned(Manager *manager)
{
    for (size_t i = 0; i < manager->n_assigning; i++) {
        answer(manager, &manager->assigning[i]);
        sd_bus_message_unref(manager->assigning[i].call);
    }
    manager->n_assigning = 0;
}

void manager_assignments_done(Manager *manager)
{
    for (size_t i = 0; i < manager->n_assigning; i++)
        sd_bus_message_unref(manager->assigning[i].call);
    free(manager->assigning);
}

static bool lives(void *userdata, const Assignment *assignment)
{
    const Manager *manager = userdata;

    return probe_met(manager->probe, assignment->pid, assignment->start_ticks);
}

/* Writes a new file, and renames it over the old one. */
static int save(const Manager *manager)
{
    CLEANUP_FREE char *text = assignments_format(manager->assigned);
    CLEANUP_CLOSE int fd = -1;
    size_t len;
    ssize_t n;

    if (!text)
        return -ENOMEM;
    len = strlen(text);
    fd = openat(manager->runtime_fd, FILE_NAME_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                0600);
    if (fd < 0)
        return -errno;
    n = write(fd, text, len);
    if (n < 0)
        return -errno;
    if ((size_t)n != len)
        return -ENOSPC;
    return renameat(manager->runtime_fd, FILE_NAME_NEW, manager->runtime_fd, FILE_NAME) < 0 ? -errno : 0;
}

void manager_assignments_keep(Manager *manager)
{
    int r;

    assignments_sweep(manager->assigned, lives, manager);
    if (manager->runtime_fd < 0 || !assignments_changed(manager->assigned))
        return;
    r = save(manager);
    if (r < 0) {
        assignments_touch(manager->assigned);
        if (!manager->told_assigned)
            log_warning(manager->log, NULL,
                        "cannot write %s/" FILE_NAME
                        ": %s; until that works, a restart would forget which processes were assigned to "
                        "policies",
                        manager->options.runtime_directory, strerror(-r));
    }
    manager->told_assigned = r < 0;
}

/* Gives the file, whose readable part is in use, a second name. It loses the first when it is replaced. */
static int keep_corrupt(Manager *manager, int error)
{
    const char *directory = manager->options.runtime_directory;
    int fd = manager->runtime_fd, r;

    if ((unlinkat(fd, FILE_NAME_CORRUPT, 0) < 0 && errno != ENOENT) ||
        linkat(fd, FILE_NAME, fd, FILE_NAME_CORRUPT, 0) < 0) {
        r = -errno;
        return log_failure(r, manager->log, NULL,
                           "cannot read %s/" FILE_NAME ": %s; nor keep it as " FILE_NAME_CORRUPT
                           ": %s; remove it to forget which processes were assigned to policies",
                           directory, strerror(-error), strerror(-r));
    }
    log_warning(manager->log, NULL,
                "cannot read %s/" FILE_NAME
                ": %s; which processes were assigned to policies may be forgotten; keeping the file "
                "as " FILE_NAME_CORRUPT,
                directory, strerror(-error));
    return 0;
}

int manager_assignments_load(Manager *manager)
{
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int r;

    if (manager->runtime_fd < 0)
        return 0;
    r = root_read_alloc(manager->runtime_fd, FILE_NAME, FILE_MAX, &text, &len);
    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = assignments_parse(manager->assigned, text, len);
    return r < 0 && r != -ENOMEM ? keep_corrupt(manager, r) : r;
}
