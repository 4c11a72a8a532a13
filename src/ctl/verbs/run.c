/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* run: starts a command under a policy, by becoming it.
 *
 *   ask the daemon to take this process --> it answers when it has placed it --> memory policy --> execve(2)
 *
 * The process keeps its PID and start time through execve(2), so the command is placed from its first instruction on.
 * The daemon confines the CPUs: it knows the home, has it in its undo journal, and may be told not to. Only with
 * --no-daemon is that done here, with the nodes that the policy names, and nothing undoes it. */

#include "base/parse.h"
#include "base/time.h"
#include "ctl/client.h"
#include "ctl/patience.h"
#include "ctl/verbs/policy/files.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"
#include "launch/launch.h"
#include "numaplace/bus.h"
#include "policy/validate.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* For the system bus, where polkit may ask for a password. */
#define ASSIGN_TIMEOUT_USEC (120 * USEC_PER_SEC)

/* Calls AssignProcess. Returns as sd_bus_call() does. */
static int assign(sd_bus *bus, const char *destination, const char *policy, sd_bus_error *error,
                  sd_bus_message **ret)
{
    CLEANUP_MESSAGE sd_bus_message *message = NULL;
    ProcStat stat;
    int r = patience_read(getpid(), &stat);

    if (r < 0)
        return r;
    r = sd_bus_message_new_method_call(bus, &message, destination, NUMAPLACE_BUS_PATH,
                                       NUMAPLACE_BUS_INTERFACE_MANAGER, "AssignProcess");
    if (r < 0)
        return r;
    r = sd_bus_message_append(message, "itsb", (int32_t)getpid(), stat.start_ticks, policy, 1);
    if (r < 0)
        return r;
    r = sd_bus_message_set_allow_interactive_authorization(message, 1);
    if (r < 0)
        return r;
    return destination ? sd_bus_call(bus, message, ASSIGN_TIMEOUT_USEC, error, ret)
                       : client_call_patiently(bus, message, error, ret);
}

/* Asks on the socket, which serves root and the daemon's own user. Other users need the system bus, where
 * polkit can be asked. */
static CtlExit ask_daemon(const CtlOptions *options, json_object **ret)
{
    CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    CLEANUP(sd_bus_error_free) sd_bus_error system_error = SD_BUS_ERROR_NULL;
    CLEANUP_MESSAGE sd_bus_message *reply = NULL;
    CLEANUP_BUS sd_bus *bus = NULL, *system = NULL;
    CtlExit code = client_connect(options, &bus);
    int r;

    if (code != CTL_EXIT_OK)
        return code;
    r = assign(bus, NULL, options->policy, &error, &reply);
    if (r < 0 && sd_bus_error_has_name(&error, NUMAPLACE_ERROR_NOT_PERMITTED) &&
        sd_bus_open_system(&system) >= 0) {
        int r2 = assign(system, NUMAPLACE_BUS_NAME, options->policy, &system_error, &reply);

        /* If the daemon is not there, what it has said on the socket counts. The second is the answer of dbus-broker
         * where the unit cannot be started, the third that of dbus-daemon. */
        if (r2 < 0 &&
            !sd_bus_error_has_names(&system_error, SD_BUS_ERROR_SERVICE_UNKNOWN,
                                    SD_BUS_ERROR_NAME_HAS_NO_OWNER, "org.freedesktop.systemd1.NoSuchUnit"))
            return client_fail_call(r2, &system_error);
        r = r2 < 0 ? r : r2;
    }
    if (r < 0)
        return client_fail_call(r, &error);
    r = bus_json_read(reply, NULL, ret);
    return r < 0 ? ctl_fail(CTL_EXIT_FAILURE, "numaplaced's answer cannot be read: %s", strerror(-r))
                 : CTL_EXIT_OK;
}

static CtlExit interleave(hwloc_const_bitmap_t nodes)
{
    int r = launch_stripe(nodes);

    return r < 0 ? ctl_fail(CTL_EXIT_FAILURE, "cannot interleave memory: %s", strerror(-r)) : CTL_EXIT_OK;
}

static CtlExit place_by_daemon(const CtlOptions *options)
{
    CLEANUP_JSON json_object *answer = NULL;
    CLEANUP_BITMAP hwloc_bitmap_t stripe = hwloc_bitmap_alloc();
    CtlExit code = ask_daemon(options, &answer);

    if (code != CTL_EXIT_OK)
        return code;
    if (!stripe)
        return ctl_fail_oom();
    if (parse_list(view_string(answer, "stripe"), POLICY_NODES_MAX - 1, stripe) < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "numaplaced's answer cannot be read: stripe=%s",
                        view_string(answer, "stripe"));
    if (!view_bool(answer, "managed") && strcmp(view_string(answer, "mode"), "none") != 0)
        (void)ctl_fail(
            CTL_EXIT_OK,
            "numaplaced does not manage it yet: it cannot be read right now, or MaxTasks= is reached");
    return interleave(stripe);
}

