/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves in signals and lists, the steps of the last day (daemon/tables/history.h), and what the last change
 * of a group's home was worth (daemon/tables/gains.h). */

#include "daemon/views/describe.h"

void describe_move(Dict *dict, const Manager *manager, const Move *move)
{
    const Topology *topology = manager->world->topology;

    dict_begin(dict);
    dict_u64(dict, "sequence", move->sequence);
    dict_u64(dict, "time_usec", move->time_usec);
    dict_u64(dict, "realtime_usec", move->realtime_usec);
    dict_u64(dict, "tick", move->tick);
    dict_string(dict, "kind", plan_kind_name(move->kind));
    dict_string(dict, "rule", plan_rule_name(move->rule));
    dict_string(dict, "text", plan_rule_text(move->rule));
    dict_u32(dict, "mechanism", move->mechanism);
    dict_string(dict, "outcome", plan_outcome_name(move->outcome));
    dict_u32(dict, "count", move->count);
    dict_i32(dict, "pid", move->subject.pid);
    dict_i32(dict, "tid", move->subject.tid);
    dict_u64(dict, "start_ticks", move->subject.start_ticks);
    dict_string(dict, "comm", move->comm);
    dict_string(dict, "workload", move->workload);
    dict_u64(dict, "group", move->group_id);
    dict_cpus(dict, "from", move->from);
    dict_cpus(dict, "to", move->to);
    dict_i32(dict, "cpu", move->cpu.i);
    dict_node_of(dict, "node", topology, move->cpu);
    dict_nodes(dict, "home_nodes", topology, move->home_nodes);
    dict_nodes(dict, "from_nodes", topology, move->memory_from);
    dict_nodes(dict, "to_nodes", topology, move->memory_to);
    dict_nodes(dict, "help_nodes", topology, move->memory_help);
    dict_u64(dict, "bytes", move->memory_bytes);
    dict_bool(dict, "cross_node", move->cross_node);
    dict_u32(dict, "distance", move->distance);
    dict_u64(dict, "lease_usec", move->lease_usec);
    dict_u32(dict, "value", move->value);
    dict_u32(dict, "limit", move->limit);
    dict_end(dict);
}

void describe_moves(Dict *dict, const Manager *manager, uint64_t after, uint32_t max)
{
    const Move *move = moves_next(manager->moves, after);

    dict_list_begin(dict, NULL);
    for (uint32_t n = 0; move && n < max; n++, move = moves_next(manager->moves, move->sequence))
        describe_move(dict, manager, move);
    dict_list_end(dict, NULL);
}

/* A reply ends with the step that fills it with this many workloads and their nodes: some milliseconds. */
#define ROWS_MAX 1000U

static uint32_t mean(uint64_t sum, uint32_t n)
{
    return n > 0 ? (uint32_t)(sum / n) : 0;
}

static void put_row(Dict *dict, const HistoryStep *step, const HistoryRow *row)
{
    dict_begin(dict);
    dict_string(dict, "workload", row->workload);
    dict_u32(dict, "run_permille", mean(row->run, step->n_looks));
    dict_u32(dict, "wait_permille", mean(row->wait, step->n_looks));
    if (row->local_of > 0)
        dict_u32(dict, "local_permille", (uint32_t)(row->local_sum / row->local_of));
    dict_list_begin(dict, "runs");
    for (size_t i = 0; i < row->n_runs; i++) {
        dict_begin(dict);
        dict_u32(dict, "node", row->runs[i].node);
        dict_u32(dict, "run_permille", mean(row->runs[i].run, step->n_looks));
        dict_end(dict);
    }
    dict_list_end(dict, "runs");
    dict_end(dict);
}

static void put_step(Dict *dict, const HistoryStep *step)
{
    dict_begin(dict);
    dict_u64(dict, "sequence", step->sequence);
    dict_u64(dict, "realtime_usec", step->realtime_usec);
    dict_u64(dict, "span_usec", step->span_usec);
    dict_u32(dict, "looks", step->n_looks);
    dict_u64(dict, "cpu_usec", step->totals.cpu_usec);
    dict_u64(dict, "homes", step->totals.n_homes);
    dict_u64(dict, "lends", step->totals.n_lends);
    dict_u64(dict, "memory_moved_bytes", step->totals.moved_bytes);
    dict_list_begin(dict, "workloads");
    for (size_t i = 0; i < step->n_rows; i++)
        put_row(dict, step, &step->rows[i]);
    dict_list_end(dict, "workloads");
    dict_end(dict);
}

static size_t count_rows(const HistoryStep *step)
{
    size_t n = step->n_rows;

    for (size_t i = 0; i < step->n_rows; i++)
        n += step->rows[i].n_runs;
    return n;
}

void describe_history(Dict *dict, const Manager *manager, uint64_t after, uint32_t max)
{
    const HistoryStep *step = history_next(manager->history, after);

    dict_list_begin(dict, NULL);
    for (size_t n = 0, n_rows = 0; step && n < max && n_rows < ROWS_MAX; n++) {
        put_step(dict, step);
        n_rows += 1 + count_rows(step);
        step = history_next(manager->history, step->sequence);
    }
    dict_list_end(dict, NULL);
}

static void put_gain(Dict *dict, const char *key, const char *noise_key, GainMean before)
{
    if (!before.known)
        return;
    dict_u32(dict, key, before.permille);
    dict_u32(dict, noise_key, before.noise);
}

void describe_gain(Dict *dict, const Manager *manager, uint64_t group_id)
{
    uint64_t now = manager->world->now_usec;
    Gain gain;

    if (!gains_find(manager->gains, group_id, &gain))
        return;
    dict_u64(dict, "gain_age_usec", now - MIN(now, gain.since_usec));
    put_gain(dict, "gain_waits_before_permille", "gain_waits_before_noise_permille", gain.before.waits);
    put_gain(dict, "gain_waits_permille", "gain_waits_noise_permille", gain.after.waits);
    put_gain(dict, "gain_local_before_permille", "gain_local_before_noise_permille", gain.before.local);
    put_gain(dict, "gain_local_permille", "gain_local_noise_permille", gain.after.local);
}
