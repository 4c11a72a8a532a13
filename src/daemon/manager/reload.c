/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* New configuration, policies or topology under a running daemon.
 *
 * Files are read into fresh objects and swapped in only if all of them are valid. If the CPUs changed, or a
 * setting that the sensing was built with, World and Probe are not repaired but built anew: everything is put
 * back, and the next slow tick places it on the new machine. That costs one round of mask changes for an
 * event as rare as a CPU going offline. It needs no code that renumbers CPUs, nodes, homes and leases inside
 * a World, which only unplugging CPUs could test. What must outlive it is carried over by name. */

#include "base/human.h"
#include "base/time.h"
#include "daemon/manager/evidence.h"
#include "daemon/manager/manager.h"
#include "daemon/stall.h"
#include "numaplace/messages.h"
#include "plan/group.h"

#include <inttypes.h>
#include <string.h>

/* A failure to read the machine in the middle of a change is over in seconds. Reading a large one takes 0.1 s. */
#define TOPOLOGY_PAUSE_USEC     USEC_PER_SEC
#define TOPOLOGY_PAUSE_MAX_USEC (600 * USEC_PER_SEC)

static const char *const config_directories[] = {CONFIG_DIRECTORIES, NULL};

static void tell_report(Manager *manager, const ConfReport *report, char **ret_error)
{
    for (size_t i = 0; i < report->n_messages; i++) {
        const ConfMessage *message = &report->messages[i];
        CLEANUP_FREE char *text = conf_message_format(message);
        bool error = message->severity == CONF_SEVERITY_ERROR;

        log_record(manager->log, error ? LOG_ERR : LOG_WARNING, NUMAPLACE_MESSAGE_CONFIG, NULL, "%s",
                   text ? text : message->text);
        if (error && ret_error && !*ret_error)
            *ret_error = TAKE_PTR(text);
    }
}

static int load(Manager *manager, const Topology *topology, Config **ret_config, PolicySet **ret_policies,
                ConfReport *report)
{
    CLEANUP(config_free_p) Config *config = NULL;
    CLEANUP(policy_set_free_p) PolicySet *policies = NULL;
    int r, r2;

    /* Both are read even when the first is bad: one attempt then shows everything there is to correct. */
    r = config_load(manager->options.config_path, config_directories, topology, &config, report);
    if (r < 0 && r != -EBADMSG)
        return r;
    r2 = policy_set_load(manager->options.policy_directories, topology, &policies, report);
    if (r2 < 0 || r < 0)
        return r2 < 0 ? r2 : r;
    *ret_config = TAKE_PTR(config);
    *ret_policies = TAKE_PTR(policies);
    return 0;
}

int manager_load(Manager *manager, const Topology *topology, Config **ret_config, PolicySet **ret_policies,
                 char **ret_error)
{
    ConfReport report = {0};
    int r = load(manager, topology, ret_config, ret_policies, &report);

    tell_report(manager, &report, ret_error);
    conf_report_done(&report);
    return r;
}

/* Whether some User= is a login name, so that names must be looked up at all. */
static bool policies_name_users(const PolicySet *policies)
{
    for (size_t i = 0; i < policies->n_policies; i++)
        for (size_t j = 0; j < policies->policies[i]->n_matches; j++) {
            const PolicyPatterns *user = &policies->policies[i]->matches[j].user;

            for (size_t k = 0; k < user->n_values; k++)
                if (strspn(user->values[k].glob, "0123456789") != strlen(user->values[k].glob))
                    return true;
        }
    return false;
}

/* Makes Workloads mirror the policies in force. While everything is paused, new ones are paused, too; one that was
 * resumed since is not. */
static int sync_workloads(Manager *manager)
{
    const PolicySet *policies = manager->policies;
    CLEANUP_FREE bool *known = calloc(MAX(policies->n_policies, (size_t)1), sizeof(*known));
    int r;

    if (!known)
        return -ENOMEM;
    for (size_t i = 0; i < policies->n_policies; i++)
        known[i] = world_workload_by_name(manager->world, policies->policies[i]->name);
    r = group_sync_workloads(manager->world, policies);
    if (r < 0)
        return r;
    for (size_t i = 0; i < manager->world->n_workloads; i++) {
        Workload *workload = &manager->world->workloads[i];

        workload->paused |= manager->paused && !known[workload->policy];
    }
    manager->objects_changed = true;
    probe_set_wants(manager->probe, manager->policies->wants);
    manager->policies_name_users = policies_name_users(manager->policies);
    user_cache_clear(manager->users);
    return 0;
}

static int probe_make(Manager *manager, const Config *config, Probe **ret)
{
    ProbeOptions options = {
        .root_fd = manager->root_fd,
        .live = strcmp(manager->options.root, "/") == 0,
        .aside = strcmp(manager->options.root, "/") == 0,
        .self = getpid(),
        .wants = manager->policies ? manager->policies->wants : 0,
        .max_tasks = config->max_tasks,
        .descriptors_reserved = bus_server_descriptors_max(),
        .reserved = config->reserved_cpus,
    };
    ProbeCallbacks callbacks = {
        .refuses = manager_refuses,
        .is_settled = manager_is_settled,
        .decide = manager_decide,
        .assign = manager_assign,
        .wants_memory = manager_wants_memory,
        .bound = manager_fence_bound,
        .hangs = manager_hangs,
        .userdata = manager,
    };

    return probe_new(&options, &callbacks, ret);
}