/* Collects the CPUs of the nodes that a policy names (or all), and those nodes that have memory. Skips nodes
 * without CPUs. */
static int nodes_of(const Policy *policy, const Topology *topology, hwloc_bitmap_t cpus,
                    hwloc_bitmap_t memory)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const TopologyNode *node = &topology->nodes[i];

        if (node->n_cpus == 0 || (policy->nodes && !hwloc_bitmap_isset(policy->nodes, node->os_index)))
            continue;
        if (hwloc_bitmap_or(cpus, cpus, node->cpus) < 0 ||
            (node->memory_bytes > 0 && hwloc_bitmap_set(memory, node->os_index) < 0))
            return -ENOMEM;
    }
    return 0;
}

static CtlExit apply_policy(const Policy *policy, const Topology *topology)
{
    CLEANUP_BITMAP hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), memory = hwloc_bitmap_alloc();
    int r;

    if (!cpus || !memory || nodes_of(policy, topology, cpus, memory) < 0)
        return ctl_fail_oom();
    r = policy->nodes ? launch_bind(cpus) : 0;
    if (r == -ERANGE)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "%s: this process may not use any CPU of the nodes that the policy names",
                        policy->name);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot bind to the nodes of %s: %s", policy->name, strerror(-r));
    return policy->mode == POLICY_MODE_INTERLEAVE && topology->rehearsal == 0 ? interleave(memory)
                                                                              : CTL_EXIT_OK;
}

static CtlExit place_alone(const CtlOptions *options)
{
    CLEANUP(policy_set_free_p) PolicySet *policies = NULL;
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    const Policy *policy = NULL;
    CtlExit code = policy_files_load(options, &policies);

    if (code != CTL_EXIT_OK)
        return code;
    for (size_t i = 0; i < policies->n_policies; i++)
        if (!strcmp(policies->policies[i]->name, options->policy))
            policy = policies->policies[i];
    if (!policy)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "there is no policy '%s'", options->policy);
    if (policy->mode == POLICY_MODE_NONE || policy->act == POLICY_ACT_OBSERVE)
        return CTL_EXIT_OK;
    if (topology_load(&options->topology, &topology, &error) < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot read the topology: %s", error ? error : "out of memory");
    return apply_policy(policy, topology);
}

static CtlExit verb_run(const CtlOptions *options, int argc, char **argv)
{
    CtlExit code;

    if (!options->policy)
        return ctl_fail(CTL_EXIT_RUN_FAILURE, "run needs --policy=NAME. See numaplacectl --help.");
    /* Mostly from an unset variable in a script, as in options.c; later arguments are the command's. */
    if (!*argv[0])
        return ctl_fail(CTL_EXIT_RUN_FAILURE, "run takes COMMAND [ARG...], not an empty command");
    if (!options->no_daemon && (options->n_policy_dirs > 0 || options->topology.rehearse > 0))
        return ctl_fail(CTL_EXIT_RUN_FAILURE,
                        "--policy-dir= and --rehearse= of run need --no-daemon: a daemon has its own");
    if (!policy_name_valid(options->policy))
        return ctl_fail(CTL_EXIT_NOT_FOUND, "there is no policy '%s'", options->policy);
    code = options->no_daemon ? place_alone(options) : place_by_daemon(options);
    if (code != CTL_EXIT_OK)
        return code;
    if (!options->sigpipe_ignored)
        (void)signal(SIGPIPE, SIG_DFL);
    (void)execvp(argv[0], argv);
    code = errno == ENOENT ? CTL_EXIT_RUN_NOT_FOUND : CTL_EXIT_RUN_CANNOT;
    return ctl_fail(code, "cannot run %s: %s", argv[0], strerror(errno));
}

const CtlVerbRow ctl_verb_run = {
    .name = "run",
    .arguments = "COMMAND [ARG...]",
    .min = 1,
    .max = -1,
    .accepts = CTL_ACCEPTS(POLICY) | CTL_ACCEPTS(NO_DAEMON) | CTL_ACCEPTS(POLICY_DIR) | CTL_ACCEPTS(REHEARSE),
    .help = "start a command under a policy",
    .run = verb_run,
};
