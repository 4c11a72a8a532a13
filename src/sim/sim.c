/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The event loop: takes the earliest event, calls its handler, and then lets the affected CPUs choose a
 * thread. At every tick it runs the daemon, whose plan_ functions are the real ones.
 *
 * What the model leaves out, and so cannot show:
 * - Caches are modelled as time lost when a thread moves, bounded by how long the thread has run where it
 *   was. There is no sharing, no conflict and no prefetching. Memory accesses are spread evenly over a
 *   region.
 * - Load is the number of runnable threads. There are no decaying averages, priorities, groups with shares or
 *   quotas, classes other than the fair one, frequencies, thermal limits or unequal CPUs.
 * - The kernel rotates an odd thread among equally loaded CPUs; here the thread stays. The kernel's domains
 *   overlap on machines with more than two distances; here a level compares single nodes.
 * - Interrupts, system calls and the daemon itself use no CPU time. Where the daemon needs much, as in an
 *   emulated guest, a workload of the scenario stands for it. The time to move a page is charged to the
 *   thread that touches it.
 * - Memory never runs out, is never swapped, and has no huge pages. prefer.c and scan.c list what is missing
 *   from the kernel's NUMA balancing.
 * - Threads use no locks and do no I/O. Messages are never lost, and never queue for longer than their receiver
 *   takes.
 * - Processes share no memory with each other.
 * - Everything the daemon asks for is permitted, nothing it reads fails, and its ticks come on time. */

#include "base/parse.h"
#include "sim/model/engine.h"

#include <inttypes.h>

static int sentence(char **ret, int r, const char *text, uint64_t number)
{
    *ret = format_text("%s%" PRIu64, text, number);
    return r;
}

/* Passes accesses on to the kernel's scan and to the daemon's. */
static void watch(Engine *e, Thread *thread, int32_t region, uint32_t node, uint64_t n_accesses)
{
    if (e->kernel->numa_balancing)
        scan_accessed(e, thread, region, node, n_accesses);
    if (e->agent)
        agent_accessed(e, thread, region, n_accesses);
}

static int tick(Engine *e)
{
    SimTick tick = {0};
    int r = 0;

    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        cpu_account(e, i);
    if (e->agent)
        r = agent_tick(e, e->agent, &tick);
    if (r == 0)
        r = picture_tick(e, &tick);
    if (r == 0 && e->hooks && e->hooks->progress &&
        !e->hooks->progress(e->hooks->userdata, e->now_nsec / NSEC_PER_USEC, e->spec->duration_usec))
        r = -ECANCELED;
    heap_set(&e->heap, e->item_tick, e->now_nsec + e->constants->fast_tick_usec * NSEC_PER_USEC);
    return r;
}

static int handle(Engine *e, uint32_t item)
{
    if (item < e->item_thread)
        dispatch_event(e, item);
    else if (item < e->item_family)
        thread_timer(e, item - e->item_thread);
    else if (item < e->item_balance)
        fork_event(e, item - e->item_family);
    else if (item < e->item_scan)
        balance_event(e, item - e->item_balance);
    else if (item < e->item_memory)
        scan_event(e, item - e->item_scan);
    else if (item < e->item_tick)
        memory_event(e);
    else
        return tick(e);
    return 0;
}

static int run(Engine *e, char **ret_error)
{
    /* Runs until all threads have ended or the time is up. */
    while (e->n_alive > 0) {
        uint32_t item;
        uint64_t when = heap_pop(&e->heap, &item);
        int r;

        if (when > e->end_nsec) {
            e->now_nsec = e->end_nsec;
            break;
        }
        e->now_nsec = when;
        if (++e->n_events > e->n_events_max)
            return sentence(ret_error, -EOVERFLOW, "more events than a run may have: ", e->n_events_max);
        r = handle(e, item);
        dispatch_settle(e);
        if (r == -EUCLEAN)
            return sentence(ret_error, r, "the plan breaks an invariant, at microsecond ",
                            e->now_nsec / NSEC_PER_USEC);
        if (r < 0)
            return r;
        if (e->error)
            return e->error;
    }
    for (uint32_t i = 0; i < e->topology->cpu_limit; i++)
        cpu_account(e, i);
    return 0;
}

static int build_and_run(Engine *e, char **ret_error)
{
    int r = build_engine(e, ret_error);

    if (r == 0)
        r = picture_start(e);
    if (r == 0 && e->variant->daemon)
        r = agent_new(e, &e->agent);
    if (r == 0)
        r = run(e, ret_error);
    return r < 0 ? r : picture_finish(e);
}

int sim_run(const SimSpec *spec, size_t variant, uint64_t seed, const SimHooks *hooks, SimResult **ret,
            char **ret_error)
{
    Engine e = {
        .spec = spec,
        .variant = &spec->variants[variant],
        .constants = &spec->model,
        .topology = spec->topology,
        .kernel = &spec->variants[variant].kernel,
        .hooks = hooks,
        .watch = watch,
        .seed = seed,
        .n_events_max = hooks && hooks->events_max > 0 ? hooks->events_max : ENGINE_EVENTS_MAX,
    };
    int r;

    assert(variant < spec->n_variants);
    *ret_error = NULL;
    r = build_and_run(&e, ret_error);
    if (r == 0)
        *ret = TAKE_PTR(e.result);
    (void)sim_result_free(e.result);
    (void)agent_free(e.agent);
    build_done(&e);
    return r;
}
