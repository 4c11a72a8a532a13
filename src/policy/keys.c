/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of all policy keys, the one place that knows their names, ranges and defaults. A default is that of the
 * kernel mechanism where there is one (the P-number is at the row); the other rows say where theirs comes from. */

#include "base/time.h"
#include "policy/pattern.h"
#include "policy/policy.h"

const char *const policy_group_by_names[] = {"auto", "workload", "cgroup", "process", "shared-memory", NULL};
const char *const policy_act_names[] = {"auto", "observe", "affinity", "unit", "cpuset", NULL};
const char *const policy_foreign_names[] = {"respect", "override", NULL};
const char *const policy_mode_names[] = {"none", "auto", "compress", "spread", "interleave", "fixed", NULL};
const char *const policy_scope_names[] = {"smt", "llc", "node", "machine", NULL};
const char *const policy_evidence_names[] = {"auto", "write", "kernel", "residency", NULL};

static_assert(ARRAY_SIZE(policy_group_by_names) == POLICY_GROUP_BY_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(policy_act_names) == POLICY_ACT_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(policy_foreign_names) == POLICY_FOREIGN_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(policy_mode_names) == POLICY_MODE_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(policy_scope_names) == POLICY_SCOPE_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(policy_evidence_names) == POLICY_EVIDENCE_MAX + 1, "one name per value");

#define MATCH(f) offsetof(PolicyMatch, f)
#define FIELD(f) offsetof(Policy, f)

#define GLOBS "up to 256 globs separated by blanks, quoted to hold blanks, ! in front to negate"
#define SPAN  "a time span such as 500ms or 10s, at most 1d"
#define BOOL  "yes or no"

/* Longer than anything sensible, and far from any overflow. */
static const ConfRange range_span = {0, 86400 * USEC_PER_SEC};
static const ConfRange range_description = {0, 256};
static const ConfRange range_cpus = {0, 65536};
static const ConfRange range_permille = {0, 1000};
/* More than all of a hundred thousand CPUs is a mistake. */
static const ConfRange range_min_cpu = {0, 100000000};
/* With 0, a CPU on which nothing waits would count as overloaded. */
static const ConfRange range_wait = {1, 1000};
static const ConfRange range_nodes = {0, POLICY_NODES_MAX - 1};
static const ConfRange range_max_nodes = {0, POLICY_NODES_MAX};
/* 0 means "the default" in the kernel; here it would be a second way to write Steal=no. */
static const ConfRange range_node_limit = {1, POLICY_NODES_MAX};
/* As in the SLIT: 10 is local, 255 unreachable. */
static const ConfRange range_distance = {10, 254};
static const ConfRange range_ratio = {1, 1000000};
/* A lease shorter than the slow tick could not be used and recalled properly. */
static const ConfRange range_lease = {USEC_PER_SEC, 86400 * USEC_PER_SEC};
/* From the kernel's own floor, 256 MB at 2560 MB/s (P8). */
static const ConfRange range_scan = {100 * USEC_PER_MSEC, 3600 * USEC_PER_SEC};
static const ConfRange range_scan_size = {1ULL << 20, 1ULL << 40};
static const ConfRange range_rate = {0, 1ULL << 50};
static const ConfRange range_headroom = {0, 90};
/* Use Scope=node for no moves: a bucket with a rate of 0 would still grant its burst once. */
static const ConfRange range_moves = {1, 100000};
static const ConfRange range_tries = {0, 1000};
static const ConfRange range_backoff = {0, 1024};

