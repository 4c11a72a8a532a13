/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verbs of numaplacectl share: options, exit codes, saying what went wrong. */

#include "ctl/bus-json.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes, documented in numaplacectl(1). A function that returns one has said on standard error what went wrong
 * when it is not CTL_EXIT_OK. */
typedef enum CtlExit {
    CTL_EXIT_OK = 0,
    CTL_EXIT_FAILURE = 1, /* something did not work, `policy verify` found errors, an expectation failed */
    CTL_EXIT_USAGE = 2,   /* the command line is wrong; nothing was done */
    CTL_EXIT_NOT_RUNNING = 3, /* no daemon answers, as systemctl has it */
    CTL_EXIT_NOT_FOUND = 4,   /* no such workload, process or policy */
    CTL_EXIT_NO_ANSWER = 5,   /* the daemon is there and does not answer */
    /* run, as timeout(1) and env(1) have it: */
    CTL_EXIT_RUN_FAILURE = 125,   /* it failed itself, before the command was started */
    CTL_EXIT_RUN_CANNOT = 126,    /* the command was found and cannot be run */
    CTL_EXIT_RUN_NOT_FOUND = 127, /* the command was not found */
} CtlExit;

typedef enum CtlJson {
    CTL_JSON_OFF,
    CTL_JSON_PRETTY,
    CTL_JSON_SHORT,
} CtlJson;

#define CTL_POLICY_DIRS_MAX 8U /* --policy-dir=; the built-in search path has three */

/* Everything the command line says. Strings are borrowed from argv. */
typedef struct CtlOptions {
    CtlJson json;
    const char *socket;
    bool legend;
    bool terminal;    /* standard output is one: tables are made to fit */
    bool clears;      /* it knows the usual sequences */
    bool colour;      /* ... and wants colour */
    uint32_t columns; /* as wide as $COLUMNS says it is, or it was before a pager; 0: not known */
    bool no_pager;
    bool all;
    bool follow;
    bool effective;
    uint32_t lines;
    bool lines_given;
    TopologyOptions topology;
    const char *root; /* where policies and processes are looked for, "/" unless given */
    const char *policy_dirs[CTL_POLICY_DIRS_MAX + 1]; /* NULL-terminated; empty: the built-in search path */
    size_t n_policy_dirs;
    uint32_t seeds;     /* 0: as the scenario says */
    const char *plot;   /* file to draw into, or NULL */
    const char *record; /* simulate: file to write plans into, or NULL */
    const char *output; /* file to replace, or NULL */
    const char *policy; /* run: its name, or NULL */
    bool no_daemon;
    bool runtime;
    bool print_policy;
    bool once;
    bool watch;
    uint32_t seconds;     /* 0: as the verb likes */
    uint64_t since_usec;  /* report: of so long; 0: all there is */
    const char *html;     /* report: file to draw into, or NULL */
    bool sigpipe_ignored; /* when this program was started: what `run` hands on */
} CtlOptions;

/* One verb. `argv` holds its arguments only. */
typedef CtlExit (*CtlVerb)(const CtlOptions *options, int argc, char **argv);

