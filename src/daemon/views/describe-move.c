/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves in signals and lists. */

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
