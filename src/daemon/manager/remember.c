/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reports the outcomes of a plan: to the ring of moves for explain, to the log, and to clients that follow. A
 * storm of moves must not flood the last two, so both are limited; the ring has all moves. */

#include "base/human.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/manager/manager.h"
#include "daemon/views/describe.h"
#include "numaplace/bus.h"
#include "numaplace/messages.h"

#include <inttypes.h>
#include <stdio.h>

static int move_priority(PlanOutcome outcome)
{
    switch (outcome) {
    case PLAN_OUTCOME_DONE:
    case PLAN_OUTCOME_SKIPPED:
        return LOG_INFO;
    case PLAN_OUTCOME_UNJOURNALLED:
        return LOG_ERR;
    case PLAN_OUTCOME_REFUSED:
        return LOG_WARNING;
    default:
        return LOG_DEBUG;
    }
}

static void add_mask(LogFields *fields, const char *name, CpuMask mask)
{
    CLEANUP_FREE char *text = mask ? format_list(mask, PARSE_CPU_MAX) : NULL;

    if (text)
        log_fields_add(fields, name, "%s", text);
}

/* For filters: journalctl NUMAPLACE_WORKLOAD=jvm NUMAPLACE_RULE=owner-waits. */
static void fill_fields(LogFields *fields, const Move *move)
{
    log_fields_add(fields, "NUMAPLACE_ACTION", "%s", plan_kind_name(move->kind));
    log_fields_add(fields, "NUMAPLACE_RULE", "%s", plan_rule_name(move->rule));
    log_fields_add(fields, "NUMAPLACE_OUTCOME", "%s", plan_outcome_name(move->outcome));
    log_fields_add(fields, "NUMAPLACE_MECHANISM", "P%u", move->mechanism);
    log_fields_add(fields, "NUMAPLACE_SEQUENCE", "%" PRIu64, move->sequence);
    log_fields_add(fields, "NUMAPLACE_PID", "%d", (int)move->subject.pid);
    log_fields_add(fields, "NUMAPLACE_TID", "%d", (int)move->subject.tid);
    log_fields_add(fields, "NUMAPLACE_COMM", "%s", move->comm);
    log_fields_add(fields, "NUMAPLACE_VALUE", "%" PRIu32, move->value);
    log_fields_add(fields, "NUMAPLACE_LIMIT", "%" PRIu32, move->limit);
    if (move->workload)
        log_fields_add(fields, "NUMAPLACE_WORKLOAD", "%s", move->workload);
    if (move->cpu.i >= 0)
        log_fields_add(fields, "NUMAPLACE_CPU", "%d", move->cpu.i);
    add_mask(fields, "NUMAPLACE_FROM", move->from);
    add_mask(fields, "NUMAPLACE_TO", move->to);
}

/* Formats nodes as operating-system numbers; malloc'd. */
static char *format_nodes(const Topology *topology, CpuMask nodes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (int i = nodes ? hwloc_bitmap_first(nodes) : -1; i >= 0; i = hwloc_bitmap_next(nodes, i))
        (void)fprintf(out, "%s%" PRIu32, ftell(out) > 0 ? "," : "", topology->nodes[i].os_index);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Formats the origin and the destination: of a mask, or of memory. */
static char *format_way(const Manager *manager, const Move *move)
{
    const Topology *topology = manager->world->topology;
    bool memory = move->kind == PLAN_KIND_MOVE_PAGES;
    CLEANUP_FREE char *from = memory       ? format_nodes(topology, move->memory_from)
                              : move->from ? format_list(move->from, PARSE_CPU_MAX)
                                           : NULL;
    CLEANUP_FREE char *to = memory     ? format_nodes(topology, move->memory_to)
                            : move->to ? format_list(move->to, PARSE_CPU_MAX)
                                       : NULL;

    if (move->kind == PLAN_KIND_PUSH)
        return format_text("CPUs %s", to ? to : "?");
    return format_text("%s %s -> %s", memory ? "memory of nodes" : "CPUs", from ? from : "?", to ? to : "?");
}

/* "jvm lend: java[100/107], CPU 3, CPUs 0-1 -> 0-1,3 (P2, 80.0 % against 25.0 %): It waits for a CPU while ..." */
static void log_move(Manager *manager, const Move *move)
{
    CLEANUP_FREE char *way = NULL;
    char thread[16] = "", cpu[24] = "", outcome[24] = "", held[48] = "", numbers[PLAN_NUMBERS_SIZE];
    LogFields fields = {0};
    uint32_t n_held;

    if (move_priority(move->outcome) > manager->log->level ||
        !log_rate(manager->log, move->time_usec, &n_held))
        return;
    if (move->subject.tid > 0)
        (void)snprintf(thread, sizeof(thread), "/%d", (int)move->subject.tid);
    if (move->cpu.i >= 0)
        (void)snprintf(cpu, sizeof(cpu), " CPU %d,", move->cpu.i);
    if (move->outcome != PLAN_OUTCOME_DONE)
        (void)snprintf(outcome, sizeof(outcome), ", %s", plan_outcome_name(move->outcome));
    if (n_held > 0)
        (void)snprintf(held, sizeof(held), " (%" PRIu32 " %s held back)", n_held,
                       human_noun(n_held, "record was", "records were"));

    way = format_way(manager, move);
    fill_fields(&fields, move);
    log_record(
        manager->log, move_priority(move->outcome), NUMAPLACE_MESSAGE_ACTION, &fields,
        "%s %s: %s[%d%s],%s %s%s%s: %s%s", move->workload ? move->workload : "-", plan_kind_name(move->kind),
        move->comm, (int)move->subject.pid, thread, cpu, way ? way : "?",
        plan_rule_numbers(move->rule, move->mechanism, move->value, move->limit, numbers, sizeof(numbers)),
        outcome, plan_rule_text(move->rule), held);
}

typedef struct MoveSignal {
    const Manager *manager;
    const Move *move;
    sd_bus_message *message; /* sent to all clients: building takes far longer */
} MoveSignal;

/* Builds the signal. Returns 0 or -errno. */
static int make_moved(sd_bus *bus, MoveSignal *signal)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    Dict dict = {0};

    dict.error = MIN(sd_bus_message_new_signal(bus, &message, NUMAPLACE_BUS_PATH,
                                               NUMAPLACE_BUS_INTERFACE_MANAGER, "Moved"),
                     0);
    dict.message = message;
    describe_move(&dict, signal->manager, signal->move);
    if (dict.error == 0)
        signal->message = TAKE_PTR(message);
    return dict.error;
}