CtlExit verb_status(const CtlOptions *options, int argc, char **argv);
CtlExit verb_topology(const CtlOptions *options, int argc, char **argv);
CtlExit verb_workloads(const CtlOptions *options, int argc, char **argv);
CtlExit verb_show(const CtlOptions *options, int argc, char **argv);
CtlExit verb_tasks(const CtlOptions *options, int argc, char **argv);
CtlExit verb_explain(const CtlOptions *options, int argc, char **argv);
CtlExit verb_moves(const CtlOptions *options, int argc, char **argv);
CtlExit verb_report(const CtlOptions *options, int argc, char **argv);
CtlExit verb_metrics(const CtlOptions *options, int argc, char **argv);
CtlExit verb_diagnose(const CtlOptions *options, int argc, char **argv);
CtlExit verb_top(const CtlOptions *options, int argc, char **argv);
CtlExit verb_enable(const CtlOptions *options, int argc, char **argv);
CtlExit verb_disable(const CtlOptions *options, int argc, char **argv);
CtlExit verb_policy_list(const CtlOptions *options, int argc, char **argv);
CtlExit verb_policy_cat(const CtlOptions *options, int argc, char **argv);
CtlExit verb_policy_verify(const CtlOptions *options, int argc, char **argv);
CtlExit verb_policy_match(const CtlOptions *options, int argc, char **argv);
CtlExit verb_pause(const CtlOptions *options, int argc, char **argv);
CtlExit verb_resume(const CtlOptions *options, int argc, char **argv);
CtlExit verb_release(const CtlOptions *options, int argc, char **argv);
CtlExit verb_replay(const CtlOptions *options, int argc, char **argv);
CtlExit verb_simulate(const CtlOptions *options, int argc, char **argv);
CtlExit verb_run(const CtlOptions *options, int argc, char **argv);
CtlExit verb_reload(const CtlOptions *options, int argc, char **argv);

/* Says one line on standard error, "PROGRAM: ...", made printable; {"error": "...", "exit": N} when it is to be
 * JSON. Returns `code`, which is CTL_EXIT_OK for a warning. */
CtlExit ctl_fail(CtlExit code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The program from now on, which is numaplacectl until then; borrowed. */
void ctl_fail_of(const char *program);

/* Which of the two from now on. */
void ctl_fail_in_json(bool yes);

/* From now on it says and returns CTL_EXIT_RUN_FAILURE for all that other verbs have codes of their own for. */
void ctl_fail_as_run(void);

/* Whether the screen is somebody else's now: what fails is then kept, the last of it, and said at the end of that. */
void ctl_fail_later(bool yes);

/* What was kept is of no interest. */
void ctl_forget_failure(void);

/* As ctl_fail(), for memory that is out. */
CtlExit ctl_fail_oom(void);

/* Puts what `write` writes in place of the file `path`: who reads it meanwhile sees the old one or the new one, whole.
 * A pipe or a device stays and is written to, and so is what /dev/stdout, /dev/stderr and /dev/fd/N name. */
CtlExit ctl_replace_file(const char *path, void (*write)(FILE *out, void *userdata), void *userdata);

/* Reads a whole file of at most `max` bytes into a malloc'd, terminated buffer. */
CtlExit ctl_read_file(const char *path, size_t max, char **ret, size_t *ret_len);

/* Writes a value as JSON and a newline, in the form options->json says. */
CtlExit ctl_print_json(const CtlOptions *options, json_object *value);

/* Adds `value` (the reference is taken, also on failure) to an object or an array. Returns 0 or -ENOMEM, which is also
 * what NULL means, for either: its constructor had no memory. */
int json_set(json_object *object, const char *key, json_object *value);
int json_append(json_object *array, json_object *value);

/* Adds an empty object or array to an object, or to an array, where `key` is NULL. Returns it, borrowed, or NULL when
 * memory is out. */
json_object *json_add_object(json_object *parent, const char *key);
json_object *json_add_array(json_object *parent, const char *key);

/* Adds null; a boolean; a number; a set as a list ("0-3,8"); a set of NodeIx as a list of operating-system numbers,
 * NULL being the empty one. Return 0 or -ENOMEM. */
int json_set_null(json_object *object, const char *key);
int json_set_bool(json_object *object, const char *key, bool value);
int json_set_number(json_object *object, const char *key, uint64_t value);
int json_set_set(json_object *object, const char *key, hwloc_const_bitmap_t set);
int json_set_nodes(json_object *object, const char *key, const Topology *topology,
                   hwloc_const_bitmap_t nodes);

/* Adds text, made valid UTF-8; NULL becomes JSON's null. Returns 0 or -ENOMEM. */
int json_set_text(json_object *object, const char *key, const char *text);

/* The same of foreign text, as utf8_escape() has it. */
int json_set_foreign(json_object *object, const char *key, const char *text);
