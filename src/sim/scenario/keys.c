/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of all keys of scenario files: the only place that knows their names, ranges and defaults. */

#include "base/parse.h"
#include "base/time.h"
#include "sim/scenario/draft.h"

#include <string.h>

const char *const sim_imbalance_names[] = {"old", "new", NULL};
const char *const sim_wake_names[] = {"none", "pair", "group", NULL};
const char *const sim_touch_names[] = {"thread", "process", "interleave", NULL};

static_assert(ARRAY_SIZE(sim_imbalance_names) == SIM_IMBALANCE_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(sim_wake_names) == SIM_WAKE_MAX + 1, "one name per value");
static_assert(ARRAY_SIZE(sim_touch_names) == SIM_TOUCH_MAX + 1, "one name per value");

/* A scenario should run in seconds, so no time in it is longer than an hour. */
#define LONGEST_USEC (3600 * USEC_PER_SEC)

static int parse_part(const char *s, uint64_t *ret)
{
    int r = parse_span_usec(s, ret);

    if (r < 0)
        return r;
    return *ret > LONGEST_USEC ? -ERANGE : 0;
}

/* "LOW HIGH". */
static int parse_uniform(char *value, SimDist *ret)
{
    char *blank = strpbrk(value, " \t");
    int r;

    if (!blank)
        return -EINVAL;
    *blank = '\0';
    r = parse_part(value, &ret->a_usec);
    if (r == 0)
        r = parse_part(blank + 1, &ret->b_usec);
    if (r == 0 && ret->a_usec > ret->b_usec)
        r = -EINVAL;
    return r;
}

/* A length of time or a distribution of lengths: "3ms", "constant 3ms", "uniform 1ms 5ms", "exponential 3ms". */
static int parse_dist(const char *value, void *field, const void *arg)
{
    static const char *const names[] = {"constant ", "uniform ", "exponential "};
    CLEANUP_FREE char *copy = NULL;
    SimDist dist = {.kind = SIM_DIST_CONSTANT};
    int r;

    for (int i = 0; i < SIM_DIST_MAX; i++)
        if (!strncmp(value, names[i], strlen(names[i]))) {
            dist.kind = (SimDistKind)i;
            value += strlen(names[i]);
            break;
        }
    copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    r = dist.kind == SIM_DIST_UNIFORM ? parse_uniform(copy, &dist) : parse_part(copy, &dist.a_usec);
    if (r == 0)
        *(SimDist *)field = dist;
    return r;
}

#define SPEC(f)     offsetof(SimSpec, f)
#define MACHINE(f)  offsetof(MachineDraft, f)
#define KERNEL(f)   offsetof(SimKernel, f)
#define WORKLOAD(f) offsetof(WorkloadDraft, value) + offsetof(SimWorkload, f)
#define VARIANT(f)  offsetof(VariantDraft, f)

#define BOOL    "yes or no"
#define SPAN    "a time span such as 500ms or 10s, at most 1h"
#define DIST    "a time span such as 3ms, or uniform 1ms 5ms, or exponential 3ms, at most 1h"
#define SHARE   "a share such as 40%, at most 100%"
#define SIZE    "a size such as 512M, at most 1T"
#define LATENCY "nanoseconds from 1 to 100000"

static const ConfRange range_text = {0, 512};
static const ConfRange range_duration = {10 * USEC_PER_MSEC, LONGEST_USEC};
static const ConfRange range_span = {0, LONGEST_USEC};
static const ConfRange range_seeds = {1, SIM_SEEDS_MAX};
static const ConfRange range_latency = {1, 100000};
static const ConfRange range_firmware = {0, 1ULL << 40};
static const ConfRange range_bandwidth = {1ULL << 20, 1ULL << 42};
/* Two siblings together are never slower than one alone. */
static const ConfRange range_smt = {500, 1000};
static const ConfRange range_permille = {0, 1000};
static const ConfRange range_limit = {1, POLICY_NODES_MAX};
static const ConfRange range_comm = {0, 15};
static const ConfRange range_path = {0, 4095};
static const ConfRange range_threads = {1, SIM_THREADS_MAX};
static const ConfRange range_sharers = {0, SIM_THREADS_MAX};
static const ConfRange range_overlap = {1, 100};
static const ConfRange range_bytes = {0, 1ULL << 40};
static const ConfRange range_cpus = {0, PARSE_CPU_MAX};
static const ConfRange range_nodes = {0, POLICY_NODES_MAX - 1};

