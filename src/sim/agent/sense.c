/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What probe would see: which processes a policy matches, and what their threads and the CPUs did in the last
 * tick. As in probe, a thread's first reading says nothing yet, and a thread's last CPU is read only for
 * holders of leases and, in turn, for waiting threads. Unlike in probe, nothing is ever unreadable, and
 * sleeping threads are read in each tick. */

#include "plan/group.h"
#include "plan/home/sharing.h"
#include "sim/agent/agent.h"
#include "world/load.h"

#include <stdio.h>
#include <string.h>

/* As in probe: threads whose last CPU is read in a tick, in addition to one per CPU; and the share of time
 * from which a thread counts as waiting, or running. Those of running threads are read on slow ticks only. */
#define LAST_CPUS_PER_TICK 32U
#define LAST_CPU_PERMILLE  50U

#define TICKS_PER_SEC 100U /* USER_HZ, the unit of start times */
#define UID           1000U

Family *agent_family(const Engine *e, pid_t pid)
{
    uint32_t at = (uint32_t)LOWER_BOUND(i, e->n_families, agent_pid(e, (uint32_t)i) < pid);

    return at < e->n_families && agent_pid(e, at) == pid ? &e->families[at] : NULL;
}

/*
 * Processes and threads
 */

uint64_t agent_start_ticks(const Family *family)
{
    return (AGENT_UPTIME_USEC * NSEC_PER_USEC + family->start_nsec) / (NSEC_PER_SEC / TICKS_PER_SEC);
}

/* The innermost component of a cgroup path with one of two suffixes; "" if there is none. */
static void component(const char *path, const char *suffix, const char *other, char *buf, size_t size)
{
    buf[0] = '\0';
    while (*path) {
        size_t n = strcspn(path, "/");

        if ((has_suffix(path, n, suffix) || has_suffix(path, n, other)) && n < size)
            (void)snprintf(buf, size, "%.*s", (int)n, path);
        path += n + (path[n] == '/');
    }
}

static uint32_t cpu_permille(Engine *e, Family *family)
{
    const SimWorkload *w = &e->spec->workloads[family->workload];
    uint64_t run = 0, nsec = e->now_nsec - family->seen_nsec, before = family->seen_run_nsec;

    for (uint32_t i = 0; i < w->n_threads; i++)
        run += e->threads[family->first + i].run_nsec;
    family->seen_run_nsec = run;
    family->seen_nsec = e->now_nsec;
    return nsec > 0 ? (uint32_t)((run - before) / (nsec / 1000 + 1)) : 0;
}

static void refresh(Engine *e, Family *family, Process *process)
{
    process->rss_bytes = family->rss_pages * ENGINE_PAGE_BYTES;
    process->n_threads =
        family->n_alive + 1 - (e->spec->workloads[family->workload].n_threads - family->n_forked);
    process->cpu_permille = cpu_permille(e, family);
}

/* Adds a process to the World if a policy wants it. */
static int meet(Engine *e, Agent *agent, uint32_t index)
{
    Family *family = &e->families[index];
    const SimWorkload *w = &e->spec->workloads[family->workload];
    InternPool *pool = agent->world->pool;
    char unit[256], slice[256];
    PolicySubject subject;
    size_t policy = SIZE_MAX;
    int r;
    Process process = {
        .pid = agent_pid(e, index),
        .parent = 1,
        .start_ticks = agent_start_ticks(family),
        .started_usec = MIN(AGENT_UPTIME_USEC + family->start_nsec / NSEC_PER_USEC, agent->world->now_usec),
        .first_seen_usec = agent->world->now_usec,
        .uid = UID,
        .comm = intern_string(pool, w->comm),
        .cgroup = intern_string(pool, w->cgroup),
        .cpuset = intern_mask(pool, family->cpuset),
        .workload = WORKLOAD_NONE,
        .group = GROUP_NONE,
    };

    refresh(e, family, &process);
    component(w->cgroup, ".service", ".scope", unit, sizeof(unit));
    component(w->cgroup, ".slice", ".slice", slice, sizeof(slice));
    process.unit = *unit ? intern_string(pool, unit) : NULL;
    process.slice = *slice ? intern_string(pool, slice) : NULL;
    if (!process.comm || !process.cgroup || !process.cpuset || (*unit && !process.unit) ||
        (*slice && !process.slice))
        return -ENOMEM;
    subject = (PolicySubject){
        .unit = process.unit,
        .slice = process.slice,
        .cgroup = process.cgroup,
        .comm = process.comm,
        .uid = UID,
        .memory_bytes = process.rss_bytes,
        .cpu_permille = process.cpu_permille,
        .n_threads = process.n_threads,
    };
    if (policy_match(e->variant->policies, &subject, &policy) == POLICY_VERDICT_NO || policy == SIZE_MAX ||
        e->variant->policies->policies[policy]->mode == POLICY_MODE_NONE)
        return 0;
    r = group_assign(agent->world, e->variant->policies, &process, policy);
    if (r < 0)
        return r;
    r = world_add_process(agent->world, &process);
    return r < 0 ? r : 0;
}

