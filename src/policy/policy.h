/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A validated policy file: which tasks it applies to, and how they are placed. The manual is numaplace.policy(5). */

#include "base/util.h"
#include "conf/search.h"
#include "conf/table.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define POLICY_MAX         1024U /* policies in force */
#define POLICY_NAME_MAX    64U   /* bytes of a name */
#define POLICY_MATCHES_MAX 256U  /* [Match] sections of one policy */
#define POLICY_VALUES_MAX  256U  /* values of one match key */
#define POLICY_NODES_MAX   1024U /* node numbers are below this: CONFIG_NODES_SHIFT is at most 10 */

/* The directories of policy files; the first one wins. Tests use them relative to a root. */
#define POLICY_DIRECTORIES                                                                     \
    "/etc/numaplace/policy.d", "/run/numaplace/policy.d", "/usr/local/lib/numaplace/policy.d", \
        "/usr/lib/numaplace/policy.d"

/* policy_*_names[] hold the names used in files, in this order. */
typedef enum PolicyGroupBy {
    POLICY_GROUP_BY_AUTO,
    POLICY_GROUP_BY_WORKLOAD,
    POLICY_GROUP_BY_CGROUP,
    POLICY_GROUP_BY_PROCESS,
    POLICY_GROUP_BY_SHARED_MEMORY,
    POLICY_GROUP_BY_MAX,
    POLICY_GROUP_BY_INVALID = -EINVAL,
} PolicyGroupBy;

typedef enum PolicyAct {
    POLICY_ACT_AUTO,
    POLICY_ACT_OBSERVE, /* I11: no changing system call */
    POLICY_ACT_AFFINITY,
    POLICY_ACT_UNIT,
    POLICY_ACT_CPUSET,
    POLICY_ACT_MAX,
    POLICY_ACT_INVALID = -EINVAL,
} PolicyAct;

typedef enum PolicyForeign {
    POLICY_FOREIGN_RESPECT,
    POLICY_FOREIGN_OVERRIDE,
    POLICY_FOREIGN_MAX,
    POLICY_FOREIGN_INVALID = -EINVAL,
} PolicyForeign;

typedef enum PolicyMode {
    POLICY_MODE_NONE, /* not placed at all */
    POLICY_MODE_AUTO,
    POLICY_MODE_COMPRESS,
    POLICY_MODE_SPREAD,
    POLICY_MODE_INTERLEAVE,
    POLICY_MODE_FIXED, /* home is Nodes= */
    POLICY_MODE_MAX,
    POLICY_MODE_INVALID = -EINVAL,
} PolicyMode;

typedef enum PolicyScope { /* how far from home a CPU may be lent; same order as TopologyLevel from SMT on */
    POLICY_SCOPE_SMT,
    POLICY_SCOPE_LLC,
    POLICY_SCOPE_NODE,
    POLICY_SCOPE_MACHINE,
    POLICY_SCOPE_MAX,
    POLICY_SCOPE_INVALID = -EINVAL,
} PolicyScope;

typedef enum PolicyEvidence { /* auto, and the kinds of probe/memory/evidence.h in their order */
    POLICY_EVIDENCE_AUTO,
    POLICY_EVIDENCE_WRITE,     /* W */
    POLICY_EVIDENCE_KERNEL,    /* A */
    POLICY_EVIDENCE_RESIDENCY, /* D */
    POLICY_EVIDENCE_MAX,
    POLICY_EVIDENCE_INVALID = -EINVAL,
} PolicyEvidence;

/* One value of a match key: a glob, or a number for Min...=; `!` in front negates. */
typedef struct PolicyPattern {
    bool negate;
    uint32_t line; /* of the key in the section's file; 0 when it was not read from a file */
    char *glob;
} PolicyPattern;

typedef struct PolicyPatterns {
    PolicyPattern *values; /* OR; NULL: key not given */
    size_t n_values;
} PolicyPatterns;

/* One [Match] section: all given keys must match (AND). At least one is given. */
typedef struct PolicyMatch {
    PolicyPatterns unit, slice, cgroup, comm, exe, command_line, user, environment;
    uint64_t min_memory_bytes;
    uint32_t min_cpu_permille; /* of one CPU */
    uint32_t min_threads;
    uint32_t file; /* index into Policy.files */
    uint32_t line;
} PolicyMatch;