static void tell_moved(sd_bus *bus, void *userdata)
{
    MoveSignal *signal = userdata;

    if (signal->message || make_moved(bus, signal) == 0)
        (void)sd_bus_send(bus, signal->message, NULL);
}

static uint32_t count_connections(const Manager *manager)
{
    uint32_t n = manager->bus ? bus_server_statistics(manager->bus)->n_clients : 0;

    return n + (manager->system_bus && bus_system_ready(manager->system_bus) ? 1 : 0);
}

static void emit_move(Manager *manager, const Move *move)
{
    uint32_t n = count_connections(manager);
    MoveSignal signal = {.manager = manager, .move = move};

    if (n == 0 ||
        manager->signals_sent >= MIN(MANAGER_SIGNALS_PER_CLIENT, MAX(MANAGER_SIGNALS_PER_TICK / n, 1U)))
        return;
    manager->signals_sent++;
    manager_tell(manager, tell_moved, &signal);
    sd_bus_message_unref(signal.message);
}

/* Logs and signals a move; NULL: none is new. */
static void tell_move(Manager *manager, const Move *move)
{
    if (!move)
        return;
    log_move(manager, move);
    emit_move(manager, move);
}

int manager_remember_actions(Manager *manager, const Plan *plan)
{
    uint64_t realtime = plan->n_actions > 0 ? time_realtime_usec() : 0;

    manager->objects_changed = manager->objects_changed || plan->n_actions > 0;
    for (size_t i = 0; i < plan->n_actions; i++) {
        PlanOutcome outcome = manager->outcomes[i];
        const Move *move = NULL;
        int r = moves_add(manager->moves, manager->world, &plan->actions[i], outcome, realtime, &move);

        if (r < 0)
            return r;
        manager->statistics.n_outcome[outcome]++;
        if (outcome == PLAN_OUTCOME_DONE)
            manager->statistics.n_done[plan->actions[i].kind]++;
        tell_move(manager, move);
    }
    return 0;
}

int manager_remember_refusals(Manager *manager, const Plan *plan)
{
    for (size_t i = 0; i < plan->n_refusals; i++) {
        int r;

        /* The plan of what acting would do says more. */
        if (plan->refusals[i].reason == PLAN_REASON_OBSERVE)
            continue;
        r = moves_refuse(manager->moves, manager->world, &plan->refusals[i]);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < PLAN_REASON_MAX; i++)
        manager->statistics.n_refused[i] += plan->n_refused[i];
    return 0;
}

/* Actions that were reported before are not reported again. */
static int remember_would_actions(Manager *manager)
{
    const Would *would = &manager->would;
    uint64_t realtime = would->plan.n_actions > 0 ? time_realtime_usec() : 0;

    for (size_t i = 0; i < would->plan.n_actions; i++) {
        const Move *move = NULL;
        int r;

        if (would->outcomes[i] == PLAN_OUTCOME_RETRY)
            continue;
        r = moves_add(manager->moves, would->world, &would->plan.actions[i], PLAN_OUTCOME_WOULD, realtime,
                      &move);
        if (r < 0)
            return r;
        manager->statistics.n_outcome[PLAN_OUTCOME_WOULD] += move != NULL;
        manager->objects_changed |= move != NULL;
        tell_move(manager, move);
    }
    return 0;
}

int manager_remember_would(Manager *manager)
{
    const Would *would = &manager->would;
    int r = remember_would_actions(manager);

    for (size_t i = 0; r == 0 && i < would->plan.n_refusals; i++) {
        const PlanRefusal *refusal = &would->plan.refusals[i];

        if (!manager_observes(manager, refusal->workload))
            continue;
        r = moves_refuse(manager->moves, would->world, refusal);
        manager->statistics.n_refused[refusal->reason]++;
    }
    return r;
}

int manager_remember_course(Manager *manager)
{
    const uint64_t *n_done = manager->statistics.n_done;
    MoverStatistics mover = {0};

    if (manager->orders)
        mover_statistics(orders_mover(manager->orders), &mover);
    return history_look(manager->history, manager->world,
                        &(HistoryTotals){.cpu_usec = time_process_cpu_nsec() / NSEC_PER_USEC,
                                         .n_homes = n_done[PLAN_KIND_SET_HOME],
                                         .n_lends = n_done[PLAN_KIND_LEND],
                                         .moved_bytes = mover.account.moved_bytes},
                        time_realtime_usec());
}