/* A mask narrower than the cpuset that the daemon did not set is foreign. */
static TaskHands hands_of(const Family *family, const Thread *thread)
{
    return thread->given || hwloc_bitmap_isincluded(family->cpuset, thread->allowed) ? TASK_HANDS_FREE
                                                                                     : TASK_HANDS_FOREIGN;
}

static int meet_thread(Engine *e, Agent *agent, int32_t process, uint32_t index)
{
    const Thread *thread = &e->threads[index];
    const Family *family = &e->families[thread->process];
    Task task = {
        .tid = agent_tid(e, index),
        .process = {process},
        .start_ticks = agent_start_ticks(family),
        .reader = index,
        .hands = (uint8_t)hands_of(family, thread),
        .fresh = true,
        .last_cpu = {thread->cpu},
        .allowed = intern_mask(agent->world->pool, thread->allowed),
        .lease = -1,
    };
    int r;

    if (!task.allowed)
        return -ENOMEM;
    (void)snprintf(task.comm, sizeof(task.comm), "%s", e->spec->workloads[family->workload].comm);
    r = world_add_task(agent->world, &task);
    return r < 0 && r != -EEXIST ? r : 0;
}

static int meet_threads(Engine *e, Agent *agent, const Family *family, pid_t pid)
{
    World *world = agent->world;
    Process *process = world_process(world, pid);
    int r = 0;

    if (!process || process->gone)
        return 0;
    for (uint32_t i = 0; r == 0 && i < family->n_forked; i++) {
        uint32_t index = family->first + i;

        if (e->threads[index].state != THREAD_STATE_ENDED && !agent->threads[index].known) {
            agent->threads[index].known = true;
            r = meet_thread(e, agent, (int32_t)(process - world->processes), index);
        }
    }
    return r;
}

int sense_discover(Engine *e, Agent *agent)
{
    World *world = agent->world;
    int r = 0;

    world->now_usec = AGENT_UPTIME_USEC + e->now_nsec / NSEC_PER_USEC;
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        cpu_account(e, i);
    for (uint32_t i = 0; i < e->n_families; i++) {
        Family *family = &e->families[i];
        pid_t pid = agent_pid(e, i);
        Process *process;

        if (family->n_forked == 0)
            continue;
        process = world_process(world, pid);
        if (family->n_alive == 0) {
            if (process)
                process->gone = true;
            continue;
        }
        if (process)
            refresh(e, family, process);
        else
            r = meet(e, agent, i);
        if (r == 0)
            r = meet_threads(e, agent, family, pid);
        if (r < 0)
            return r;
    }
    r = world_compact(world);
    if (r == 0)
        r = sharing_group(world, e->variant->policies);
    return r < 0 ? r : sense_memory(e, agent, false);
}

/*
 * Loads
 */

