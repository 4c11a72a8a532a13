/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/top/snapshot.h"

#include "base/time.h"
#include "ctl/sentence.h"
#include "ctl/view.h"

#include <string.h>

/* "2026-11-25 " */
#define DATE_LENGTH 11U

TopSnapshot *top_snapshot_free(TopSnapshot *snapshot)
{
    if (!snapshot)
        return NULL;
    free(snapshot->cpus);
    free(snapshot->nodes);
    free(snapshot->workloads);
    free(snapshot->plan);
    free(snapshot);
    return NULL;
}

/* What take_workload() reads. */
/* clang-format off */
static const char *const workload_keys[] = {
    "name", "mode", "observed", "would_home_nodes", "home_nodes", "paused", "run_permille",
    "wait_permille", "leases", "processes", "tasks", "memory_strength_permille", "memory_todo_bytes",
    "memory_bytes", NULL,
};
/* clang-format on */

static uint64_t number(json_object *object, const char *key)
{
    int64_t n = view_number(object, key, 0);

    return n > 0 ? (uint64_t)n : 0;
}

static uint32_t number32(json_object *object, const char *key)
{
    return (uint32_t)MIN(number(object, key), (uint64_t)UINT32_MAX);
}

void top_copy(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);

    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80;)
            n--;
    memcpy(to, from, n);
    to[n] = '\0';
}

static json_object *entry(json_object *list, size_t i)
{
    return json_object_array_get_idx(list, i);
}

void top_copy_line(char *to, size_t size, const char *from)
{
    bool whole = strlen(from) < size;

    top_copy(to, whole ? size : size - strlen("..."), from);
    if (!whole)
        strcat(to, "...");
}

void top_copy_set(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);

    if (n < size) {
        memcpy(to, from, n + 1);
        return;
    }
    for (n = size - sizeof("..."); n > 0 && from[n - 1] != ','; n--)
        ;
    memcpy(to, from, n);
    strcpy(to + n, "...");
}

static void take_status(TopSnapshot *s, json_object *status)
{
    top_copy(s->version, sizeof(s->version), view_string(status, "version"));
    top_copy(s->state, sizeof(s->state), view_string(status, "state"));
    top_copy(s->mode, sizeof(s->mode), view_string(status, "mode"));
    s->uptime_usec = number(status, "uptime_usec");
    s->n_idle = number32(status, "idle");
    s->n_overloaded = number32(status, "overloaded");
    s->n_leases = number32(status, "leases");
    s->cost_permille = number32(status, "cpu_permille");
    s->max_cost_permille = number32(status, "max_cpu_permille");
    s->rehearsal = number32(status, "rehearsal");
    s->n_lends = number(status, "lends");
    s->n_homes = number(status, "homes");
    s->moved_bytes = number(status, "memory_moved_bytes");
}

static bool take_nodes(TopSnapshot *s, json_object *topology, json_object *status)
{
    json_object *nodes = view_list(topology, "nodes"), *free_list = view_list(status, "free");

    s->n_nodes = (uint32_t)view_length(nodes);
    s->nodes = calloc(MAX(s->n_nodes, 1U), sizeof(*s->nodes));
    for (uint32_t i = 0; s->nodes && i < s->n_nodes; i++) {
        TopNode *node = &s->nodes[i];

        node->number = number32(entry(nodes, i), "node");
        node->n_cpus = number32(entry(nodes, i), "n_cpus");
        node->memory_bytes = number(entry(nodes, i), "memory_bytes");
        for (size_t k = 0; k < view_length(free_list); k++)
            if (number32(entry(free_list, k), "node") == node->number) {
                node->free_bytes = number(entry(free_list, k), "bytes");
                node->free_known = true;
            }
    }
    return s->nodes;
}

static uint16_t node_index(const TopSnapshot *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].number == number)
            return (uint16_t)i;
    return 0;
}

/* The CPU's value in one of the arrays of GetCpuLoads. */
static uint32_t load_of(json_object *loads, const char *key, size_t cpu)
{
    json_object *list = view_list(loads, key);

    return cpu < view_length(list) ? (uint32_t)json_object_get_int64(entry(list, cpu)) : 0;
}