/* The last file and line that set a key outside [Match]. */
typedef struct PolicySetting {
    uint32_t key;  /* index into policy_keys */
    uint32_t file; /* index into Policy.files */
    uint32_t line;
} PolicySetting;

/* The burst allowed after a quiet time, in seconds of the rate (I4). A choice of ours. */
#define POLICY_BURST_SEC 4U

typedef struct Policy {
    char *name;       /* the file's base name without ".policy" */
    const char *path; /* of the winning file: files[0] */
    char **files;     /* the winning file, then its drop-ins */
    size_t n_files, files_capacity;
    PolicySetting *settings; /* in the order of policy_keys */
    size_t n_settings, settings_capacity;
    PolicyMatch *matches; /* OR; none: matches nothing */
    size_t n_matches, matches_capacity;

    /* [Workload] */
    char *description;
    int group_by;         /* PolicyGroupBy */
    int act;              /* PolicyAct */
    int foreign_affinity; /* PolicyForeign */
    uint32_t expect_width;
    uint64_t min_age_usec;

    /* [Placement] */
    int mode;             /* PolicyMode */
    hwloc_bitmap_t nodes; /* operating-system node numbers; NULL: any */
    uint32_t max_nodes;   /* 0: no limit */
    uint64_t settle_usec;
    uint64_t min_residency_usec;
    uint32_t min_gain_permille;
    uint32_t allowed_imbalance; /* CONF_AUTO: from the topology (P5) */
    uint64_t ping_pong_usec;

    /* [Steal] */
    bool steal;
    int scope; /* PolicyScope */
    uint32_t node_limit;
    uint32_t max_distance;
    uint32_t wait_permille;
    uint32_t idle_cost_ratio;
    uint64_t lease_usec;

    /* [Memory] */
    bool follow;
    bool even_out;
    int evidence;              /* PolicyEvidence */
    uint64_t rate_limit_bytes; /* per second; 0: off */
    bool force_complete;
    bool two_stage;
    uint32_t headroom_percent;
    uint64_t scan_min_usec;
    uint64_t scan_max_usec;
    uint64_t scan_size_bytes;
    bool scan_feedback;
    uint32_t max_pressure_permille;

    /* [Limits] */
    uint32_t cross_node_moves_per_sec;
    uint32_t cross_node_burst;
    uint32_t nice_tries;
    uint32_t backoff_max;
} Policy;

typedef enum PolicyWants {
    POLICY_WANTS_EXE = 1 << 0,
    POLICY_WANTS_COMMAND_LINE = 1 << 1,
    POLICY_WANTS_ENVIRONMENT = 1 << 2,
    POLICY_WANTS_DYNAMIC = 1 << 3, /* MinMemory=, MinCPU=, MinThreads= */
} PolicyWants;

/* All policies in force, in the order they are tried. Immutable once loaded; shared by reference. */
typedef struct PolicySet {
    Policy **policies;
    size_t n_policies, capacity;
    unsigned wants; /* PolicyWants: costly facts that some [Match] needs */
} PolicySet;

/* The table of all keys, in the order of the manual. The policy_n_match_keys rows of [Match] come first.
 * Their offsets are into PolicyMatch, those of the other rows into Policy. */
extern const ConfKey policy_keys[];
extern const size_t policy_n_keys;
extern const size_t policy_n_match_keys;

extern const char *const policy_group_by_names[];
extern const char *const policy_act_names[];
extern const char *const policy_foreign_names[];
extern const char *const policy_mode_names[];
extern const char *const policy_scope_names[];
extern const char *const policy_evidence_names[];

/* Whether the planner chooses the nodes. */
bool policy_chooses_nodes(const Policy *policy);

/* Whether Evidence= permits a kind that says in which blocks a thread uses memory, where such a kind works. */
bool policy_locates_use(const Policy *policy);

/* What forms a group. GroupBy=auto means processes seen to share memory (AUTO) with Mode=auto, and a cgroup
 * with any other Mode= and with Act=unit or cpuset. */
