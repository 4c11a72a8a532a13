/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Draws what `top` shows, from a snapshot and the user's choices. Pure. */

#include "ctl/top/frame.h"
#include "ctl/top/snapshot.h"

#define TOP_FILTER_SIZE 32U

typedef enum TopSort {
    TOP_SORT_POLICY, /* the order in which policies are tried */
    TOP_SORT_RUN,
    TOP_SORT_WAIT,
    TOP_SORT_MEMORY,
    TOP_SORT_LENT,
    TOP_SORT_NAME,
    TOP_SORTS,
} TopSort;

typedef struct TopChoice {
    TopSort sort;
    char filter[TOP_FILTER_SIZE]; /* part of a name; "": all */
    bool filtering;               /* the filter is being typed */
    bool frozen, help;
    bool once;         /* all of it and no keys; rows as top_rows() says */
    bool whole;        /* and nothing cut; columns as top_columns() says */
    uint32_t selected; /* among the lines of workloads */
    uint32_t first;    /* the first of them, or of `lines`, on screen; kept by top_draw() */
    uint32_t back_sec; /* age of the snapshot; 0: now */
    bool ended;        /* the record has no more snapshots */
    /* Shown instead: threads of one workload, why it is placed as it is, or plans of a record. NULL: none. */
    char *const *lines;
    uint32_t n_lines;
    const char *title;
} TopChoice;

/* Lines needed to show everything. */
unsigned top_rows(const TopSnapshot *snapshot);

/* Columns that are enough to show everything. */
unsigned top_columns(const TopSnapshot *snapshot);

/* Draws a frame. Corrects choices that are out of range. Returns 0 or -ENOMEM. */
int top_draw(const TopSnapshot *snapshot, TopChoice *choice, unsigned rows, unsigned columns, Frame *ret);

/* The workload of the selected line; NULL: none. */
const TopWorkload *top_selected(const TopSnapshot *snapshot, const TopChoice *choice);