static TopCpuState state_of(json_object *loads, size_t cpu)
{
    if (!load_of(loads, "online", cpu))
        return TOP_CPU_ABSENT;
    if (load_of(loads, "lent", cpu))
        return TOP_CPU_LENT;
    if (load_of(loads, "idle", cpu))
        return TOP_CPU_IDLE;
    return load_of(loads, "wait_permille", cpu) >= TOP_OVERLOADED_PERMILLE ? TOP_CPU_OVERLOADED
                                                                           : TOP_CPU_BUSY;
}

static bool take_cpus(TopSnapshot *s, json_object *loads)
{
    s->n_cpus = (uint32_t)view_length(view_list(loads, "cpu"));
    s->cpus = calloc(MAX(s->n_cpus, 1U), sizeof(*s->cpus));
    for (uint32_t i = 0; s->cpus && i < s->n_cpus; i++) {
        uint32_t busy = MIN(load_of(loads, "busy_permille", i), 1000U);
        uint16_t node = node_index(s, load_of(loads, "node", i));

        s->cpus[i] = (TopCpu){
            .state = (uint8_t)state_of(loads, i),
            .percent = (uint8_t)(busy / 10),
            .node = node,
            .llc = (uint16_t)load_of(loads, "llc", i),
        };
        if (node < s->n_nodes && s->cpus[i].state != TOP_CPU_ABSENT)
            s->nodes[node].busy_permille += busy;
    }
    return s->cpus;
}

static void take_workload(TopWorkload *w, json_object *workload)
{
    const char *home = view_string(workload, "home_nodes");

    top_copy(w->name, sizeof(w->name), view_string(workload, "name"));
    top_copy(w->mode, sizeof(w->mode), view_string(workload, "mode"));
    w->observed = view_bool(workload, "observed");
    top_copy_set(w->nodes, sizeof(w->nodes), w->observed ? view_string(workload, "would_home_nodes") : home);
    w->paused = view_bool(workload, "paused");
    w->run_permille = number32(workload, "run_permille");
    w->wait_permille = number32(workload, "wait_permille");
    w->leases = number32(workload, "leases");
    w->processes = number32(workload, "processes");
    w->tasks = number32(workload, "tasks");
    w->together_permille = number32(workload, "memory_strength_permille");
    w->moving_bytes = number(workload, "memory_todo_bytes");
    w->bytes = number(workload, "memory_bytes");
}

static bool take_workloads(TopSnapshot *s, json_object *workloads)
{
    s->n_workloads = (uint32_t)view_length(workloads);
    s->workloads = calloc(MAX(s->n_workloads, 1U), sizeof(*s->workloads));
    for (uint32_t i = 0; s->workloads && i < s->n_workloads; i++)
        take_workload(&s->workloads[i], entry(workloads, i));
    return s->workloads;
}

static bool take_moves(TopSnapshot *s, json_object *moves)
{
    size_t n = view_length(moves);

    for (size_t i = 0; i < MIN(n, (size_t)TOP_MOVES); i++) {
        CLEANUP(view_text_done) ViewText text = {0};

        sentence_move(entry(moves, n - 1 - i), 0, &text);
        if (text.failed)
            return false;
        /* The date is mostly today's and left out. */
        top_copy_line(s->moves[i], sizeof(s->moves[i]),
                      text.len > DATE_LENGTH ? text.text + DATE_LENGTH : "");
    }
    return true;
}

TopSnapshot *top_snapshot_make(json_object *status, json_object *topology, json_object *loads,
                               json_object *workloads, json_object *moves)
{
    CLEANUP(top_snapshot_free_p) TopSnapshot *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    take_status(s, status);
    if (!take_nodes(s, topology, status) || !take_cpus(s, loads) || !take_workloads(s, workloads) ||
        !take_moves(s, moves))
        return NULL;
    return TAKE_PTR(s);
}

static CtlExit look_at_machine(sd_bus *bus, TopMachine *machine, json_object *status)
{
    int64_t n_reloads = view_number(status, "topology_reloads", 0);

    if (machine->topology && n_reloads == machine->n_reloads)
        return CTL_EXIT_OK;
    (void)json_object_put(machine->topology);
    machine->topology = NULL;
    machine->n_reloads = n_reloads;
    return client_call(bus, "GetTopology", &machine->topology, "");
}

