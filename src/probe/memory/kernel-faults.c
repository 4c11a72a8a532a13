/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel's own NUMA faults, while its balancing is on (kernel.numa_balancing). The kernel
 * unmaps windows of a process's memory and counts which threads fault them in again. Its averages per thread
 * and node are in sched.
 *
 * They replace the averages in the table, being averages of the same kind (P11). They know no blocks, so
 * memory for several nodes is left to the kernel.
 *
 * 6.6 us per thread and round. */

#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "kernel/sched-numa.h"
#include "probe/memory/evidence.h"
#include "probe/probe-internal.h"

#include <stdio.h>

/* Reading takes at most one part in SHARE of a CPU. */
#define SHARE 1000U

typedef struct KernelFaults {
    EvidenceTarget target;
    int proc_fd;
    pid_t *tids;
    size_t tids_capacity;
    char *text; /* [SCHED_NUMA_TEXT_SIZE] */
    SchedNuma numa;
} KernelFaults;

static void cannot(EvidenceMachine *machine, const char *why)
{
    (void)snprintf(machine->abilities[EVIDENCE_KERNEL].why_not, EVIDENCE_WHY_SIZE, "%s", why);
}

static void detect(int root_fd, bool live, EvidenceMachine *machine)
{
    CLEANUP_FREE SchedNuma *numa = calloc(1, sizeof(*numa));
    CLEANUP_FREE char *text = malloc(SCHED_NUMA_TEXT_SIZE);
    const char *s = text;
    uint64_t mode;

    if (!numa || !text) {
        cannot(machine, "out of memory");
    } else if (root_read(root_fd, "proc/sys/kernel/numa_balancing", text, SCHED_NUMA_TEXT_SIZE) < 0) {
        cannot(machine, "this kernel has no NUMA balancing");
    } else if (!scan_u64(&s, &mode) || !(mode & 1)) {
        /* 2 is tiering alone: it moves pages between kinds of memory, and counts no accesses. */
        cannot(machine, "the kernel's NUMA balancing is off (kernel.numa_balancing)");
    } else {
        machine->kernel_balances = true;
        if (root_read(root_fd, "proc/self/sched", text, SCHED_NUMA_TEXT_SIZE) < 0 ||
            sched_numa_parse(text, numa) < 0)
            cannot(machine, "this kernel does not show NUMA faults (CONFIG_SCHED_DEBUG)");
        else
            machine->abilities[EVIDENCE_KERNEL].works = true;
    }
}

static void end(void *context)
{
    KernelFaults *faults = context;

    (void)close(faults->proc_fd);
    free(faults->tids);
    free(faults->text);
    free(faults);
}

/* What did not work when it was tried may work now. */
static int begin(const EvidenceTarget *target, const EvidenceMachine *machine, void **ret_context)
{
    KernelFaults *faults;
    int proc_fd = evidence_open_process(target, NULL);

    if (proc_fd == -ESRCH)
        return EVIDENCE_E_GONE;
    if (proc_fd < 0)
        return proc_fd;
    faults = calloc(1, sizeof(*faults));
    if (!faults) {
        (void)close(proc_fd);
        return -ENOMEM;
    }
    faults->target = *target;
    faults->proc_fd = proc_fd;
    faults->text = malloc(SCHED_NUMA_TEXT_SIZE);
    if (!faults->text) {
        end(faults);
        return -ENOMEM;
    }
    *ret_context = faults;
    return 0;
}

static void take(const KernelFaults *faults, TouchThread *thread)
{
    const SchedNuma *numa = &faults->numa;
    const Topology *topology = faults->target.topology;
    uint64_t sums[FAULTS_KIND_MAX] = {0};

    for (uint32_t i = 0; i < numa->n_nodes; i++) {
        const SchedNumaNode *from = &numa->nodes[i];
        NodeIx node = topology_node_by_os(topology, from->node);

        sums[FAULTS_KIND_PRIVATE] += from->task_private;
        sums[FAULTS_KIND_SHARED] += from->task_shared;
        if (node.i < 0)
            continue;
        thread->faults.nodes[node.i].memory[FAULTS_KIND_PRIVATE] = from->task_private;
        thread->faults.nodes[node.i].memory[FAULTS_KIND_SHARED] = from->task_shared;
    }
    thread->faults.n_sequences = numa->scan_sequence;
    thread->n_samples = numa->total_faults;
    thread->preferred =
        numa->preferred_node < 0 ? NODE_NONE : topology_node_by_os(topology, (uint32_t)numa->preferred_node);
    thread->buddy.class =
        buddy_classify(thread->buddy.class, sums[FAULTS_KIND_PRIVATE], sums[FAULTS_KIND_SHARED]);
}

/* Reads one thread. A thread that cannot be read or parsed stays as it was (I10). Returns 1 if it was read, 0
 * or -errno. */
static int read_thread(KernelFaults *faults, TouchThread *thread)
{
    char path[32];
    ssize_t n;

    (void)snprintf(path, sizeof(path), "task/%d/sched", thread->key.tid);
    n = root_read(faults->proc_fd, path, faults->text, SCHED_NUMA_TEXT_SIZE);
    if (n < 0)
        return probe_error_is_gone((int)n) ? 0 : (int)n;
    if (sched_numa_parse(faults->text, &faults->numa) < 0)
        return 0;
    take(faults, thread);
    return 1;
}

static int round_(void *context, const EvidenceNow *now, EvidenceFinds *finds, EvidenceRound *ret)
{
    KernelFaults *faults = context;
    Touches *touches = &finds->touches;
    uint64_t cpu_nsec = time_thread_cpu_nsec();
    size_t n;
    int r = evidence_follow_threads(faults->proc_fd, faults->target.pid, touches, &faults->tids,
                                    &faults->tids_capacity, &n);

    for (size_t i = 0; i < touches->n_threads && r >= 0 && r != EVIDENCE_E_GONE; i++) {
        r = read_thread(faults, &touches->threads[i]);
        if (r < 0)
            return r;
        ret->n_samples += (uint64_t)r;
        r = 0;
    }
    if (r != 0)
        return r;
    if (ret->n_samples > 0)
        touches->n_rounds++;
    ret->counted = ret->n_samples > 0;
    cpu_nsec = time_thread_cpu_nsec() - cpu_nsec;
    ret->rest_until_usec = now->now_usec + cpu_nsec / NSEC_PER_USEC * SHARE;
    return 0;
}

const EvidenceOps evidence_kernel = {detect, begin, round_, end};
