/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon says of itself, the machine and its workloads at one instant, as `top` shows it. Small, since ten
 * minutes of them are kept: what is foreign text is cut, and numbers are what they are shown as. */

#include "ctl/client.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

#define TOP_NAME_SIZE  (POLICY_NAME_MAX + 1)
#define TOP_NODES_SIZE 24U
#define TOP_MOVE_SIZE  200U
#define TOP_MOVES      12U /* the last ones */

/* A CPU that somebody waits for so long, of each second, is overloaded. */
#define TOP_OVERLOADED_PERMILLE 100U

/* The more there is to be said of it, the later. */
typedef enum TopCpuState {
    TOP_CPU_ABSENT,
    TOP_CPU_IDLE,
    TOP_CPU_BUSY,
    TOP_CPU_LENT,
    TOP_CPU_OVERLOADED, /* somebody waits for it */
    TOP_CPU_STATES,
} TopCpuState;

typedef struct TopCpu {
    uint8_t state;   /* TopCpuState */
    uint8_t percent; /* busy */
    uint16_t node;   /* index into nodes */
    uint16_t llc;
} TopCpu;

typedef struct TopNode {
    uint32_t number; /* of the operating system */
    uint32_t n_cpus, busy_permille;
    uint64_t memory_bytes, free_bytes, bandwidth_bytes;
    bool free_known, bandwidth_known;
} TopNode;

typedef struct TopWorkload {
    char name[TOP_NAME_SIZE], mode[12], nodes[TOP_NODES_SIZE];
    bool paused, observed;
    uint32_t run_permille, wait_permille, leases, processes, tasks, together_permille;
    uint64_t bytes, moving_bytes;
} TopWorkload;

typedef struct TopSnapshot {
    uint64_t realtime_usec; /* of a record, its own clock */
    uint64_t uptime_usec;
    char version[16], state[12], mode[12];
    uint32_t n_idle, n_overloaded, n_leases, cost_permille, max_cost_permille, rehearsal;
    uint64_t n_lends, n_homes, moved_bytes;
    TopCpu *cpus; /* ascending number */
    uint32_t n_cpus;
    TopNode *nodes;
    uint32_t n_nodes;
    TopWorkload *workloads;
    uint32_t n_workloads;
    char moves[TOP_MOVES][TOP_MOVE_SIZE]; /* newest first; "" behind the last */
    bool recorded; /* no daemon was asked: uptime is since the record's first plan, times are its clock's */
    char *plan;    /* the text of the plans since the last one, of a record */
} TopSnapshot;

TopSnapshot *top_snapshot_free(TopSnapshot *snapshot);
DEFINE_CLEANUP(TopSnapshot *, top_snapshot_free)

/* What hardly ever changes, and is asked again when it did. Zeroed before; its members are to be released. */
typedef struct TopMachine {
    json_object *topology;
    int64_t n_reloads;
} TopMachine;

/* Asks the daemon. */
CtlExit top_snapshot_take(sd_bus *bus, TopMachine *machine, TopSnapshot **ret);

/* The same of answers: of GetStatus, GetTopology, GetCpuLoads, ListWorkloads and ListMoves. NULL when memory is out. */
TopSnapshot *top_snapshot_make(json_object *status, json_object *topology, json_object *loads,
                               json_object *workloads, json_object *moves);

/* Copies text that is cut at the end, and never within a character. */
void top_copy(char *to, size_t size, const char *from);

json_object *top_snapshot_json(const TopSnapshot *snapshot);
