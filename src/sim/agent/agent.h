/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The simulated daemon's parts share these; private to this room. */

#include "plan/memory/watch.h"
#include "plan/scan/stall.h"
#include "sim/model/engine.h"

/* A World never says 0 for an instant that was: its clock has run for a while when the scenario starts. */
#define AGENT_UPTIME_USEC (1000 * USEC_PER_SEC)

/* The counters of a thread as they were read last. */
typedef struct AgentThread {
    uint64_t run_nsec, wait_nsec, read_nsec;
    bool read;  /* once, at least */
    bool known; /* it is in the World, or was */
} AgentThread;

/* Of a process whose memory is sampled; see agent/scan.c. */
typedef struct AgentScan {
    MemoryWatch watch;
    MemoryRegions regions;
    Touches touches;
    uint64_t looked_usec;  /* when it was looked at last; 0: never */
    uint64_t *first_block; /* by region, among the blocks of all */
    uint64_t *at_page;     /* by region: what is accessed next of it */
    NodeIx *nodes;         /* of its blocks */
    bool *whole;           /* those that were moved, and are there with all their pages */
    bool *marked;          /* those that fault at the next access */
    uint64_t n_marked;
    uint32_t n_threads; /* of the family, that are in `touches` */
    bool phase;         /* as of the family */
} AgentScan;

/* An order to move memory. */
typedef struct AgentOrder {
    CpuMask to; /* NodeIx bitmap; NULL: none is under way */
    TaskKey subject;
    uint64_t group_id;
    uint64_t rate_bytes, reserve_bytes, moved_pages;
    uint64_t credit_bytes; /* of ranges: what the rate lets move now */
    uint32_t headroom_percent;
    bool stripe;
    PlanRange *ranges; /* NULL: all memory */
    size_t n_ranges;
} AgentOrder;

/* Of a process: looks at its memory. */
typedef struct AgentFamily {
    AgentOrder order;
    AgentScan *scan;    /* NULL: none */
    uint64_t due_usec;  /* of the next one */
    uint64_t cost_usec; /* CPU time of the last one */
    bool late;          /* one has begun that takes long */
} AgentFamily;

typedef struct AgentCpu {
    uint64_t busy_nsec, wait_nsec;
} AgentCpu;

/* Of a process that is being counted: its threads, and what they had done by then. */
typedef struct AgentCount {
    pid_t pid;
    uint64_t begun_usec;
    uint32_t threads[STALL_THREADS];
    uint64_t work_nsec[STALL_THREADS], run_nsec[STALL_THREADS];
    size_t n;
} AgentCount;

/* stall.c: folds in what has been counted; and begins to count others, 0 or -ENOMEM. */
void agent_counted(Engine *e, Agent *agent);
int agent_count(Engine *e, Agent *agent);

/* Memory under way goes on: what has been moved since this was called last. */
void agent_move(Engine *e, Agent *agent);
/* Takes an order. */
PlanOutcome agent_order(Engine *e, Agent *agent, const PlanAction *action);

/* Field 22 of the stat of its threads. */
uint64_t agent_start_ticks(const Family *family);

/* Process numbers are given out like the kernel does: a launcher, then its threads. */
static inline pid_t agent_pid(const Engine *e, uint32_t family)
{
    return (pid_t)(2 + e->families[family].first + family);
}

/* The family of a process number, or NULL. */
Family *agent_family(const Engine *e, pid_t pid);

static inline pid_t agent_tid(const Engine *e, uint32_t thread)
{
    const Family *family = &e->families[e->threads[thread].process];

    return agent_pid(e, e->threads[thread].process) + 1 + (pid_t)(thread - family->first);
}

/* scan.c: samples of one family. 0 or -ENOMEM. */
int agent_scan_new(Engine *e, const Family *family, AgentScan **ret);
AgentScan *agent_scan_free(AgentScan *scan);
/* Ends a round: what was marked and touched since the last one is in `touches`, located and folded. */
int agent_scan_round(Engine *e, AgentScan *scan, const Family *family, pid_t pid);
/* The next round begins: all memory is protected, and the window of the watch counted. */
void agent_scan_mark(Engine *e, AgentScan *scan, const Family *family);
/* Memory has moved of which it is not known which blocks it was. */
void agent_scan_place(const Engine *e, AgentScan *scan, const Family *family);
/* Where a block lies; NODE_NONE: there is none. */
NodeIx agent_scan_node(const AgentScan *scan, uint64_t address);
/* Moves one. Returns its pages. */
uint32_t agent_scan_move(Engine *e, AgentScan *scan, const Family *family, uint64_t address, NodeIx to);

/* watch.c: which processes are sampled, and what follows. 0 or -ENOMEM. */

/* After processes were found: whose memory is not to follow its home before it is known who uses it. */
void agent_watch_foresee(Engine *e, Agent *agent);
/* At the end of a tick. */
int agent_watch(Engine *e, Agent *agent, bool slow);

/* agent.c: tells of the plan in agent->plan whoever wants to know; `uses` of plan_follow_use(), else NULL. 0 or
 * -errno. */
int agent_tell(Engine *e, Agent *agent, const PlanLimits *limits, const PlanUse *uses, size_t n_uses);

/* Carries out the plan in agent->plan, and folds it back. */
int agent_carry_out(Engine *e, Agent *agent);
