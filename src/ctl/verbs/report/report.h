/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verb report: report.c gets the steps of the daemon's history and sums them up, page.c draws them. */

#include "ctl/ctl.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_NODES_MAX 64U /* as many as the daemon manages */
/* Of a CPU: shares of less are those of rounding and of single ticks. */
#define REPORT_WANTED_MIN_PERMILLE 10.0

/* One workload over the whole period. */
typedef struct ReportWorkload {
    const char *name;
    json_object **rows;       /* for each step; NULL: absent, or not among the busiest */
    double run, waits, local; /* CPUs; fractions, negative when not known, or too little in every step */
    double nodes[REPORT_NODES_MAX]; /* CPUs */
    double on_nodes;                /* their sum; 0: too little in every step to be divided into shares */
} ReportWorkload;

typedef struct Report {
    json_object *steps, *moves;
    size_t n_steps;
    /* When each step begins and the last one ends, and the length of the whole, in seconds since the
     * beginning. Summed from the lengths of steps, whatever the clock did. */
    double *times, seconds;
    uint64_t begin_usec, end_usec;    /* CLOCK_REALTIME */
    uint32_t nodes[REPORT_NODES_MAX]; /* the operating system's numbers, ascending */
    size_t n_nodes;
    ReportWorkload *workloads; /* busiest first */
    size_t n_workloads, workloads_capacity;
    uint64_t n_homes, n_lends, moved_bytes, cpu_usec;
} Report;

/* Fills in the rest of a report that has its steps. */
CtlExit report_sum_up(Report *report);

void report_done(Report *report);

/* Mean CPUs that a workload used on one node in a step. */
double report_run(const Report *report, const ReportWorkload *workload, size_t step, uint32_t node);

/* What CLOCK_REALTIME said so many seconds after the beginning. It also runs while the machine is suspended, and it can
 * be set. */
uint64_t report_realtime_usec(const Report *report, double seconds);

/* Writes one self-contained page of HTML. `report` is a const Report. */
void report_write_page(FILE *out, void *report);
