/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What probe would know about memory: where that of each process was at the last look, and how much the nodes
 * have free.
 *
 * A look is exact, but looks are rare, and rarer the more there is to read. As in probe, a process is read
 * when it is first seen, then each time its age has doubled, and later every ten seconds or less often. One
 * discovery spends only a few milliseconds on looks; the result of a long one arrives at the next discovery.
 * Processes never read yet are tried in every tick. */

#include "plan/memory/follow.h"
#include "sim/agent/agent.h"

#include <math.h>
#include <string.h>

/* Cost of reading numa_maps: 3 ms for 256 MiB in small pages, and opening the files. */
#define LOOK_NSEC_PER_PAGE 46U
#define LOOK_NSEC          50000U

/* As in probe/memory/residency.h and probe/memory/residency.c. */
#define YOUNG_USEC    900000U
#define OLD_USEC      10000000U
#define SHARE         1000U
#define YOUNG_SHARE   100U
#define PASS_NSEC     5000000U
#define CATCH_UP_NSEC 1000000U
#define WAIT_NSEC     5000000U
#define LATE_MAX      4U

typedef struct Pass {
    Engine *e;
    Agent *agent;
    double roots; /* sum of the square roots of each process's cost */
    uint64_t spent_nsec;
    uint32_t n_late;
    bool first; /* only processes never read before */
} Pass;

static uint64_t add_region(const Engine *e, int32_t region, uint64_t *bytes)
{
    const uint32_t *pages = memory_pages(e, region);
    uint64_t n = 0;

    for (uint32_t i = 0; i < e->n_nodes; i++) {
        bytes[i] += (uint64_t)pages[i] * ENGINE_PAGE_BYTES;
        n += pages[i];
    }
    return n;
}

/* Adds a process's memory by node. Returns its pages. */
static uint64_t add_family(const Engine *e, const Family *family, uint64_t *bytes)
{
    uint64_t n = 0;
    int32_t region;

    for (uint32_t i = 0; (region = memory_region_at(e, family, i)) >= 0; i++)
        n += add_region(e, region, bytes);
    return n;
}

static uint64_t wait_usec(const Pass *pass, uint64_t age_usec, uint64_t cost_usec)
{
    double wait = sqrt((double)cost_usec) * pass->roots * SHARE;

    if (age_usec < OLD_USEC)
        return MAX(MAX(age_usec, (uint64_t)YOUNG_USEC), cost_usec * YOUNG_SHARE);
    return MAX((uint64_t)OLD_USEC, (uint64_t)wait);
}

/* Reads a process, or gets the result of a long look. A process without memory in the scenario has no known
 * location. */
static int look(Pass *pass, Process *process, AgentFamily *seen)
{
    const World *world = pass->agent->world;
    uint64_t *bytes = pass->agent->node_bytes, now = world->now_usec, n_pages, nsec;

    memset(bytes, 0, pass->e->n_nodes * sizeof(*bytes));
    n_pages = add_family(pass->e, agent_family(pass->e, process->pid), bytes);
    nsec = LOOK_NSEC + LOOK_NSEC_PER_PAGE * n_pages;
    if (nsec > WAIT_NSEC && !seen->late) {
        seen->late = true;
        pass->n_late++;
        return 0;
    }
    seen->late = false;
    pass->spent_nsec += nsec;
    pass->roots -= sqrt((double)seen->cost_usec);
    seen->cost_usec = nsec / NSEC_PER_USEC;
    pass->roots += sqrt((double)seen->cost_usec);
    seen->due_usec = now + wait_usec(pass, now - process->first_seen_usec, seen->cost_usec);
    return n_pages > 0 ? world_set_process_memory(world, process, bytes, now) : 0;
}

/* A machine described without memory sizes has enough. */
static uint64_t free_bytes(const Topology *topology, uint32_t node, uint64_t used)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        all += topology->nodes[i].memory_bytes;
    all = all > 0 ? topology->nodes[node].memory_bytes : WORLD_MEMORY_MAX;
    return MIN(all - MIN(all, used), WORLD_MEMORY_MAX);
}

static void look_at_nodes(const Engine *e, Agent *agent)
{
    memset(agent->node_bytes, 0, e->n_nodes * sizeof(*agent->node_bytes));
    for (uint32_t i = 0; i < e->n_families; i++)
        if (e->families[i].n_alive > 0)
            (void)add_family(e, &e->families[i], agent->node_bytes);
    for (uint32_t i = 0; i < e->n_nodes; i++) {
        agent->world->nodes[i].free_bytes = free_bytes(e->topology, i, agent->node_bytes[i]);
        agent->world->nodes[i].free_known = true;
    }
}

static AgentFamily *seen_of(const Pass *pass, const Process *process)
{
    return &pass->agent->families[agent_family(pass->e, process->pid) - pass->e->families];
}

/* Reads processes in turn, starting after the last one read. */
static int look_at_processes(Pass *pass)
{
    World *world = pass->agent->world;
    size_t first = 0;
    int r = 0;

    while (first < world->n_processes && world->processes[first].pid <= pass->agent->looked_at)
        first++;
    for (size_t i = 0; i < world->n_processes && r == 0; i++) {
        Process *process = &world->processes[(first + i) % world->n_processes];

        if (seen_of(pass, process)->due_usec > (pass->first ? 0 : world->now_usec) &&
            (pass->first || !follow_wants_look(world, process)))
            continue;
        process->memory_awaited = seen_of(pass, process)->due_usec == 0;
        if (pass->spent_nsec >= (pass->first ? CATCH_UP_NSEC : PASS_NSEC) || pass->n_late >= LATE_MAX)
            continue;
        r = look(pass, process, seen_of(pass, process));
        process->memory_awaited = seen_of(pass, process)->due_usec == 0;
        pass->agent->looked_at = process->pid;
    }
    return r;
}

int sense_memory(Engine *e, Agent *agent, bool first)
{
    Pass pass = {.e = e, .agent = agent, .first = first};

    if (e->n_nodes < 2 || agent->world->n_processes == 0)
        return 0;
    if (!first)
        look_at_nodes(e, agent);
    for (size_t i = 0; i < agent->world->n_processes; i++)
        pass.roots += sqrt((double)seen_of(&pass, &agent->world->processes[i])->cost_usec);
    return look_at_processes(&pass);
}
