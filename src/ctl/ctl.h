/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verbs of numaplacectl share: options, exit codes, error messages. */

#include "ctl/bus-json.h"
#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes, documented in numaplacectl(1). A function that returns another one than CTL_EXIT_OK has
 * reported the error on standard error. */
typedef enum CtlExit {
    CTL_EXIT_OK = 0,
    CTL_EXIT_FAILURE = 1,     /* something failed, `policy verify` found errors, an expectation failed */
    CTL_EXIT_USAGE = 2,       /* the command line is wrong; nothing was done */
    CTL_EXIT_NOT_RUNNING = 3, /* no daemon answers, as in systemctl */
    CTL_EXIT_NOT_FOUND = 4,   /* no such workload, process or policy */
    CTL_EXIT_NO_ANSWER = 5,   /* the daemon is there but does not answer */
    /* run, as in timeout(1) and env(1): */
    CTL_EXIT_RUN_FAILURE = 125,   /* run itself failed before it started the command */
    CTL_EXIT_RUN_CANNOT = 126,    /* the command was found but cannot be run */
    CTL_EXIT_RUN_NOT_FOUND = 127, /* the command was not found */
} CtlExit;

typedef enum CtlJson {
    CTL_JSON_OFF,
    CTL_JSON_PRETTY,
    CTL_JSON_SHORT,
} CtlJson;

#define CTL_POLICY_DIRS_MAX 8U /* --policy-dir=; the built-in search path has four */

/* The parsed command line. Strings are borrowed from argv. */
typedef struct CtlOptions {
    CtlJson json;
    const char *socket;
    bool legend;
    bool terminal;    /* standard output is a terminal: fit tables to it */
    bool clears;      /* the terminal knows the usual escape sequences */
    bool colour;      /* ... and colour is wanted */
    uint32_t columns; /* from $COLUMNS, or of the terminal before a pager; 0: not known */
    bool no_pager;
    bool all;
    bool follow;
    bool effective;
    uint32_t lines;
    bool lines_given;
    TopologyOptions topology;
    const char *root; /* where to look for policies and processes, "/" unless given */
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
    uint32_t seconds;     /* 0: the verb's default */
    uint64_t since_usec;  /* report: length of the period; 0: all there is */
    const char *html;     /* report: file to draw into, or NULL */
    bool sigpipe_ignored; /* at program start; `run` passes that on */
} CtlOptions;

/* Prints one line on standard error, "PROGRAM: ...", made printable, or {"error": "...", "exit": N} in JSON
 * mode. Returns `code`, which is CTL_EXIT_OK for a warning. */
CtlExit ctl_fail(CtlExit code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets PROGRAM for later messages, numaplacectl by default; borrowed. */
void ctl_fail_of(const char *program);

/* Sets whether later messages are JSON. */
void ctl_fail_in_json(bool yes);

/* From now on ctl_fail() reports and returns CTL_EXIT_RUN_FAILURE instead of the codes that other verbs use. */
void ctl_fail_as_run(void);

/* Sets whether something else uses the screen. Meanwhile only the last failure is kept; it is printed when
 * that ends. */
void ctl_fail_later(bool yes);

/* Discards the kept failure. */
void ctl_forget_failure(void);

/* ctl_fail() for lack of memory. */
CtlExit ctl_fail_oom(void);

/* Writes out standard output. Returns NULL, or why some of it was lost, now or earlier. */
const char *ctl_flush(void);

/* Replaces the file `path` with the output of `write`; a reader sees either the old or the new file, whole. Writes
 * into a pipe or device instead of replacing it, and into what /dev/stdout, /dev/stderr and /dev/fd/N name. */
CtlExit ctl_replace_file(const char *path, void (*write)(FILE *out, void *userdata), void *userdata);

/* Reads a whole file of at most `max` bytes into a malloc'd, NUL-terminated buffer. */
CtlExit ctl_read_file(const char *path, size_t max, char **ret, size_t *ret_len);

/* Prints a value as JSON and a newline, in the form that options->json selects. */
CtlExit ctl_print_json(const CtlOptions *options, json_object *value);

/* Adds `value` to an object or an array and takes its reference, also on failure. Returns 0 or -ENOMEM.
 * Either may be NULL because its constructor had no memory; that gives -ENOMEM too. */
int json_set(json_object *object, const char *key, json_object *value);
int json_append(json_object *array, json_object *value);

/* Adds an empty object or array to an object, or to an array if `key` is NULL. Returns it, borrowed, or NULL
 * when out of memory. */
json_object *json_add_object(json_object *parent, const char *key);
json_object *json_add_array(json_object *parent, const char *key);

/* Add null; a boolean; a number; a set as a list ("0-3,8"); a set of NodeIx as a list of operating-system
 * numbers (NULL is the empty set). Return 0 or -ENOMEM. */
int json_set_null(json_object *object, const char *key);
int json_set_bool(json_object *object, const char *key, bool value);
int json_set_number(json_object *object, const char *key, uint64_t value);
int json_set_set(json_object *object, const char *key, hwloc_const_bitmap_t set);
int json_set_nodes(json_object *object, const char *key, const Topology *topology,
                   hwloc_const_bitmap_t nodes);

/* Adds text, made valid UTF-8; NULL becomes JSON null. Returns 0 or -ENOMEM. */
int json_set_text(json_object *object, const char *key, const char *text);

/* The same for foreign text, escaped by utf8_escape(). */
int json_set_foreign(json_object *object, const char *key, const char *text);