PolicyGroupBy policy_group_by(const Policy *policy);

/* Whether a cgroup is one group only while it fits on a node, and is split into processes that share memory
 * while it does not. True with GroupBy=cgroup and Mode=auto, unless the policy confines whole cgroups (Act=)
 * or says how wide they are (MaxNodes=, ExpectWidth=). */
bool policy_parts_groups(const Policy *policy);

/* Whether groups follow from the memory that processes share. Includes policy_parts_groups(). */
bool policy_groups_sharers(const Policy *policy);

/* The setting of a key, or NULL when the default applies. */
const PolicySetting *policy_setting_find(const Policy *policy, const char *section, const char *name);

/* Reads and validates all policies and drop-ins below `directories` (NULL-terminated, first wins). Any error makes the
 * whole load fail with -EBADMSG, so that a reload changes nothing; unknown keys only warn. `topology` (may be NULL)
 * serves to check that nodes exist. On success the caller owns *ret. Returns 0, -EBADMSG or -ENOMEM. */
int policy_set_load(const char *const *directories, const Topology *topology, PolicySet **ret,
                    ConfReport *report);

/* Finds the files of all policies and their drop-ins. Returns as conf_search(), or -E2BIG (see `report`) for
 * more than POLICY_MAX. */
int policy_search(const char *const *directories, ConfFiles *ret, ConfReport *report);

/* Reads and validates one policy with its drop-ins. Returns 0, -EBADMSG or -ENOMEM. */
int policy_load(const ConfFile *file, const Topology *topology, Policy **ret, ConfReport *report);

/* Reads one file without its drop-ins. The policy is named after the file. */
int policy_load_file(const char *path, const Topology *topology, Policy **ret, ConfReport *report);

/* Parses a policy of this name from memory, for scenarios, tests and the fuzzer. These may also set constants
 * (ConfKey.fixed). */
int policy_parse(const char *name, const char *text, size_t len, const char *file, const Topology *topology,
                 Policy **ret, ConfReport *report);

/* Makes a set of `n` policies, sorted by name. On success it owns them, and the entries of `policies` become
 * NULL. Returns 0, -EEXIST when two have the same name, -E2BIG for more than POLICY_MAX, or -ENOMEM. */
int policy_set_new(Policy **policies, size_t n, PolicySet **ret);

Policy *policy_free(Policy *policy);
DEFINE_CLEANUP(Policy *, policy_free)

PolicySet *policy_set_free(PolicySet *set);
DEFINE_CLEANUP(PolicySet *, policy_set_free)

/* The complete effective text of a policy: every key with its value. Parsing it gives an equal policy.
 * Malloc'd, NULL when out of memory. */
char *policy_format(const Policy *policy);

/* The facts about a process that a policy can match. Unknown strings may be NULL. Neither a key nor its
 * negation matches an unknown string, because nothing is guessed. */
typedef struct PolicySubject {
    const char *unit, *slice, *cgroup, *comm, *exe, *command_line;
    const char *environment; /* NUL-separated assignments */
    size_t environment_len;
    uid_t uid;
    const char *user; /* login name, or NULL; User= also matches the decimal uid */
    uint64_t memory_bytes;
    uint32_t cpu_permille;
    uint32_t n_threads;
} PolicySubject;

typedef enum PolicyVerdict {
    POLICY_VERDICT_NO,    /* never, unless its name, cgroup or program changes */
    POLICY_VERDICT_LATER, /* not now: only a Min...= key does not match */
    POLICY_VERDICT_YES,
} PolicyVerdict;

/* Finds the first policy that matches, *ret_index. A policy that says LATER does not hide those after it: the result
 * is then LATER, so that the subject is checked again, and *ret_index is the later YES match or SIZE_MAX. */
PolicyVerdict policy_match(const PolicySet *set, const PolicySubject *subject, size_t *ret_index);

/* Whether one policy matches. *ret_section is the [Match] section (0-based) that decided, for `policy match`,
 * or SIZE_MAX for NO. */
PolicyVerdict policy_match_one(const Policy *policy, const PolicySubject *subject, size_t *ret_section);