const ConfKey policy_keys[] = {
    {"Match", "Unit", policy_patterns_parse, NULL, MATCH(unit), "", GLOBS, NULL},
    {"Match", "Slice", policy_patterns_parse, NULL, MATCH(slice), "", GLOBS, NULL},
    {"Match", "Cgroup", policy_patterns_parse, NULL, MATCH(cgroup), "", GLOBS, NULL},
    {"Match", "Comm", policy_patterns_parse, NULL, MATCH(comm), "", GLOBS, NULL},
    {"Match", "Exe", policy_patterns_parse, NULL, MATCH(exe), "", GLOBS, NULL},
    {"Match", "CommandLine", policy_patterns_parse, NULL, MATCH(command_line), "", GLOBS, NULL},
    {"Match", "User", policy_patterns_parse, NULL, MATCH(user), "", GLOBS, NULL},
    {"Match", "Environment", policy_patterns_parse, NULL, MATCH(environment), "", GLOBS, NULL},
    {"Match", "MinMemory", conf_parse_bytes, NULL, MATCH(min_memory_bytes), "0", "a size such as 512M", NULL},
    {"Match", "MinCPU", conf_parse_permille, &range_min_cpu, MATCH(min_cpu_permille), "0%",
     "a share of one CPU such as 150%, at most 10000000%", NULL},
    {"Match", "MinThreads", conf_parse_u32, NULL, MATCH(min_threads), "0", "a number up to 4294967295", NULL},

    {"Workload", "Description", conf_parse_string, &range_description, FIELD(description), "",
     "at most 256 bytes of text", NULL},
    /* Processes of one unit need not belong together; see harm in BENCHMARKS.md. */
    {"Workload", "GroupBy", conf_parse_enum, policy_group_by_names, FIELD(group_by), "auto",
     "auto, workload, cgroup, process or shared-memory", NULL},
    {"Workload", "Act", conf_parse_enum, policy_act_names, FIELD(act), "auto",
     "auto, observe, affinity, unit or cpuset", NULL},
    {"Workload", "ForeignAffinity", conf_parse_enum, policy_foreign_names, FIELD(foreign_affinity), "respect",
     "respect or override", NULL},
    {"Workload", "ExpectWidth", conf_parse_u32, &range_cpus, FIELD(expect_width), "0",
     "a number of CPUs up to 65536, 0 when not known", NULL},
    /* One slow tick: a process that lives shorter gains nothing from placement (P5, S-SHELL). */
    {"Workload", "MinAgeSec", conf_parse_span, &range_span, FIELD(min_age_usec), "1s", SPAN, NULL},

    {"Placement", "Mode", conf_parse_enum, policy_mode_names, FIELD(mode), "auto",
     "none, auto, compress, spread, interleave or fixed", NULL},
    {"Placement", "Nodes", conf_parse_list, &range_nodes, FIELD(nodes), "",
     "node numbers up to 1023 such as 0-1,4", NULL},
    {"Placement", "MaxNodes", conf_parse_u32, &range_max_nodes, FIELD(max_nodes), "0",
     "a number of nodes up to 1024, 0 for no limit", NULL},
    /* Early moves help, late ones hurt (P3). */
    {"Placement", "SettleSec", conf_parse_span, &range_span, FIELD(settle_usec), "10s", SPAN, NULL},
    /* task_hot's 500 us in the kernel (P7), scaled to ticks. */
    {"Placement", "MinResidencySec", conf_parse_span, &range_span, FIELD(min_residency_usec), "1s", SPAN,
     NULL},
    {"Placement", "MinGainPermille", conf_parse_u32, &range_permille, FIELD(min_gain_permille), "30",
     "a number from 0 to 1000",
     "a smaller gain is noise, and moving costs more (P6, migrate and swap)"}, /* SMALLIMP (P6) */
    {"Placement", "AllowedImbalance", conf_parse_auto, &range_cpus, FIELD(allowed_imbalance), "auto",
     "auto or a number of CPUs up to 65536",
     "it follows from the caches and nodes of the machine (P5, imbalance)"},
    {"Placement", "PingPongSec", conf_parse_span, &range_span, FIELD(ping_pong_usec), "1min", SPAN,
     "threads that go back and forth faster gain nothing from moving"},

    {"Steal", "Steal", conf_parse_bool, NULL, FIELD(steal), "yes", BOOL, NULL},
    {"Steal", "Scope", conf_parse_enum, policy_scope_names, FIELD(scope), "machine",
     "smt, llc, node or machine", NULL},
    {"Steal", "NodeLimit", conf_parse_u32, &range_node_limit, FIELD(node_limit), "2",
     "a number from 1 to 1024", NULL}, /* sched_steal_node_limit (P3) */
    {"Steal", "MaxDistance", conf_parse_u32, &range_distance, FIELD(max_distance), "30",
     "a distance from 10 to 254", NULL}, /* node_reclaim_distance (P3) */
    {"Steal", "WaitPermille", conf_parse_u32, &range_wait, FIELD(wait_permille), "250",
     "a number from 1 to 1000",
     "a CPU on which threads wait for a quarter of the time is overloaded (P1, overload map)"},
    /* 10 us of idle time to a cost of 1 us. */
    {"Steal", "IdleCostRatio", conf_parse_u32, &range_ratio, FIELD(idle_cost_ratio), "10",
     "a number from 1 to 1000000",
     "the kernel, too, looks for work only where the idle time is long compared with the cost (P2, "
     "stealing)"},
    /* Long compared with a tick, so that renewing costs nothing; short compared with a change of load. */
    {"Steal", "LeaseSec", conf_parse_span, &range_lease, FIELD(lease_usec), "30s",
     "a time span such as 30s, from 1s to 1d", NULL},

    {"Memory", "Follow", conf_parse_bool, NULL, FIELD(follow), "yes", BOOL, NULL},
    {"Memory", "EvenOut", conf_parse_bool, NULL, FIELD(even_out), "yes", BOOL,
     "the memory of a process on several nodes is mostly used on all of them (P17, interleaving)"},
    {"Memory", "Evidence", conf_parse_enum, policy_evidence_names, FIELD(evidence), "auto",
     "auto, write, kernel or residency", NULL},
    {"Memory", "RateLimit", conf_parse_bytes, &range_rate, FIELD(rate_limit_bytes), "0",
     "bytes per second such as 1280M, at most 1024T, 0 for no limit", NULL}, /* P20 */
    {"Memory", "ForceComplete", conf_parse_bool, NULL, FIELD(force_complete), "yes", BOOL,
     "memory that is never scanned would never be found (P9, complete scans)"}, /* P9 */
    {"Memory", "TwoStage", conf_parse_bool, NULL, FIELD(two_stage), "yes", BOOL,
     "one sample says too little (P13, page filter)"}, /* P13 */
    /* Room for allocations while pages move (P19). */
    {"Memory", "HeadroomPercent", conf_parse_u32, &range_headroom, FIELD(headroom_percent), "10",
     "a number from 0 to 90", NULL},
    {"Memory", "ScanMinSec", conf_parse_span, &range_scan, FIELD(scan_min_usec), "1s",
     "a time span from 100ms to 1h",
     "the pace follows from what is found and what it costs (P8, scan pacing)"}, /* scan_period_min_ms (P8) */
    {"Memory", "ScanMaxSec", conf_parse_span, &range_scan, FIELD(scan_max_usec), "1min",
     "a time span from 100ms to 1h",
     "the pace follows from what is found and what it costs (P8, scan pacing)"}, /* scan_period_max_ms (P8) */
    {"Memory", "ScanSize", conf_parse_bytes, &range_scan_size, FIELD(scan_size_bytes), "256M",
     "a size from 1M to 1T",
     "the pace follows from what is found and what it costs (P8, scan pacing)"}, /* scan_size_mb (P8) */
    {"Memory", "ScanFeedback", conf_parse_bool, NULL, FIELD(scan_feedback), "yes", BOOL,
     "converged memory needs less scanning (P16, strength)"}, /* P16 */
    /* "some" of memory.pressure: memory is not moved while a tenth of the time is spent waiting for it (P19). */
    {"Memory", "MaxPressure", conf_parse_permille, &range_permille, FIELD(max_pressure_permille), "10%",
     "a share of time such as 10%, at most 100%", NULL},

    /* Both cost far less than a wrong decision: 16 moves of 20 us are 0.03 % of a CPU. */
    {"Limits", "CrossNodeMovesPerSec", conf_parse_u32, &range_moves, FIELD(cross_node_moves_per_sec), "16",
     "a number from 1 to 100000", NULL},
    {"Limits", "CrossNodeBurst", conf_parse_auto, &range_moves, FIELD(cross_node_burst), "auto",
     "auto or a number from 1 to 100000", "four seconds of CrossNodeMovesPerSec= (I4)"},
    {"Limits", "NiceTries", conf_parse_u32, &range_tries, FIELD(nice_tries), "2", "a number up to 1000",
     "as in the kernel between nodes (P7, guards)"}, /* cache_nice_tries of a NUMA domain (P7) */
    {"Limits", "BackoffMax", conf_parse_u32, &range_backoff, FIELD(backoff_max), "32",
     "a number of ticks up to 1024",
     "with a longer one, a change of load would go unseen (P7, guards)"}, /* P7 */
};

const size_t policy_n_keys = ARRAY_SIZE(policy_keys);
const size_t policy_n_match_keys = 11;