/* A reading of `nsec` with a small error, unless it is 0. */
static uint64_t noisy(Engine *e, uint64_t nsec, uint64_t interval_nsec)
{
    uint64_t most = interval_nsec / 1000 * e->constants->noise_permille, off;

    if (nsec == 0 || most == 0)
        return nsec;
    off = random_next(&e->random_noise) % (2 * most + 1);
    return nsec + off > most ? nsec + off - most : 0;
}

static void sample_thread(Engine *e, Agent *agent, Task *task)
{
    const Thread *thread = &e->threads[task->reader];
    AgentThread *seen = &agent->threads[task->reader];
    uint64_t run = thread->run_nsec, wait = thread->wait_nsec, interval = e->now_nsec - seen->read_nsec;

    if (thread->state == THREAD_STATE_ENDED) {
        task->gone = true;
        return;
    }
    if (thread->state == THREAD_STATE_QUEUED)
        wait += e->now_nsec - thread->queued_nsec;
    if (seen->read) {
        /* One draw after the other, because compilers evaluate arguments in different orders. */
        uint64_t waited = noisy(e, wait - seen->wait_nsec, interval);

        load_task(task, noisy(e, run - seen->run_nsec, interval), waited, interval);
        task->fresh = false;
    }
    *seen = (AgentThread){
        .run_nsec = run, .wait_nsec = wait, .read_nsec = e->now_nsec, .read = true, .known = true};
}

static void read_last_cpu(const Engine *e, Task *task)
{
    task->last_cpu.i = e->threads[task->reader].cpu;
}

/* Reads the last CPUs of waiting or running threads, as many as a tick may, from where the last tick stopped. */
static void sample_round(const Engine *e, World *world, bool runners, size_t *cursor)
{
    size_t budget = LAST_CPUS_PER_TICK + e->topology->n_cpus, i = 0;

    for (; i < world->n_tasks && budget > 0; i++) {
        Task *task = &world->tasks[(*cursor + i) % world->n_tasks];

        if (task->gone || task->lease >= 0 || (runners && task->fresh) ||
            (runners ? task->run_permille : task->wait_permille) < LAST_CPU_PERMILLE)
            continue;
        read_last_cpu(e, task);
        budget--;
    }
    *cursor = world->n_tasks > 0 ? (*cursor + i) % world->n_tasks : 0;
}

static void sample_last_cpus(const Engine *e, Agent *agent, bool looked)
{
    World *world = agent->world;

    for (size_t l = 0; l < world->n_leases; l++) {
        Task *task = world_task(world, world->leases[l].task);

        if (task && !task->gone)
            read_last_cpu(e, task);
    }
    sample_round(e, world, false, &agent->stat_cursor);
    if (looked)
        sample_round(e, world, true, &agent->runner_cursor);
}

int sense_sample(Engine *e, Agent *agent, bool looked)
{
    World *world = agent->world;
    uint64_t interval = e->now_nsec - agent->sampled_nsec;

    world->tick++;
    world->now_usec = AGENT_UPTIME_USEC + e->now_nsec / NSEC_PER_USEC;
    world->interval_usec = interval / NSEC_PER_USEC;
    agent->sampled_nsec = e->now_nsec;
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++) {
        AgentCpu *seen = &agent->cpus[i];
        const Cpu *cpu = &e->cpus[i];
        uint64_t waited;

        if (!cpu->present)
            continue;
        cpu_account(e, i);
        waited = noisy(e, cpu->wait_nsec - seen->wait_nsec, interval);
        load_cpu(&world->cpus[i], world->now_usec, noisy(e, cpu->busy_nsec - seen->busy_nsec, interval),
                 waited, true, interval, world->idle_permille);
        *seen = (AgentCpu){.busy_nsec = cpu->busy_nsec, .wait_nsec = cpu->wait_nsec};
    }
    for (size_t i = 0; i < world->n_tasks; i++)
        if (!world->tasks[i].gone)
            sample_thread(e, agent, &world->tasks[i]);
    sample_last_cpus(e, agent, looked);
    world_sum(world);
    load_groups(world);
    load_nodes(world);
    return 0;
}
