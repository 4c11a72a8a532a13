/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where memory starts, where threads run, and where pages are.
 *
 * Memory is placed by the policy of the thread that touches it, set for that time and restored afterwards. A
 * policy of the mapping would stay, and the kernel's own balancing leaves such memory alone. The system calls
 * are made directly, so that no library is needed. */

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "room.h"

#define MASK_BITS 1024u /* the most nodes Linux can be built for */
#define LONG_BITS (8 * sizeof(unsigned long))

/* Pages asked about for each thread: every 256 KiB of 16 MiB, eight in each huge page. */
#define SAMPLE_PAGES 64u

typedef struct NodeMask {
    unsigned long bits[MASK_BITS / (8 * sizeof(unsigned long))];
} NodeMask;

static struct {
    int mode;
    NodeMask mask;
    bool changed;
} before;

static bool mask_has(const NodeMask *mask, unsigned node)
{
    return mask->bits[node / LONG_BITS] >> (node % LONG_BITS) & 1;
}

static bool mask_empty(const NodeMask *mask)
{
    for (size_t i = 0; i < MASK_BITS / LONG_BITS; i++)
        if (mask->bits[i])
            return false;
    return true;
}

static int set_policy(int mode, const NodeMask *mask)
{
    bool empty = mask_empty(mask);

    /* The kernel uses one bit less than it is told. */
    return syscall(SYS_set_mempolicy, mode, empty ? NULL : mask->bits, empty ? 0 : MASK_BITS + 1) < 0 ? -errno
                                                                                                      : 0;
}

static bool allowed(NodeMask *ret)
{
    *ret = (NodeMask){0};
    return syscall(SYS_get_mempolicy, NULL, ret->bits, MASK_BITS, NULL, MPOL_F_MEMS_ALLOWED) == 0;
}

bool place_has_memory(unsigned node)
{
    NodeMask mask;

    return allowed(&mask) ? mask_has(&mask, node) : node == 0;
}

/* Of the nodes with memory, the one at position process / processes. */
static unsigned node_of_process(const Room *room, unsigned process)
{
    unsigned nodes[ROOM_NODES_MAX], n = 0;
    NodeMask mask;

    if (allowed(&mask))
        for (unsigned node = 0; node < ROOM_NODES_MAX; node++)
            if (mask_has(&mask, node))
                nodes[n++] = node;
    return n > 0 ? nodes[(uint64_t)process * n / room->options.processes] : 0;
}

/* The memory policy that the options want during the touch; MPOL_DEFAULT: none. */
static int wanted(const Room *room, unsigned process, NodeMask *ret)
{
    unsigned node = room->home;

    *ret = (NodeMask){0};
    switch (room->options.placement) {
    case PLACEMENT_LOCAL:
        return MPOL_DEFAULT;
    case PLACEMENT_INTERLEAVE:
        (void)allowed(ret);
        return MPOL_INTERLEAVE;
    case PLACEMENT_PROCESS:
    case PLACEMENT_NODE:
        node = room->options.placement == PLACEMENT_NODE ? room->options.placement_node
                                                         : node_of_process(room, process);
        ret->bits[node / LONG_BITS] = 1UL << (node % LONG_BITS);
        return MPOL_BIND;
    case PLACEMENT_MAIN:
        /* The main threads of several processes would start on different nodes in some runs and not in others,
         * and one may be moved while it touches. The node of the first CPU is preferred instead, which is the
         * same in every run. A policy set from outside (numactl) is kept: that user knows better. */
        if (before.mode != MPOL_DEFAULT || !place_has_memory(node))
            return MPOL_DEFAULT;
        ret->bits[node / LONG_BITS] = 1UL << (node % LONG_BITS);
        return MPOL_PREFERRED;
    }
    return MPOL_DEFAULT;
}

