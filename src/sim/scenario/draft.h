/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the scenario reader keeps while it reads: the values of the file, not yet checked against each other
 * or the machine. scenario.c fills it; resolve.c makes a SimSpec of it. */

#include "sim/scenario/scenario.h"

#include <stdint.h>

typedef struct MachineDraft {
    char *preset, *xml, *synthetic;
    SimModel model;
    unsigned line; /* 0: no such section */
} MachineDraft;

typedef struct WorkloadDraft {
    SimWorkload value;                 /* its cpuset is CPUs=; its start_cpus are not set */
    hwloc_bitmap_t nodes, start_nodes; /* operating-system numbers */
    uint64_t set;                      /* keys given: a bit per row of sim_scenario_keys */
    unsigned line;
} WorkloadDraft;

/* One line of an inline policy. */
typedef struct PolicyLine {
    char *text;
    unsigned line;
} PolicyLine;

typedef struct PolicyDraft {
    char *name;
    PolicyLine *lines;
    size_t n_lines, capacity;
    uint64_t set; /* keys set: a bit per row of policy_keys after those of [Match] */
    unsigned line;
    bool reported; /* its errors are in the report */
} PolicyDraft;

typedef struct VariantDraft {
    char *name;
    bool daemon;
    char *policies, *workloads; /* words; NULL: all */
    char *off;                  /* words; NULL: none */
    SimKernel kernel;           /* [Kernel] with the variant's changes */
    unsigned line;
} VariantDraft;

typedef struct ExpectDraft {
    char *key, *value;
    SimOver over;
    unsigned line;
} ExpectDraft;

typedef struct ScenarioDraft {
    SimSpec *spec; /* receives [Scenario] */
    const char *file, *directory;
    MachineDraft machine;
    SimKernel kernel;
    WorkloadDraft *workloads;
    size_t n_workloads, workloads_capacity;
    PolicyDraft *policies;
    size_t n_policies, policies_capacity;
    VariantDraft *variants;
    size_t n_variants, variants_capacity;
    ExpectDraft *expects;
    size_t n_expects, expects_capacity;
    ConfReport *report;
} ScenarioDraft;

#define DRAFT_ERROR(d, line, ...) \
    conf_report_add((d)->report, CONF_SEVERITY_ERROR, (d)->file, line, __VA_ARGS__)
/* Is 0, so that reading continues and finds further errors. */
#define DRAFT_REFUSE(d, line, ...) (DRAFT_ERROR(d, line, __VA_ARGS__), 0)

void scenario_draft_done(ScenarioDraft *draft);

/* Whether a workload's section has the key. */
bool scenario_draft_given(const WorkloadDraft *workload, const char *key);

/* Fills draft->spec, except for [Scenario], from the rest. Errors go to the report. Returns 0 or -ENOMEM. */
int scenario_resolve(ScenarioDraft *draft, const char *const *policy_dirs);

/* The policies of one variant: its own or, with a daemon, those of `policy_dirs` if given. Returns 0 or
 * -ENOMEM. If it adds errors to the report, *ret is NULL. */
int scenario_policies(ScenarioDraft *draft, const VariantDraft *variant, const char *const *policy_dirs,
                      PolicySet **ret);

/* Resolves a path relative to the scenario's directory. Malloc'd; NULL when out of memory. */
char *scenario_path(const ScenarioDraft *draft, const char *path);

/* Calls `word` for each word of `text` until it fails. Returns 0, the result of `word`, or -ENOMEM. */
int scenario_each_word(const char *text, int (*word)(void *userdata, const char *word), void *userdata);
