/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON values for people: tables that pick columns by key, and single values with their unit. */

#include "ctl/ctl.h"

typedef enum ViewKind {
    VIEW_TEXT,     /* unchanged; "" shows as "-" */
    VIEW_LONG,     /* the same, cut if the terminal is too narrow */
    VIEW_SET,      /* CPUs or nodes, wrapped instead: if cut, it would read as another set */
    VIEW_HOME,     /* the same; if only observed, the home it would have, in brackets */
    VIEW_NUMBER,   /* an integer; a negative one means "none" and shows as "-" */
    VIEW_PERMILLE, /* as a percentage with one decimal */
    VIEW_SHARE,    /* the same; 0 means not known and shows as "-" */
    VIEW_CPUS,     /* permille of one CPU, as CPUs with two decimals */
    VIEW_BYTES,    /* with a binary unit */
    VIEW_SIZE,     /* the same; 0 means not known and shows as "-" */
    VIEW_SPAN,     /* microseconds, the two largest units; 0 shows as "-" */
    VIEW_BOOL,     /* yes or no */
    VIEW_MEMORY,   /* a list of {node, bytes}, as "0: 1.5 GiB, 1: 200 MiB" */
} ViewKind;

typedef struct ViewColumn {
    const char *title;
    const char *key;
    ViewKind kind;
} ViewColumn;

#define VIEW_COLUMNS_MAX 16U

/* A member as a string ("" when absent), a number (`fallback` when absent), a boolean (false) or a list (NULL). */
const char *view_string(json_object *object, const char *key);
int64_t view_number(json_object *object, const char *key, int64_t fallback);
bool view_bool(json_object *object, const char *key);
json_object *view_list(json_object *object, const char *key);
size_t view_length(json_object *list);

/* A member formatted for people, malloc'd; "-" when it is absent. NULL when out of memory. */
char *view_member(json_object *object, const char *key, ViewKind kind);

/* Prints a list of objects: as JSON if the options say so, else as a table of these columns. */
CtlExit view_print_list(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                        size_t n_columns);

/* Prints the table even if options->json is set. */
CtlExit view_print_table(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                         size_t n_columns);

/* Prints "  ... N in all" and `where` the others are found, if only `shown` of `all` stand above. */
void view_rest(size_t shown, int64_t all, const char *where);

/* Prints the "Memory" line from the keys memory..., and lines about stalls, interleaving and moves. Prints
 * nothing when memory was not measured. */
void view_memory_line(json_object *object);

/* If only observed: prints where it would be placed, how much of its memory would be local, and the estimated gain. */
void view_would_lines(json_object *object);

/* Prints the measured effect of the last change of home, if known. */
void view_gain_line(json_object *object);

/* Prints, from the keys use..., how the use of memory is observed and what that costs. */
void view_use_lines(json_object *object);

/* Prints the named counters that are not zero: "node-limit 12, budget 1". */
CtlExit view_counters(json_object *object, const char *title, const char *key);

/* Prints a "     Title: text" line with the title right-aligned, as systemctl status does, or indented text
 * if `title` is "". The text is made printable. */
void view_line(const char *title, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints text, made printable, in a colour (or NULL). `format` is not empty, and only a newline at its end
 * remains one. */
void view_say(const char *colour, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A growing text for sentences. `failed` records lack of memory. */
typedef struct ViewText {
    char *text;
    size_t len, capacity;
    bool failed;
} ViewText;

void view_text_done(ViewText *text);
void view_text_add(ViewText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
