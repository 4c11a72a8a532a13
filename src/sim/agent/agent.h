/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the parts of the simulated daemon; private to this room. */

#include "plan/memory/watch.h"
#include "plan/scan/stall.h"
#include "sim/model/engine.h"

/* In a World the time 0 means never, so its clock is already running when the scenario starts. */
#define AGENT_UPTIME_USEC (1000 * USEC_PER_SEC)

/* The counters of a thread at the last reading. */
typedef struct AgentThread {
    uint64_t run_nsec, wait_nsec, read_nsec;
    bool read;  /* read at least once */
    bool known; /* it is or was in the World */
} AgentThread;

/* A process whose memory is sampled; see agent/scan.c. */
typedef struct AgentScan {
    MemoryWatch watch;
    MemoryRegions regions;
    Touches touches;
    uint64_t looked_usec;  /* last look; 0: never */
    uint64_t *first_block; /* by region: index of its first block in the arrays of blocks */
    uint64_t *at_page;     /* by region: page that is accessed next */
    NodeIx *nodes;         /* by block */
    bool *whole;           /* by block: it was moved, and all its pages are together */
    bool *marked;          /* by block: it faults at the next access */
    uint64_t n_marked;
    uint32_t n_threads; /* threads of the family that are in `touches` */
    bool phase;         /* Family.phase at the last round */
} AgentScan;

/* A migration request. */
typedef struct AgentOrder {
    CpuMask to; /* NodeIx bitmap; NULL: no request in flight */
    TaskKey subject;
    uint64_t group_id;
    uint64_t rate_bytes, reserve_bytes, moved_pages;
    uint64_t credit_bytes; /* with ranges: bytes that the rate allows to move now */
    uint32_t headroom_percent;
    bool stripe;
    PlanRange *ranges; /* NULL: all memory */
    size_t n_ranges;
} AgentOrder;

/* The memory of a process: requests, samples and looks at where it lies. */
typedef struct AgentFamily {
    AgentOrder order;
    AgentScan *scan;    /* NULL: not sampled */
    uint64_t due_usec;  /* time of the next look */
    uint64_t cost_usec; /* CPU time of the last look */
    bool late;          /* a long look has begun */
} AgentFamily;

typedef struct AgentCpu {
    uint64_t busy_nsec, wait_nsec;
} AgentCpu;

/* A process being counted: its threads, and their work and run time at the start. */
typedef struct AgentCount {
    pid_t pid;
    uint64_t begun_usec;
    uint32_t threads[STALL_THREADS];
    uint64_t work_nsec[STALL_THREADS], run_nsec[STALL_THREADS];
    size_t n;
} AgentCount;

/* stall.c: agent_counted() folds in finished counts. agent_count() begins new ones; returns 0 or -ENOMEM. */
void agent_counted(Engine *e, Agent *agent);
int agent_count(Engine *e, Agent *agent);

/* Moves memory of requests in flight, as much as the time since the last call allows. */
void agent_move(Engine *e, Agent *agent);
/* Accepts a migration request. */
PlanOutcome agent_order(Engine *e, Agent *agent, const PlanAction *action);

/* Field 22 of stat of the family's threads. */
uint64_t agent_start_ticks(const Family *family);

/* PIDs are assigned as the kernel does: a launcher, then its threads. */
static inline pid_t agent_pid(const Engine *e, uint32_t family)
{
    return (pid_t)(2 + e->families[family].first + family);
}

/* The family of a PID, or NULL. */
Family *agent_family(const Engine *e, pid_t pid);

static inline pid_t agent_tid(const Engine *e, uint32_t thread)
{
    const Family *family = &e->families[e->threads[thread].process];

    return agent_pid(e, e->threads[thread].process) + 1 + (pid_t)(thread - family->first);
}

/* scan.c: samples of one family. Return 0 or -ENOMEM. */
int agent_scan_new(Engine *e, const Family *family, AgentScan **ret);
AgentScan *agent_scan_free(AgentScan *scan);
/* Ends a round: the samples since the last one are in `touches`, located and folded. */
int agent_scan_round(Engine *e, AgentScan *scan, const Family *family, pid_t pid);
/* Begins the next round: protects all memory, and counts the window of the watch. */
void agent_scan_mark(Engine *e, AgentScan *scan, Family *family);
/* Places all blocks anew after a move of unknown blocks. */
void agent_scan_place(const Engine *e, AgentScan *scan, const Family *family);
/* The node of a block; NODE_NONE: there is no such block. */
NodeIx agent_scan_node(const AgentScan *scan, uint64_t address);
/* Moves a block. Returns the number of pages moved. */
uint32_t agent_scan_move(Engine *e, AgentScan *scan, const Family *family, uint64_t address, NodeIx to);

/* watch.c: which processes are sampled, and what follows. Return 0 or -ENOMEM. */

/* After a discovery: marks processes whose memory must not follow their home until its users are known. */
void agent_watch_foresee(Engine *e, Agent *agent);
/* Runs at the end of a tick. */
int agent_watch(Engine *e, Agent *agent, bool slow);

/* agent.c: passes the plan in agent->plan to the plan hook; `uses` are those of plan_follow_use(), else NULL.
 * Returns 0 or -errno. */
int agent_tell(Engine *e, Agent *agent, const PlanLimits *limits, const PlanUse *uses, size_t n_uses);

/* Carries out the plan in agent->plan and commits the outcomes. */
int agent_carry_out(Engine *e, Agent *agent);
