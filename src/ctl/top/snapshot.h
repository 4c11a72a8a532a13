/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the daemon reports about itself, the machine and its workloads at one instant, as `top` shows it. Small,
 * because ten minutes of snapshots are kept: foreign text is cut, and numbers have the precision shown. */

#include "ctl/client.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

#define TOP_NAME_SIZE  (POLICY_NAME_MAX + 1)
#define TOP_NODES_SIZE 24U
#define TOP_MOVE_SIZE  320U /* in a record, a move of memory has 210 bytes on four nodes, more on others */
#define TOP_MOVES      12U  /* the last ones */

/* From this waiting time on, a CPU is overloaded. */
#define TOP_OVERLOADED_PERMILLE 100U

/* In ascending order of importance. */
typedef enum TopCpuState {
    TOP_CPU_ABSENT,
    TOP_CPU_IDLE,
    TOP_CPU_BUSY,
    TOP_CPU_LENT,
    TOP_CPU_OVERLOADED, /* threads wait for it */
    TOP_CPU_STATES,
} TopCpuState;

typedef struct TopCpu {
    uint8_t state;   /* TopCpuState */
    uint8_t percent; /* busy */
    uint16_t node;   /* index into nodes */
    uint16_t llc;
} TopCpu;

typedef struct TopNode {
    uint32_t number; /* the operating system's */
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
    uint64_t realtime_usec; /* of a record: on its own clock */
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
    char moves[TOP_MOVES][TOP_MOVE_SIZE]; /* newest first; "" after the last */
    bool recorded; /* from a record: uptime is since its first plan, times are on its clock */
    char *plan;    /* of a record: the text of the plans since the last snapshot */
} TopSnapshot;

TopSnapshot *top_snapshot_free(TopSnapshot *snapshot);
DEFINE_CLEANUP(TopSnapshot *, top_snapshot_free)

/* Data that hardly ever changes, read again when it did. Zeroed by the caller, who also releases the members. */
typedef struct TopMachine {
    json_object *topology;
    int64_t n_reloads;
} TopMachine;

/* Takes a snapshot from the daemon. */
CtlExit top_snapshot_take(sd_bus *bus, TopMachine *machine, TopSnapshot **ret);

/* Makes one from the answers of GetStatus, GetTopology, GetCpuLoads, ListWorkloads and ListMoves. NULL when
 * out of memory. */
TopSnapshot *top_snapshot_make(json_object *status, json_object *topology, json_object *loads,
                               json_object *workloads, json_object *moves);

/* Copies text, cut at the end but never within a character. */
void top_copy(char *to, size_t size, const char *from);

/* The same; what was cut ends with "...". `size` is at least 4. */
void top_copy_line(char *to, size_t size, const char *from);

/* Copies a set of numbers. If it does not fit, it is cut after a comma and ends with "...", because the rest of a set
 * reads as another set. `size` is at least 4. */
void top_copy_set(char *to, size_t size, const char *from);

json_object *top_snapshot_json(const TopSnapshot *snapshot);