/* Copies what a World knows that cannot be seen again: workloads by name, token buckets, numbers that must
 * not be reused. */
static int carry_over(Manager *manager, const World *from, World *to)
{
    to->tick = from->tick;
    to->now_usec = from->now_usec;
    to->cross_node = from->cross_node;
    to->next_group_id = from->next_group_id;
    to->action_cost_usec = from->action_cost_usec;
    for (size_t i = 0; i < from->n_workloads; i++) {
        const Workload *old = &from->workloads[i];
        int r = world_add_workload(to, old->name, old->policy);

        if (r < 0)
            return r;
        to->workloads[r].paused = old->paused;
        to->workloads[r].cross_node = old->cross_node;
        to->workloads[r].n_lends = old->n_lends;
        to->workloads[r].n_recalls = old->n_recalls;
        to->workloads[r].memory = old->memory;
    }
    for (size_t i = 0; i < from->n_processes; i++)
        if (from->processes[i].yielded && !from->processes[i].gone) {
            int r = task_set_add(manager->yielded, from->processes[i].pid, from->processes[i].start_ticks);

            if (r < 0)
                return r;
        }
    return 0;
}

static bool is_anybody(void *userdata, pid_t pid, const char *workload)
{
    (void)userdata;
    (void)workload;
    return pid > 0;
}

/* Puts everything back through a plan, so that the World, the ring of moves and the log agree with the
 * machine; and from the journal, which also knows children that inherited a mask. The journal keeps what it
 * knows of processes, because they get homes again at once. */
static int put_everything_back(Manager *manager)
{
    const ActSelection everybody = {.wants = is_anybody};
    Plan plan = {0};
    size_t restored = 0, left = 0;
    int r = plan_release(manager->world, WORKLOAD_NONE, PLAN_RULE_ANEW, &plan);

    if (r == 0)
        r = manager_carry_out(manager, &plan);
    plan_done(&plan);
    if (r < 0)
        return r;
    return manager_put_back(manager, &everybody, &restored, &left);
}

/* Makes World and Probe for `topology`, without changing anything yet: on failure those in force stay. */
static int make_anew(Manager *manager, const Config *config, Topology *topology, World **ret_world,
                     Probe **ret_probe)
{
    CLEANUP(world_free_p) World *world = NULL;
    int r = world_new(topology, &world);

    if (r == 0)
        r = probe_make(manager, config, ret_probe);
    if (r == 0)
        *ret_world = TAKE_PTR(world);
    return r;
}

/* Puts new ones in force, which now belong to the manager. An error ends the daemon. */
static int put_in_force(Manager *manager, World *new_world, Probe *new_probe)
{
    CLEANUP(world_free_p) World *world = new_world;
    CLEANUP(probe_free_p) Probe *probe = new_probe;
    CLEANUP(task_set_free_p) TaskSet *yielded = task_set_new();
    uint64_t now = time_now_usec();
    int r;

    if (!yielded)
        return -ENOMEM;
    if (manager->world) {
        r = probe_topology_adopt(probe, manager->probe);
        if (r < 0)
            return r;
        r = put_everything_back(manager);
        if (r == -ENOMEM)
            return r;
        manager->yielded = yielded;
        r = carry_over(manager, manager->world, world);
        if (r < 0)
            goto fail;
        moves_forget_nodes(manager->moves);
    }

    manager_evidence_stop(manager);
    manager_stall_stop(manager);
    manager_memory_stop(manager);
    if (manager->probe)
        probe_adopt_readers(probe, manager->probe);
    probe_free(manager->probe);
    would_done(&manager->would);
    world_free(manager->world);
    manager->world = TAKE_PTR(world);
    manager->world->idle_permille = manager->config->idle_permille;
    manager->probe = TAKE_PTR(probe);
    r = sync_workloads(manager);
    if (r < 0)
        goto fail;
    manager_memory_start(manager);
    manager_evidence_start(manager);
    manager_stall_start(manager);
    r = probe_discover(manager->probe, manager->world, now);
    if (r != -ENOMEM)
        r = 0; /* the next tick logs what is wrong */
fail:
    manager->yielded = NULL;
    return r;
}

int manager_rebuild(Manager *manager, Topology *topology)
{
    World *world;
    Probe *probe;
    int r = make_anew(manager, manager->config, topology, &world, &probe);

    return r < 0 ? r : put_in_force(manager, world, probe);
}

static bool same_cpus(hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
    if (!a || !b)
        return (!a || hwloc_bitmap_iszero(a)) && (!b || hwloc_bitmap_iszero(b));
    return hwloc_bitmap_isequal(a, b);
}

