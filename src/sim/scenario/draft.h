/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the reader of scenarios keeps while it reads: values as they stand in the file, not yet held against each
 * other or the machine. scenario.c fills it, resolve.c makes a SimSpec of it. */

#include "sim/scenario/scenario.h"

#include <stdint.h>

typedef struct MachineDraft {
    char *preset, *xml, *synthetic;
    SimModel model;
    unsigned line; /* 0: no such section */
} MachineDraft;

typedef struct WorkloadDraft {
    SimWorkload value;                 /* its cpuset is CPUs=, its start_cpus are not set */
    hwloc_bitmap_t nodes, start_nodes; /* operating-system numbers */
    uint64_t set;                      /* which keys were given: a bit per row of sim_scenario_keys */
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
    uint64_t set; /* keys it has set: a bit per row of policy_keys, those of [Match] excepted */
    unsigned line;
    bool reported; /* what is wrong with it was said */
} PolicyDraft;

typedef struct VariantDraft {
    char *name;
    bool daemon;
    char *policies, *workloads; /* words; NULL: all */
    char *off;                  /* words; NULL: none */
    SimKernel kernel;           /* [Kernel] and what the variant changes */
    unsigned line;
} VariantDraft;

typedef struct ExpectDraft {
    char *key, *value;
    SimOver over;
    unsigned line;
} ExpectDraft;

typedef struct ScenarioDraft {
    SimSpec *spec; /* [Scenario] is read into it */
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
/* Is 0: reading goes on, and finds what else is wrong. */
#define DRAFT_REFUSE(d, line, ...) (DRAFT_ERROR(d, line, __VA_ARGS__), 0)

void scenario_draft_done(ScenarioDraft *draft);

/* Whether a workload's section gave the key. */
bool scenario_draft_given(const WorkloadDraft *workload, const char *key);

/* Fills draft->spec, all but [Scenario], from the rest. Errors are in the report. Returns 0 or -ENOMEM. */
int scenario_resolve(ScenarioDraft *draft, const char *const *policy_dirs);

/* The policies of one variant: its own or those of `policy_dirs`. Returns 0 (errors may be in the report, *ret is
 * then NULL) or -ENOMEM. */
int scenario_policies(ScenarioDraft *draft, const VariantDraft *variant, const char *const *policy_dirs,
                      PolicySet **ret);

/* A path of the scenario, relative to its directory. Malloc'd; NULL when memory is out. */
char *scenario_path(const ScenarioDraft *draft, const char *path);

/* Calls `word` for each word of `text`, until it fails. Returns 0, what `word` returned, or -ENOMEM. */
int scenario_each_word(const char *text, int (*word)(void *userdata, const char *word), void *userdata);
