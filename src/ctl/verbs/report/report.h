/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verb report: report.c asks the daemon for the steps of its history and sums them up, page.c draws them. */

#include "ctl/ctl.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_NODES_MAX 64U /* as many as the daemon manages */

/* One workload over the whole time. */
typedef struct ReportWorkload {
    const char *name;
    json_object **rows;       /* of each step; NULL: it was not there, or not among those that ran most */
    double run, waits, local; /* CPUs; shares of one, local negative when it is not known */
    double nodes[REPORT_NODES_MAX]; /* CPUs */
} ReportWorkload;

typedef struct Report {
    json_object *steps, *moves;
    size_t n_steps;
    /* When each step begins and the next one does, and all of it, in seconds since the begin: by their length, whatever
     * the clock did. */
    double *times, seconds;
    uint64_t begin_usec, end_usec;    /* CLOCK_REALTIME */
    uint32_t nodes[REPORT_NODES_MAX]; /* the operating system's numbers, ascending */
    size_t n_nodes;
    ReportWorkload *workloads; /* those that ran most first */
    size_t n_workloads, workloads_capacity;
    uint64_t n_homes, n_lends, moved_bytes, cpu_usec;
} Report;

/* What a workload ran on one node in a step, in CPUs. */
double report_run(const Report *report, const ReportWorkload *workload, size_t step, uint32_t node);

/* One page of HTML that needs nothing else. `report` is a const Report. */
void report_write_page(FILE *out, void *report);
