/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From JSON values to what a person reads: tables that pick columns by key, and single values with their unit. */

#include "ctl/ctl.h"

typedef enum ViewKind {
    VIEW_TEXT,     /* as it is; "" shows as "-" */
    VIEW_LONG,     /* the same, cut where a terminal is too narrow */
    VIEW_SET,      /* CPUs or nodes, broken into lines there: cut, it would read as another set */
    VIEW_HOME,     /* the same; in brackets what would be, when it is only observed */
    VIEW_NUMBER,   /* an integer; a negative one means "none" and shows as "-" */
    VIEW_PERMILLE, /* as percent with one digit */
    VIEW_SHARE,    /* the same; 0 means that it is not known, and shows as "-" */
    VIEW_CPUS,     /* permille of one CPU, as CPUs with two digits */
    VIEW_BYTES,    /* with a binary unit */
    VIEW_SIZE,     /* the same; 0 means that it is not known, and shows as "-" */
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

/* A member as a string, "" when it is absent; as a number, `fallback` when it is absent; as a list, NULL likewise. */
const char *view_string(json_object *object, const char *key);
int64_t view_number(json_object *object, const char *key, int64_t fallback);
bool view_bool(json_object *object, const char *key);
json_object *view_list(json_object *object, const char *key);
size_t view_length(json_object *list);

/* A member as a person reads it, malloc'd; "-" when it is absent. NULL when memory is out. */
char *view_member(json_object *object, const char *key, ViewKind kind);

/* Writes a list of objects: as JSON when the options say so, else as a table of these columns. */
CtlExit view_print_list(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                        size_t n_columns);

/* The same table, whatever options->json says. */
CtlExit view_print_table(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                         size_t n_columns);

/* Writes the line "Memory" of what has the keys memory...; nothing when it was not looked at. */
void view_memory_line(json_object *object);

/* Where it would be, and how much of its memory would be where it runs, of what is only observed. */
void view_would_lines(json_object *object);

/* What the last change of its home was worth, where that is known. */
void view_gain_line(json_object *object);

/* Who uses which memory, and by which evidence that is found out, from the keys use... */
void view_use_lines(json_object *object);

/* Named counters that are not zero: "node-limit 12, budget 1". */
CtlExit view_counters(json_object *object, const char *title, const char *key);

/* Writes a "     Title: text" line, titles right-aligned as systemctl status has them, or indented text when title
 * is "". The text is made printable. */
void view_line(const char *title, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes text made printable, in a colour (or NULL). A newline is one where it ends `format`, which is not empty. */
void view_say(const char *colour, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A growing text for sentences; out of memory is remembered. */
typedef struct ViewText {
    char *text;
    size_t len, capacity;
    bool failed;
} ViewText;

void view_text_done(ViewText *text);
void view_text_add(ViewText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