CtlExit top_snapshot_take(sd_bus *bus, TopMachine *machine, TopSnapshot **ret)
{
    CLEANUP_JSON json_object *status = NULL, *loads = NULL, *workloads = NULL, *moves = NULL;
    int64_t last;
    CtlExit code = client_call(bus, "GetStatus", &status, "");

    if (code == CTL_EXIT_OK)
        code = look_at_machine(bus, machine, status);
    if (code == CTL_EXIT_OK)
        code = client_call(bus, "GetCpuLoads", &loads, "");
    if (code == CTL_EXIT_OK)
        code = client_call_keys(bus, "ListWorkloads", workload_keys, &workloads);
    last = code == CTL_EXIT_OK ? view_number(status, "moves", 0) : 0;
    if (code == CTL_EXIT_OK)
        code = client_call(bus, "ListMoves", &moves, "tu", (uint64_t)MAX(last - (int64_t)TOP_MOVES, 0),
                           TOP_MOVES);
    if (code != CTL_EXIT_OK)
        return code;
    *ret = top_snapshot_make(status, machine->topology, loads, workloads, moves);
    if (!*ret)
        return ctl_fail_oom();
    (*ret)->realtime_usec = time_realtime_usec();
    return CTL_EXIT_OK;
}

static const char *const state_names[TOP_CPU_STATES] = {"absent", "idle", "busy", "lent", "overloaded"};

static int add_cpus(json_object *list, const TopSnapshot *s)
{
    for (uint32_t i = 0; i < s->n_cpus; i++) {
        json_object *object = json_add_object(list, NULL);

        if (json_set_text(object, "state", state_names[s->cpus[i].state]) < 0 ||
            json_set_number(object, "busy_percent", s->cpus[i].percent) < 0 ||
            json_set_number(object, "node", s->nodes[s->cpus[i].node].number) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int add_nodes(json_object *list, const TopSnapshot *s)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        json_object *object = json_add_object(list, NULL);

        if (json_set_number(object, "node", s->nodes[i].number) < 0 ||
            json_set_number(object, "n_cpus", s->nodes[i].n_cpus) < 0 ||
            json_set_number(object, "busy_permille", s->nodes[i].busy_permille) < 0 ||
            json_set_number(object, "memory_bytes", s->nodes[i].memory_bytes) < 0 ||
            (s->nodes[i].free_known && json_set_number(object, "free_bytes", s->nodes[i].free_bytes) < 0))
            return -ENOMEM;
    }
    return 0;
}

static int add_workloads(json_object *list, const TopSnapshot *s)
{
    for (uint32_t i = 0; i < s->n_workloads; i++) {
        const TopWorkload *w = &s->workloads[i];
        json_object *object = json_add_object(list, NULL);

        if (json_set_text(object, "name", w->name) < 0 || json_set_text(object, "mode", w->mode) < 0 ||
            json_set_text(object, "nodes", w->nodes) < 0 || json_set_bool(object, "paused", w->paused) < 0 ||
            json_set_bool(object, "observed", w->observed) < 0 ||
            json_set_number(object, "run_permille", w->run_permille) < 0 ||
            json_set_number(object, "wait_permille", w->wait_permille) < 0 ||
            json_set_number(object, "leases", w->leases) < 0 ||
            json_set_number(object, "processes", w->processes) < 0 ||
            json_set_number(object, "tasks", w->tasks) < 0 ||
            json_set_number(object, "bytes", w->bytes) < 0 ||
            json_set_number(object, "moving_bytes", w->moving_bytes) < 0 ||
            json_set_number(object, "together_permille", w->together_permille) < 0)
            return -ENOMEM;
    }
    return 0;
}

json_object *top_snapshot_json(const TopSnapshot *s)
{
    CLEANUP_JSON json_object *object = json_object_new_object();
    json_object *nodes = json_add_array(object, "nodes"), *cpus = json_add_array(object, "cpus"),
                *workloads = json_add_array(object, "workloads");

    if (!nodes || !cpus || !workloads || add_cpus(cpus, s) < 0 || add_nodes(nodes, s) < 0 ||
        add_workloads(workloads, s) < 0 || json_set_number(object, "realtime_usec", s->realtime_usec) < 0 ||
        json_set_number(object, "idle", s->n_idle) < 0 ||
        json_set_number(object, "overloaded", s->n_overloaded) < 0 ||
        json_set_number(object, "leases", s->n_leases) < 0)
        return NULL;
    return TAKE_PTR(object);
}