/* Makes World and Probe anew if a setting changes that the sensing is built with; else leaves NULL. */
static int make_for_config(Manager *manager, const Config *config, World **ret_world, Probe **ret_probe)
{
    int r;

    if (config->max_tasks == manager->config->max_tasks &&
        same_cpus(config->reserved_cpus, manager->config->reserved_cpus))
        return 0;
    r = make_anew(manager, config, manager->world->topology, ret_world, ret_probe);
    if (r < 0)
        log_error(manager->log, NULL, "cannot read this machine: %s", strerror(-r));
    return r;
}

/* World and probe are NULL if those in force stay. */
static int swap(Manager *manager, Config *config, PolicySet *policies, World *world, Probe *probe)
{
    PaceSettings pace;
    int r;

    if (config->dry_run != manager->config->dry_run && !manager->options.dry_run)
        log_warning(manager->log, NUMAPLACE_MESSAGE_CONFIG, "DryRun= takes effect only at the next start");
    config_free(manager->config);
    manager->config = config;
    policy_set_free(manager->policies);
    manager->policies = policies;
    pace = manager_pace_settings(manager);
    pace_set(&manager->pace, &pace);
    manager->world->idle_permille = config->idle_permille;

    r = sync_workloads(manager);
    if (r == 0 && world)
        return put_in_force(manager, world, probe);
    world_free(world);
    probe_free(probe);
    return r;
}

int manager_reload(Manager *manager, char **ret_error)
{
    CLEANUP(config_free_p) Config *config = NULL;
    CLEANUP(policy_set_free_p) PolicySet *policies = NULL;
    size_t n_policies, n_workloads;
    World *world = NULL;
    Probe *probe = NULL;
    int r;

    manager_notify_reloading();
    r = manager_load(manager, manager->world->topology, &config, &policies, ret_error);
    if (r == 0)
        r = make_for_config(manager, config, &world, &probe);
    if (r < 0) {
        manager_notify_ready(manager);
        manager->statistics.n_reload_failures++;
        log_error(manager->log, NUMAPLACE_MESSAGE_RELOAD_FAILED,
                  "reload failed, keeping the previous configuration and policies");
        return r;
    }
    r = swap(manager, TAKE_PTR(config), TAKE_PTR(policies), world, probe);
    if (r < 0) {
        log_error(manager->log, NUMAPLACE_MESSAGE_RELOAD_FAILED, "stopping: %s", strerror(-r));
        (void)sd_event_exit(manager->event, r);
        return r;
    }
    manager_notify_ready(manager);
    manager_evidence_reloaded(manager);
    manager_stall_start(manager);
    manager->statistics.n_reloads++;
    manager->reloaded = true;
    pace_now(&manager->pace, time_now_usec());
    manager_arm(manager);
    n_policies = manager->policies->n_policies;
    n_workloads = manager->world->n_workloads;
    log_notice(manager->log, NUMAPLACE_MESSAGE_RELOADED, "reloaded: %zu %s, %zu %s", n_policies,
               human_noun(n_policies, "policy", "policies"), n_workloads,
               human_noun(n_workloads, "workload", "workloads"));
    return 0;
}

/* Puts off the next try, after one that failed. */
static void put_off_topology(Manager *manager, const char *why, uint64_t now_usec)
{
    bool again = manager->topology_usec > 0;

    manager->topology_pause_usec =
        again ? MIN(2 * manager->topology_pause_usec, TOPOLOGY_PAUSE_MAX_USEC) : TOPOLOGY_PAUSE_USEC;
    manager->topology_usec = now_usec + manager->topology_pause_usec;
    if (!again)
        log_warning(manager->log, NUMAPLACE_MESSAGE_TOPOLOGY_CHANGED,
                    "the CPUs or nodes of this machine changed, but it cannot be read again: %s; keeping the "
                    "previous topology until it can",
                    why);
}

int manager_follow_topology(Manager *manager, bool changed, uint64_t now_usec)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    World *world;
    Probe *probe;
    int r;

    if (!changed && (manager->topology_usec == 0 || now_usec < manager->topology_usec))
        return 0;
    r = topology_load(&manager->options.topology, &topology, &error);
    if (r == 0)
        r = make_anew(manager, manager->config, topology, &world, &probe);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        put_off_topology(manager, error ? error : strerror(-r), now_usec);
        return 0;
    }
    manager->topology_usec = 0;
    log_notice(manager->log, NUMAPLACE_MESSAGE_TOPOLOGY_CHANGED,
               "the CPUs or nodes of this machine changed: %" PRIu32 " %s in %" PRIu32
               " %s now; placing everything again",
               topology->n_cpus, human_noun(topology->n_cpus, "CPU", "CPUs"), topology->n_nodes,
               human_noun(topology->n_nodes, "node", "nodes"));
    r = put_in_force(manager, world, probe);
    if (r < 0)
        return r;
    manager->statistics.n_topology_reloads++;
    return 0;
}