int place_begin(const Room *room, unsigned process)
{
    NodeMask mask;
    int mode, r;

    before.changed = false;
    r = syscall(SYS_get_mempolicy, &before.mode, before.mask.bits, MASK_BITS, NULL, 0) < 0 ? -errno : 0;
    if (r == 0) {
        mode = wanted(room, process, &mask);
        if (mode == MPOL_DEFAULT)
            return 0;
        r = set_policy(mode, &mask);
        before.changed = r == 0;
    }
    /* A kernel without nodes has no policies, and many containers forbid them. Then the touch alone decides. */
    if ((r == -ENOSYS || r == -EPERM) &&
        (room->options.placement == PLACEMENT_MAIN || room->options.placement == PLACEMENT_LOCAL))
        return 0;
    return r;
}

void place_end(void)
{
    if (before.changed)
        (void)set_policy(before.mode, &before.mask);
}

/* A machine without nodes counts as one node. */
static unsigned node_of_cpu(unsigned cpu)
{
    char path[64];

    for (unsigned node = 0; node < ROOM_NODES_MAX; node++) {
        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%u", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return 0;
}

unsigned place_home(void)
{
    cpu_set_t cpus;
    unsigned cpu = 0;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &cpus))
            cpu++;
    return node_of_cpu(cpu);
}

int place_bind(unsigned number, unsigned n_threads, cpu_set_t *ret_before)
{
    bool has_cpus[ROOM_NODES_MAX] = {0};
    unsigned n_nodes = 0, wanted, home;
    cpu_set_t before_cpus, cpus;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
        return -errno;
    before_cpus = cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus)) {
            unsigned node = node_of_cpu(cpu);

            n_nodes += !has_cpus[node];
            has_cpus[node] = true;
        }

    wanted = (unsigned)((uint64_t)number * n_nodes / n_threads);
    for (home = 0; !has_cpus[home] || wanted-- > 0; home++)
        ;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && node_of_cpu(cpu) != home)
            CPU_CLR(cpu, &cpus);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
        return -errno;
    *ret_before = before_cpus;
    return 0;
}

/* The i-th of n pages spread evenly over the parts the thread uses. */
static void *sampled_page(const RoomThread *thread, uint32_t used, size_t i)
{
    size_t total = 0, at, page = (size_t)sysconf(_SC_PAGESIZE);

    for (unsigned region = 0; region < WORK_REGIONS_MAX; region++)
        total += used >> region & 1 ? thread->thread.parts[region].bytes : 0;
    at = (size_t)(((double)i + 0.5) / SAMPLE_PAGES * (double)total);
    for (unsigned region = 0; region < WORK_REGIONS_MAX; region++) {
        const WorkPart *part = &thread->thread.parts[region];

        if (!(used >> region & 1))
            continue;
        if (at < part->bytes)
            return part->start + at / page * page;
        at -= part->bytes;
    }
    return NULL;
}

void place_query(const Room *room, PlaceShares *ret)
{
    *ret = (PlaceShares){0};
    if (room->shape->layout == WORK_NONE)
        return;
    for (unsigned i = 0; i < room->n_threads; i++) {
        const RoomThread *thread = &room->threads[i];
        uint32_t used = atomic_load(&thread->used), node = atomic_load(&thread->node);
        void *pages[SAMPLE_PAGES];
        int status[SAMPLE_PAGES];

        if (used == 0)
            continue;
        for (size_t k = 0; k < SAMPLE_PAGES; k++)
            pages[k] = sampled_page(thread, used, k);
        ret->n_asked += SAMPLE_PAGES;
        if (syscall(SYS_move_pages, room->pids[thread->thread.process], (unsigned long)SAMPLE_PAGES, pages,
                    NULL, status, 0) < 0)
            continue; /* not counted; if nothing is counted, the result says null */
        for (size_t k = 0; k < SAMPLE_PAGES; k++) {
            if (status[k] < 0 || status[k] >= (int)ROOM_NODES_MAX)
                continue;
            ret->n_pages++;
            ret->n_local += (uint32_t)status[k] == node;
            ret->by_node[status[k]]++;
        }
    }
}