const ConfKey sim_scenario_keys[] = {
    {"Scenario", "Description", conf_parse_string, &range_text, SPEC(description), "",
     "at most 512 bytes of text", NULL},
    {"Scenario", "DurationSec", conf_parse_span, &range_duration, SPEC(duration_usec), "10s",
     "a time span from 10ms to 1h", NULL},
    {"Scenario", "SettleSec", conf_parse_span, &range_span, SPEC(settle_usec), "0", SPAN, NULL},
    {"Scenario", "Seeds", conf_parse_u32, &range_seeds, SPEC(n_seeds), "20", "a number from 1 to 10000",
     NULL},

    {"Machine", "Preset", conf_parse_string, &range_text, MACHINE(preset), "", "the name of a machine", NULL},
    {"Machine", "XML", conf_parse_string, &range_path, MACHINE(xml), "", "a file saved by hwloc", NULL},
    {"Machine", "Synthetic", conf_parse_string, NULL, MACHINE(synthetic), "", "hwloc's synthetic description",
     NULL},
    {"Machine", "LocalLatencyNSec", conf_parse_u32, &range_latency, MACHINE(model.local_latency_nsec), "80",
     LATENCY, NULL},
    {"Machine", "RemoteLatencyNSec", conf_parse_u32, &range_latency, MACHINE(model.remote_latency_nsec),
     "135", LATENCY, NULL},
    {"Machine", "NodeBandwidth", conf_parse_bytes, &range_bandwidth, MACHINE(model.node_bandwidth), "100G",
     "bytes per second from 1M to 4T", NULL},
    {"Machine", "FirmwareBandwidth", conf_parse_bytes, &range_firmware, MACHINE(model.firmware_bandwidth),
     "0", "bytes per second up to 1T", NULL},
    {"Machine", "SMTSpeed", conf_parse_permille, &range_smt, MACHINE(model.smt_permille), "61%",
     "a share from 50% to 100%", NULL},
    {"Machine", "Counters", conf_parse_bool, NULL, MACHINE(model.counters), "yes", BOOL, NULL},

    {"Kernel", "Steal", conf_parse_bool, NULL, KERNEL(steal), "no", BOOL, NULL},
    {"Kernel", "StealNodeLimit", conf_parse_u32, &range_limit, KERNEL(steal_node_limit), "2",
     "a number from 1 to 1024", NULL},
    {"Kernel", "WakeAffine", conf_parse_bool, NULL, KERNEL(wake_affine), "yes", BOOL, NULL},
    {"Kernel", "IdleClaim", conf_parse_bool, NULL, KERNEL(idle_claim), "no", BOOL, NULL},
    {"Kernel", "Balance", conf_parse_bool, NULL, KERNEL(balance), "yes", BOOL, NULL},
    {"Kernel", "ForkImbalance", conf_parse_enum, sim_imbalance_names, KERNEL(imbalance), "new", "old or new",
     NULL},
    {"Kernel", "NumaBalancing", conf_parse_bool, NULL, KERNEL(numa_balancing), "no", BOOL, NULL},
    {"Kernel", "ForceComplete", conf_parse_bool, NULL, KERNEL(force_complete), "yes", BOOL, NULL},

    {"Workload", "Comm", conf_parse_string, &range_comm, WORKLOAD(comm), "", "at most 15 bytes of text",
     NULL},
    {"Workload", "Cgroup", conf_parse_string, &range_text, WORKLOAD(cgroup), "", "a path that starts with /",
     NULL},
    {"Workload", "Processes", conf_parse_u32, &range_threads, WORKLOAD(n_processes), "1",
     "a number from 1 to 200000", NULL},
    {"Workload", "Threads", conf_parse_u32, &range_threads, WORKLOAD(n_threads), "1",
     "a number from 1 to 200000", NULL},
    {"Workload", "StartSec", conf_parse_span, &range_span, WORKLOAD(start_usec), "0", SPAN, NULL},
    {"Workload", "ArrivalSec", parse_dist, NULL, WORKLOAD(arrival), "0", DIST, NULL},
    {"Workload", "ForkSec", conf_parse_span, &range_span, WORKLOAD(stagger_usec), "0", SPAN, NULL},
    {"Workload", "SerialSec", conf_parse_span, &range_span, WORKLOAD(serial_usec), "0", SPAN, NULL},
    {"Workload", "AsleepSec", conf_parse_span, &range_span, WORKLOAD(asleep_usec), "0", SPAN, NULL},
    {"Workload", "WorkSec", conf_parse_span, &range_span, WORKLOAD(work_usec), "0", SPAN, NULL},
    {"Workload", "BurstSec", parse_dist, NULL, WORKLOAD(burst), "0", DIST, NULL},
    {"Workload", "SleepSec", parse_dist, NULL, WORKLOAD(sleep), "0", DIST, NULL},
    {"Workload", "Wake", conf_parse_enum, sim_wake_names, WORKLOAD(wake), "none", "none, pair or group",
     NULL},
    {"Workload", "WakeSync", conf_parse_bool, NULL, WORKLOAD(wake_sync), "yes", BOOL, NULL},
    {"Workload", "PrivateMemory", conf_parse_bytes, &range_bytes, WORKLOAD(private_bytes), "0", SIZE, NULL},
    {"Workload", "SharedMemory", conf_parse_bytes, &range_bytes, WORKLOAD(shared_bytes), "0", SIZE, NULL},
    {"Workload", "SharedBy", conf_parse_u32, &range_sharers, WORKLOAD(shared_by), "0",
     "a number of threads up to 200000", NULL},
    {"Workload", "MemoryBound", conf_parse_permille, &range_permille, WORKLOAD(memory_permille), "0%", SHARE,
     NULL},
    {"Workload", "MissOverlap", conf_parse_u32, &range_overlap, WORKLOAD(miss_overlap), "1",
     "a number from 1 to 100", NULL},
    {"Workload", "SharedAccess", conf_parse_permille, &range_permille, WORKLOAD(shared_permille), "0%", SHARE,
     NULL},
    {"Workload", "Bandwidth", conf_parse_bytes, &range_bytes, WORKLOAD(bandwidth), "0",
     "bytes per second such as 12G, at most 1T", NULL},
    {"Workload", "FirstTouch", conf_parse_enum, sim_touch_names, WORKLOAD(touch), "thread",
     "thread, process or interleave", NULL},
    {"Workload", "Displaced", conf_parse_permille, &range_permille, WORKLOAD(displaced_permille), "0%", SHARE,
     NULL},
    {"Workload", "DisplacedSec", conf_parse_span, &range_span, WORKLOAD(displaced_usec), "0", SPAN, NULL},
    {"Workload", "PhaseSec", conf_parse_span, &range_span, WORKLOAD(phase_usec), "0", SPAN, NULL},
    {"Workload", "CPUs", conf_parse_list, &range_cpus, WORKLOAD(cpuset), "", "CPU numbers such as 0-3,8",
     NULL},
    {"Workload", "Nodes", conf_parse_list, &range_nodes, offsetof(WorkloadDraft, nodes), "",
     "node numbers such as 0-1,4", NULL},
    {"Workload", "Affinity", conf_parse_list, &range_cpus, WORKLOAD(affinity), "",
     "CPU numbers such as 0-3,8", NULL},
    {"Workload", "AffinitySec", conf_parse_span, &range_span, WORKLOAD(affinity_usec), "0", SPAN, NULL},
    {"Workload", "StartNodes", conf_parse_list, &range_nodes, offsetof(WorkloadDraft, start_nodes), "",
     "node numbers such as 0-1,4", NULL},
    {"Workload", "Shuffled", conf_parse_bool, NULL, WORKLOAD(shuffled), "no", BOOL, NULL},

    {"Variant", "Daemon", conf_parse_bool, NULL, VARIANT(daemon), "yes", BOOL, NULL},
    {"Variant", "Policies", conf_parse_string, NULL, VARIANT(policies), "",
     "names of [Policy ...] sections and policy files, or none", NULL},
    {"Variant", "Workloads", conf_parse_string, NULL, VARIANT(workloads), "", "names of workloads", NULL},
    {"Variant", "Off", conf_parse_string, NULL, VARIANT(off), "", "names of rules", NULL},
};

const size_t sim_scenario_n_keys = ARRAY_SIZE(sim_scenario_keys);

static_assert(ARRAY_SIZE(sim_scenario_keys) <= 64, "a set of keys is 64 bits");

bool scenario_draft_given(const WorkloadDraft *workload, const char *key)
{
    const ConfKey *row = conf_table_find(sim_scenario_keys, sim_scenario_n_keys, "Workload", key);

    assert(row);
    return workload->set & (1ULL << (row - sim_scenario_keys));
}
